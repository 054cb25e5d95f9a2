//! Tests of requests in unusual forms, for callers whose scope has only `tools` or only `hidden`.
//!
//! A caller with `tools` may use only the names that match. A caller with `hidden` may use all names that do not match,
//! so keywords of an API such as `name` or `web_search` are visible to it.

use serde_json::{Value, json};
use toolcrib_dialect::{Api, ReadResult, Request, ScopeViolation};

use super::{complete, target};

fn only_shown(names: &[&str]) -> bool {
    names.iter().any(|name| name.starts_with("show__"))
}

fn not_hidden(names: &[&str]) -> bool {
    !names.iter().any(|name| name.starts_with("hide__"))
}

fn read(api: Api, body: &str, visible: fn(&[&str]) -> bool) -> Result<ReadResult, ScopeViolation> {
    Request::read_in_scope(api, target(api), complete(api, body).into_bytes(), &visible)
}

/// Applies the caller's scope to a body and returns the result.
fn narrowed(api: Api, body: &str, visible: fn(&[&str]) -> bool) -> Result<Value, ScopeViolation> {
    let text = match read(api, body, visible)? {
        Ok(request) => request.text,
        Err(unread) => String::from_utf8(unread.body).unwrap(),
    };
    Ok(serde_json::from_str(&text).unwrap())
}

/// Checks that the scopes of both callers reduce the list `before` to `after`.
fn tools_become(api: Api, before: &Value, after: &Value) {
    for visible in [only_shown, not_hidden] {
        let body = narrowed(api, &json!({"model": "m", "tools": before}).to_string(), visible);
        assert_eq!(&body.unwrap()["tools"], after, "{api:?} {before}");
    }
}

/// Checks that the requests are refused for both callers.
fn are_refused(rows: &[(Api, &str)]) {
    for (api, body) in rows {
        for visible in [only_shown as fn(&[&str]) -> bool, not_hidden] {
            let refused = read(*api, body, visible).map(|_| ()).expect_err(body);
            assert!(!refused.hint().is_empty(), "{refused}");
            assert!(!refused.to_string().contains("hide__"), "{refused}");
        }
    }
}

#[test]
fn a_name_does_not_exempt_an_entry_from_narrowing() {
    let declared = |names: &[&str]| {
        let all: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        Value::from(all)
    };
    for key in ["functionDeclarations", "function_declarations"] {
        let before = json!([{"name": "show__ok", key: declared(&["hide__a", "show__a"])}]);
        let after = json!([{"name": "show__ok", key: declared(&["show__a"])}]);
        tools_become(Api::Gemini, &before, &after);
        tools_become(
            Api::Gemini,
            &json!([{"name": "hide__ok", key: declared(&["show__a"])}]),
            &json!([]),
        );
    }
    let before = json!([{"name": "show__ok", "mcpServers": [{"name": "hide__a"}]}]);
    tools_become(Api::Gemini, &before, &json!([{"name": "show__ok"}]));
}

#[test]
fn hosted_servers_are_narrowed_in_every_api() {
    let none = json!([]);
    for api in Api::ALL {
        for before in [
            json!({"type": "MCP", "server_label": "hide"}),
            json!({"type": "mcp_server", "name": "show__ok"}),
            json!({"type": "function", "name": "show__ok", "server_url": "https://x"}),
            json!({"type": "function", "name": "show__ok", "server_label": "x"}),
            json!({"type": "function", "name": "show__ok", "connector_id": "x"}),
            json!({"name": "show__ok", "mcp_server_name": "x"}),
            json!({"name": "show__ok", "allowed_tools": ["hide__a"]}),
        ] {
            tools_become(api, &json!([before]), &none);
        }
    }
    let server = |more: Value| {
        let mut all = json!({"type": "mcp", "server_label": "show", "allowed_tools": ["a"]});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([all])
    };
    let plain = server(json!({}));
    tools_become(Api::Responses, &plain, &plain);
    tools_become(Api::Chat, &plain, &none);
    tools_become(Api::Responses, &server(json!({"tools": [{"name": "hide__a"}]})), &none);
    let names = |names: Value| json!({"tool_names": names});
    // Only the caller with `hidden` is tested, because every tool of the server `show` is visible to the caller with
    // `tools`.
    let before =
        json!({"always": names(json!(["hide__a"])), "never": names(json!(["a", "hide__a"]))});
    let body = json!({"tools": server(json!({"require_approval": before}))}).to_string();
    let after = json!({"never": names(json!(["a"]))});
    let after = server(json!({"require_approval": after}));
    assert_eq!(narrowed(Api::Responses, &body, not_hidden).unwrap()["tools"], after);
    let kept = server(json!({"require_approval": "never"}));
    tools_become(Api::Responses, &kept, &kept);
}

