//! Tests that a caller's scope applies in every part of a request or response that can contain a tool.

mod arbitrary_response;
mod generated;
mod response;
mod unusual_requests;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_dialect::{Api, ReadResult, Request, ScopeViolation};

use self::generated::{target, visible};

/// Adds the model and the conversation to a body that lacks them.
fn complete(api: Api, body: &str) -> String {
    let history = match api {
        Api::Chat | Api::Messages => r#""messages":[{"role":"user","content":"Hi"}]"#,
        Api::Responses => r#""input":[{"role":"user","content":"Hi"}]"#,
        Api::Gemini => r#""contents":[{"role":"user","parts":[{"text":"Hi"}]}]"#,
    };
    let mut body = body.to_owned();
    for field in [history, r#""model":"m""#] {
        let (key, _) = field.split_once(':').unwrap();
        if !body.contains(&format!("{key}:")) {
            let gap = if body.starts_with("{}") { "" } else { "," };
            body = body.replacen('{', &format!("{{{field}{gap}"), 1);
        }
    }
    body
}

fn read(api: Api, body: &str) -> Result<ReadResult, ScopeViolation> {
    Request::read_in_scope(api, target(api), complete(api, body).into_bytes(), &visible)
}

/// Applies the caller's scope to a body and returns the result.
fn narrowed(api: Api, body: &Value) -> Value {
    let text = match read(api, &body.to_string()) {
        Ok(Ok(request)) => request.text,
        Ok(Err(unread)) => String::from_utf8(unread.body).unwrap(),
        Err(refused) => panic!("{refused}: {body}"),
    };
    serde_json::from_str(&text).unwrap()
}

/// Checks that the caller's scope changes the value of `key` in a body from `before` to `after`.
fn becomes(api: Api, key: &str, before: &Value, after: &Value) {
    let body = narrowed(api, &json!({"model": "m", key: before}));
    assert_eq!(body.get(key).unwrap_or(&Value::Null), after, "{before}");
}

#[test]
fn every_kind_of_tool_is_narrowed() {
    let rows = [
        (
            Api::Chat,
            json!([{"type": "custom", "custom": {"name": "hide_a"}},
                {"type": "custom", "custom": {"name": "show_a"}}, {"type": "web_search"}]),
            json!([{"type": "custom", "custom": {"name": "show_a"}}]),
        ),
        (
            Api::Responses,
            json!([
                {"type": "namespace", "name": "office", "tools": [
                    {"type": "function", "name": "hide_a"}, {"type": "function", "name": "show_a"}]},
                {"type": "namespace", "name": "vault", "tools": [{"type": "function", "name": "hide_b"}]},
                {"type": "web_search_preview_2025_03_11"},
                {"type": "web_search", "name": "show_b"},
                {"type": "mcp", "server_label": "all"},
                {"type": "mcp", "server_label": "docs", "allowed_tools": ["show_c", "hide_c"]},
                {"type": "mcp", "server_label": "docs", "allowed_tools": {"tool_names": ["hide_c"]}},
                {"type": "mcp", "server_label": "docs", "allowed_tools": {"read_only": true}},
                {"type": "mcp", "server_label": "docs", "allowed_tools": []}
            ]),
            json!([
                {"type": "namespace", "name": "office", "tools": [{"type": "function", "name": "show_a"}]},
                {"type": "mcp", "server_label": "docs", "allowed_tools": ["show_c"]}
            ]),
        ),
        (
            Api::Messages,
            json!([
                {"type": "web_search_20250305", "name": "web_search"},
                {"type": "show_bash_20250124", "name": "show_bash"},
                {"type": "mcp_toolset", "mcp_server_name": "all"},
                {"type": "mcp_toolset", "mcp_server_name": "docs", "default_config": {"enabled": false},
                    "configs": {"show_a": {"enabled": true}, "hide_a": {"enabled": true}}}
            ]),
            json!([
                {"type": "show_bash_20250124", "name": "show_bash"},
                {"type": "mcp_toolset", "mcp_server_name": "docs", "default_config": {"enabled": false},
                    "configs": {"show_a": {"enabled": true}}}
            ]),
        ),
        (
            Api::Gemini,
            json!([
                {"functionDeclarations": [{"name": "show_a"}, {"name": "hide_a"}], "googleSearch": {}},
                {"function_declarations": [{"name": "hide_b"}]},
                {"mcpServers": [{"name": "show_c"}]},
                {"show_hosted": {}}
            ]),
            json!([{"functionDeclarations": [{"name": "show_a"}]}, {"show_hosted": {}}]),
        ),
    ];
    for (api, before, after) in rows {
        becomes(api, "tools", &before, &after);
    }
}