#[test]
fn the_type_of_a_server_tool_counts_in_addition_to_its_name() {
    tools_become(
        Api::Messages,
        &json!([{"type": "hide__bash_20250124", "name": "show__ok"}]),
        &json!([]),
    );
    let bash = r#"{"tools":[{"type":"bash_20250124","name":"show__ok"}]}"#;
    assert_eq!(narrowed(Api::Messages, bash, only_shown).unwrap()["tools"], json!([]));
    let kept = json!([{"type": "show__bash_20250124", "name": "show__bash"}]);
    tools_become(Api::Messages, &kept, &kept);
    // The keys of a toolset's `configs` are names of tools.
    let toolset = json!([{"type": "mcp_toolset", "mcp_server_name": "show",
        "default_config": {"enabled": false}, "configs": {"list_tools": {"enabled": true}}}]);
    tools_become(Api::Messages, &toolset, &toolset);
}

#[test]
fn keys_that_may_carry_tools_are_refused() {
    are_refused(&[
        (Api::Chat, r#"{"chat_template_kwargs":{"custom_tools":[{"name":"hide__a"}]}}"#),
        (Api::Chat, r#"{"chat_template_kwargs":{"xml_tools":[{"name":"hide__a"}]}}"#),
        (Api::Chat, r#"{"chat_template_kwargs":{"parameters":{"tools":[{"name":"hide__a"}]}}}"#),
        (Api::Chat, r#"{"custom_tools":[{"name":"hide__a"}]}"#),
        (Api::Chat, r#"{"tool_list":[{"name":"hide__a"}]}"#),
        (Api::Chat, r#"{"tool":{"name":"hide__a"}}"#),
        (Api::Chat, r#"{"extra_functions":[{"name":"hide__a"}]}"#),
        (Api::Chat, "{\"t\u{43e}\u{43e}ls\":[{\"name\":\"hide__a\"}]}"),
        (Api::Chat, r#"{"t\u043e\u043els":[{"name":"hide__a"}]}"#),
        (Api::Chat, r#"{"input":{"tools":[{"name":"hide__a"}]}}"#),
        (Api::Chat, r#"{"parameters":{"tools":[{"name":"hide__a"}]}}"#),
        (Api::Messages, r#"{"args":{"tools":[{"name":"hide__a"}]}}"#),
        (Api::Responses, r#"{"response":{"tools":[{"name":"hide__a"}]}}"#),
        (Api::Gemini, r#"{"response":{"tools":[{"name":"hide__a"}]}}"#),
        (Api::Gemini, r#"{"generationConfig":{"tool":{"name":"hide__a"}}}"#),
    ]);
    for (api, body) in [
        (Api::Chat, r#"{"metadata":{"custom_tools":"a note"}}"#),
        (
            Api::Chat,
            r#"{"response_format":{"json_schema":{"schema":{"properties":{"tools":{}}}}}}"#,
        ),
        (Api::Responses, r#"{"text":{"format":{"schema":{"properties":{"tools":{}}}}}}"#),
        (Api::Gemini, r#"{"generationConfig":{"responseSchema":{"properties":{"tools":{}}}}}"#),
        (Api::Messages, r#"{"context_management":{"edits":[{"exclude_tools":["a"]}]}}"#),
        (
            Api::Messages,
            r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","input":{"tools":1,"type":"tool_reference"}}]}]}"#,
        ),
    ] {
        for visible in [only_shown as fn(&[&str]) -> bool, not_hidden] {
            assert!(narrowed(api, body, visible).is_ok(), "{body}");
        }
    }
}

#[test]
fn history_in_unknown_forms_is_refused() {
    are_refused(&[
        (
            Api::Messages,
            r#"{"messages":[{"role":"assistant","content":[{"type":"tool_search_tool_result","content":[{"type":"tool_reference","tool_name":"hide__a"}]}]}]}"#,
        ),
        (
            Api::Messages,
            r#"{"messages":[{"role":"user","content":[{"type":"tool_result","content":{"type":"tool_reference","tool_name":"hide__a"}}]}]}"#,
        ),
        (
            Api::Messages,
            r#"{"messages":[{"role":"user","content":[{"type":"web_fetch_tool_result","content":{"x":[{"type":"tool_reference","tool_name":"hide__a"}]}}]}]}"#,
        ),
        (
            Api::Messages,
            r#"{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"tool_result","content":[{"type":"tool_reference","tool_name":"hide__a"}]}]}]}]}"#,
        ),
        (
            Api::Messages,
            r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a","x":[{"type":"tool_addition"}]}]}]}"#,
        ),
        (
            Api::Messages,
            r#"{"messages":[{"role":"user","content":[{"type":"Tool_Reference","tool_name":"hide__a"}]}]}"#,
        ),
        (
            Api::Messages,
            r#"{"system":[{"type":"tool_addition","tool":{"type":"tool_reference","name":"hide__a"}}]}"#,
        ),
        (Api::Messages, r#"{"system":[{"type":"tool_reference","tool_name":"hide__a"}]}"#),
        (
            Api::Messages,
            r#"{"messages":[[{"role":"user","content":[{"type":"tool_reference","tool_name":"hide__a"}]}]]}"#,
        ),
        (
            Api::Messages,
            r#"{"messages":[{"role":"user","content":[[{"type":"tool_reference","tool_name":"hide__a"}]]}]}"#,
        ),
        (
            Api::Messages,
            r#"{"messages":[{"role":"user","content":[{"type":"tool_reference","tool_name":["hide__a"]}]}]}"#,
        ),
        (
            Api::Messages,
            r#"{"messages":[{"role":"user","content":[{"type":"tool_reference","tool_name":["hide__a"],"name":"show__a"}]}]}"#,
        ),
        (
            Api::Messages,
            r#"{"messages":[{"role":"user","content":[{"type":"tool_reference","tool_name":"show__b","name":"show__a"}]}]}"#,
        ),
        (Api::Chat, r#"{"messages":[[{"role":"user","content":"a"}]]}"#),
        (Api::Gemini, r#"{"contents":[[{"role":"user"}]]}"#),
        (Api::Responses, r#"{"input":[[{"role":"user","content":"a"}]]}"#),
        (
            Api::Responses,
            r#"{"input":[{"type":"tool_search_output","call_id":"c","tools":[],"output":[{"name":"hide__a"}]}]}"#,
        ),
        (
            Api::Responses,
            r#"{"input":[{"type":"tool_search_output","call_id":"c","output":"[]"}]}"#,
        ),
        (
            Api::Responses,
            r#"{"input":[{"type":"additional_tools","role":"developer","definition":{"name":"hide__a"}}]}"#,
        ),
        (
            Api::Responses,
            r#"{"input":[{"type":"additional_tools","role":"developer","content":[{"name":"hide__a"}]}]}"#,
        ),
    ]);
}

#[test]
fn every_name_in_a_choice_counts() {
    are_refused(&[
        (
            Api::Chat,
            r#"{"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"show__a"}}]},"tools":[{"type":"function","function":{"name":"hide__a"}}]}}"#,
        ),
        (Api::Chat, r#"{"tool_choice":{"type":"auto","function":{"name":"hide__a"}}}"#),
        (Api::Chat, r#"{"tool_choice":{"type":"auto","names":["hide__a"]}}"#),
        (Api::Responses, r#"{"tool_choice":{"type":"auto","name":"hide__a"}}"#),
        (Api::Responses, r#"{"tool_choice":{"type":"auto","name":["hide__a"]}}"#),
        (Api::Responses, r#"{"tool_choice":{"type":"mcp","server_label":"hide"}}"#),
        (Api::Messages, r#"{"tool_choice":{"type":"any","name":"hide__a"}}"#),
        (Api::Gemini, r#"{"toolConfig":["hide__a"]}"#),
        (Api::Gemini, r#"{"toolConfig":{"functionCallingConfig":["hide__a"]}}"#),
        (Api::Gemini, r#"{"toolConfig":{"allowedFunctionNames":["hide__a"]}}"#),
    ]);
    for (api, body) in [
        (Api::Messages, r#"{"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}"#),
        (
            Api::Responses,
            r#"{"tools":[{"type":"mcp","server_label":"show","allowed_tools":["a"]}],"tool_choice":{"type":"mcp","server_label":"show"}}"#,
        ),
        (
            Api::Gemini,
            r#"{"toolConfig":{"functionCallingConfig":{"mode":"AUTO"},"retrievalConfig":{"languageCode":"de"}}}"#,
        ),
    ] {
        for visible in [only_shown as fn(&[&str]) -> bool, not_hidden] {
            let body_left = narrowed(api, body, visible).unwrap();
            let expected: Value = serde_json::from_str(&complete(api, body)).unwrap();
            assert_eq!(body_left, expected);
        }
    }
}

#[test]
fn options_whose_response_cannot_be_checked_are_refused() {
    let messages = r#""messages":[{"role":"user","content":"Hi"}]"#;
    let tools = r#""tools":[{"type":"function","name":"show__a"}]"#;
    for (api, body, refused) in [
        (Api::Chat, format!(r#"{{"model":"m",{messages},"stream":1}}"#), ScopeViolation::NotABoolean("stream")),
        (Api::Messages, format!(r#"{{"model":"m",{messages},"stream":"true"}}"#), ScopeViolation::NotABoolean("stream")),
        (Api::Responses, r#"{"model":"m","input":"Hi","background":1}"#.to_owned(), ScopeViolation::NotABoolean("background")),
        (Api::Responses, r#"{"model":"m","input":"Hi","background":true}"#.to_owned(), ScopeViolation::Background),
        (Api::Chat, format!("{{{messages}}}"), ScopeViolation::NoModel),
        (Api::Messages, format!(r#"{{"model":5,{messages}}}"#), ScopeViolation::NoModel),
        (Api::Responses, r#"{"input":"Hi"}"#.to_owned(), ScopeViolation::NoModel),
        (Api::Chat, format!(r#"{{"model":"m","messages":null,{tools}}}"#), ScopeViolation::NoHistory("messages")),
        (Api::Chat, format!(r#"{{"model":"m","messages":[{{"content":"Hi"}}],{tools}}}"#), ScopeViolation::NoHistory("messages")),
        (Api::Messages, r#"{"model":"m"}"#.to_owned(), ScopeViolation::NoHistory("messages")),
        (Api::Responses, format!(r#"{{"model":"m",{tools}}}"#), ScopeViolation::NoHistory("input")),
        (Api::Gemini, r#"{"tools":[]}"#.to_owned(), ScopeViolation::NoHistory("contents")),
        (
            Api::Gemini,
            r#"{"contents":[],"tools":[{"functionDeclarations":[{"name":"show__a"}]}],"toolConfig":{"functionCallingConfig":{"streamFunctionCallArguments":true}}}"#.to_owned(),
            ScopeViolation::StreamedArguments,
        ),
    ] {
        let read = Request::read_in_scope(api, target(api), body.clone().into_bytes(), &not_hidden);
        assert_eq!(read.map(|_| ()), Err(refused.clone()), "{body}");
        assert!(!refused.hint().is_empty(), "{refused}");
    }
    for stream in ["true", "false", "null"] {
        let body = format!(r#"{{"model":"m",{messages},"stream":{stream},{tools}}}"#);
        assert!(read(Api::Chat, &body, not_hidden).unwrap().is_ok(), "{body}");
    }
}

#[test]
fn a_stream_whose_calls_cannot_be_checked_is_refused() {
    let body = br#"{"contents":[],"tools":[{"functionDeclarations":[{"name":"show__a"},{"name":"hide__a"}]}]}"#;
    let read = |target: &str| {
        Request::read_in_scope(Api::Gemini, target, body.to_vec(), &not_hidden).map(|_| ())
    };
    let refused = read("/v1beta/models/m:streamGenerateContent").unwrap_err();
    assert_eq!(refused, ScopeViolation::JsonArrayStream);
    assert!(refused.hint().contains("alt=sse"));
    assert_eq!(read("/v1beta/models/m:streamGenerateContent?alt=sse"), Ok(()));
}