#[test]
fn tools_loaded_in_the_history_are_narrowed() {
    let function = |name: &str| json!({"type": "function", "name": name});
    let search =
        |tools: Value| json!({"type": "tool_search_output", "call_id": "c", "tools": tools});
    let before = json!([
        {"type": "additional_tools", "role": "developer", "tools": [function("hide_a")]},
        {"type": "additional_tools", "role": "developer", "tools": [function("hide_a"), function("show_a")]},
        search(json!([function("hide_b")])),
        {"type": "mcp_list_tools", "server_label": "docs", "tools": [{"name": "hide_c"}]},
        {"role": "user", "content": "hide_d is only a word"}
    ]);
    let after = json!([
        {"type": "additional_tools", "role": "developer", "tools": [function("show_a")]},
        search(json!([])),
        {"role": "user", "content": "hide_d is only a word"}
    ]);
    becomes(Api::Responses, "input", &before, &after);
    let reference = |name: &str| json!({"type": "tool_reference", "tool_name": name});
    let result = |content: Value| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": content}]});
    let add = |tool: Value| json!({"type": "tool_addition", "tool": tool});
    let before = json!([
        result(json!([reference("hide_a"), reference("show_a")])),
        result(json!([reference("hide_a")])),
        {"role": "system", "content": [
            add(json!({"type": "tool_definition", "definition": {"name": "hide_b"}})),
            add(json!({"type": "tool_reference", "name": "show_b"})),
            add(json!({"type": "mcp_tool_reference", "server_name": "docs", "name": "hide_c"}))]},
        {"role": "system", "content": [add(json!({"type": "mcp_toolset_reference", "server_name": "all"}))]}
    ]);
    let gone = json!({"type": "text", "text": "The tools that were found are not available."});
    let after = json!([
        result(json!([reference("show_a")])),
        result(json!([gone])),
        {"role": "system", "content": [add(json!({"type": "tool_reference", "name": "show_b"}))]}
    ]);
    becomes(Api::Messages, "messages", &before, &after);
}

#[test]
fn servers_and_choices_are_narrowed() {
    let limited = |names: Value| json!({"name": "docs", "tool_configuration": {"enabled": true, "allowed_tools": names}});
    let before = json!([limited(json!(["show_a", "hide_a"])), {"name": "all"}, limited(json!([]))]);
    becomes(Api::Messages, "mcp_servers", &before, &json!([limited(json!(["show_a"]))]));
    becomes(Api::Messages, "mcp_servers", &json!([{"name": "all"}]), &Value::Null);
    let chat = |name: &str| json!({"type": "function", "function": {"name": name}});
    let some = |tools: Value| json!({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": tools}});
    let before = some(json!([chat("hide_a"), chat("show_a")]));
    becomes(Api::Chat, "tool_choice", &before, &some(json!([chat("show_a")])));
    let names = |names: Value| json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": names}});
    let before = names(json!(["hide_a", "show_a"]));
    becomes(Api::Gemini, "toolConfig", &before, &names(json!(["show_a"])));
    becomes(Api::Chat, "web_search_options", &json!({}), &Value::Null);
}

#[test]
fn what_cannot_be_narrowed_is_refused() {
    let rows: [(Api, &str, &str); 22] = [
        (Api::Chat, r#"{"tools":[],"tools":[{"name":"hide_a"}]}"#, "occurs twice"),
        (Api::Chat, r#"{"TOOLS":[{"name":"hide_a"}]}"#, "variant of `tools`"),
        (Api::Chat, r#"{"tools":{"name":"hide_a"}}"#, "`tools` is not a list"),
        (Api::Chat, r#"{"tools":["hide_a"]}"#, "no name that can be read"),
        (Api::Chat, r#"{"tools":[{"name":["hide_a"]}]}"#, "no name that can be read"),
        (Api::Chat, r#"{"tools":[{"description":"hide_a"}]}"#, "no name that can be read"),
        (Api::Chat, r#"{"tool_choice":"hide_a"}"#, "does not have"),
        (Api::Chat, r#"{"function_call":{"name":"hide_a"}}"#, "does not have"),
        (
            Api::Chat,
            r#"{"tool_choice":{"type":"custom","custom":{"name":"hide_a"}}}"#,
            "does not have",
        ),
        (Api::Responses, r#"{"tool_choice":{"type":"web_search"}}"#, "does not have"),
        (
            Api::Responses,
            r#"{"tool_choice":{"type":"mcp","server_label":"d","name":"hide_a"}}"#,
            "does not have",
        ),
        (Api::Responses, r#"{"conversation":"conv_1"}"#, "refers to a stored object"),
        (Api::Responses, r#"{"prompt":{"id":"pmpt_1"}}"#, "refers to a stored object"),
        (
            Api::Responses,
            r#"{"input":[{"type":"item_reference","id":"i"}]}"#,
            "refers to a stored object",
        ),
        (Api::Responses, r#"{"input":[{"id":"i"}]}"#, "refers to a stored object"),
        (Api::Responses, r#"{"input":{"type":"additional_tools","tools":[]}}"#, "not a list"),
        (
            Api::Messages,
            r#"{"container":{"skills":[{"skill_id":"hide_a"}]}}"#,
            "refers to a stored object",
        ),
        (Api::Messages, r#"{"tool_choice":{"type":"tool","name":"hide_a"}}"#, "does not have"),
        (
            Api::Messages,
            r#"{"messages":[{"role":"user","content":{"type":"tool_reference"}}]}"#,
            "not a list",
        ),
        (Api::Gemini, r#"{"cachedContent":"cachedContents/1"}"#, "refers to a stored object"),
        (
            Api::Gemini,
            r#"{"toolConfig":{"functionCallingConfig":{"allowedFunctionNames":["hide_a"]}}}"#,
            "does not have",
        ),
        (Api::Gemini, "{\"tools\":[{\"function_declarations\":[]}]", "not a JSON object"),
    ];
    for (api, body, why) in rows {
        let refused = read(api, body).map(|_| ()).unwrap_err();
        assert!(refused.to_string().contains(why), "{body}: {refused}");
        assert!(!refused.hint().is_empty() && !refused.to_string().contains("hide_a"), "{refused}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_hidden_tool_reaches_the_upstream(data in proptest::collection::vec(any::<u8>(), 0..160)) {
        generated::check(&data);
    }
}

/// Checks that the generator also makes requests that are accepted. If all requests were refused, the other tests would
/// prove little.
#[test]
fn most_generated_requests_get_through() {
    let mut state = 7u64;
    let mut sent = 0;
    for _ in 0..300 {
        let bytes: Vec<u8> = (0..120)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as u8
            })
            .collect();
        sent += usize::from(generated::check(&bytes));
    }
    assert!(sent > 60, "only {sent} of 300 requests were sent");
}

/// Mutates a response: removes, repeats or replaces a part of it.
fn changed(response: &[u8], (kind, at, length): (u8, usize, usize)) -> Vec<u8> {
    let start = at % response.len().max(1);
    let end = (start + length).min(response.len());
    let part = &response[start..end];
    let middle = match kind % 4 {
        0 => Vec::new(),
        1 => part.repeat(2),
        2 => part.to_ascii_uppercase(),
        _ => format!("\"name\":\"hide_tool\",{}", String::from_utf8_lossy(part)).into_bytes(),
    };
    [&response[..start], &middle, &response[end..]].concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// However a response is mutated, no call to a hidden tool reaches the client.
    #[test]
    fn no_mutated_response_contains_a_call_of_a_hidden_tool(
        which in 0..arbitrary_response::RESPONSES.len(),
        flags in 0_u8..8,
        changes in prop::collection::vec((any::<u8>(), any::<usize>(), 0_usize..40), 0..4),
    ) {
        let (choice, response) = arbitrary_response::RESPONSES[which];
        let response = changes.into_iter().fold(response.as_bytes().to_vec(), |response, change| changed(&response, change));
        arbitrary_response::check(&[&[choice ^ (flags << 2)][..], &response].concat());
    }
}
