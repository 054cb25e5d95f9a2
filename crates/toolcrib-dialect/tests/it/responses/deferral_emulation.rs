//! Tests of Codex with a backend that supports only tools of type `function`.

use serde_json::{Value, json};
use toolcrib_dialect::DeferralEmulation;
use toolcrib_dialect::sse::Decoder;

use super::{EventBuilder, call, message, output, response, user};

fn function(name: &str) -> Value {
    json!({"type": "function", "name": name, "description": "d", "parameters": {"type": "object"}, "strict": true})
}

fn search_tool() -> Value {
    json!({"type": "tool_search", "execution": "client", "description": "Finds tools.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "number"}}}})
}

fn client_tools() -> Value {
    json!([
        function("shell"),
        {"type": "namespace", "name": "mcp__git__", "description": "Git", "tools": [function("push"), function("pull")]},
        search_tool(),
        {"type": "web_search"},
    ])
}

fn renamed(name: &str, flat: &str) -> Value {
    let mut tool = function(name);
    tool["name"] = json!(flat);
    tool
}

fn searched() -> Vec<Value> {
    let mut hit = function("find");
    hit["defer_loading"] = json!(true);
    vec![
        user("Find Ada."),
        json!({"type": "tool_search_call", "id": "tsc_1", "execution": "client", "call_id": "call_s1",
            "status": "completed", "arguments": {"query": "customer", "limit": 8}}),
        json!({"type": "tool_search_output", "execution": "client", "call_id": "call_s1", "status": "completed",
            "tools": [{"type": "namespace", "name": "crm", "description": "c", "tools": [hit]}]}),
        {
            let mut found = call("call_f1", "find", r#"{"q":"ada"}"#);
            found["namespace"] = json!("crm");
            found
        },
        output("call_f1", "Ada, 7"),
    ]
}

fn body() -> Value {
    json!({"model": "qwen", "input": searched(), "tools": client_tools(), "tool_choice": "auto", "stream": true,
        "store": false})
}

fn emulation(body: &Value) -> (DeferralEmulation, Value) {
    let emulation = DeferralEmulation::read(&body.to_string()).unwrap();
    let sent = serde_json::from_str(emulation.request()).unwrap();
    (emulation, sent)
}

#[test]
fn a_request_with_deferral_becomes_plain_functions_and_calls() {
    let (_, sent) = emulation(&body());
    let search = json!({"type": "function", "name": "tool_search", "description": "Finds tools.",
        "parameters": search_tool()["parameters"], "strict": false});
    let mut expected = body();
    expected["tools"] = json!([
        function("shell"),
        renamed("push", "mcp__git__push"),
        renamed("pull", "mcp__git__pull"),
        search,
        {"type": "web_search"},
        renamed("find", "crm__find"),
    ]);
    expected["input"] = json!([
        user("Find Ada."),
        {"type": "function_call", "call_id": "call_s1", "name": "tool_search",
            "arguments": r#"{"query":"customer","limit":8}"#},
        output("call_s1", "Loaded, and callable from now on: crm__find"),
        call("call_f1", "crm__find", r#"{"q":"ada"}"#),
        output("call_f1", "Ada, 7"),
    ]);
    assert_eq!(sent, expected);
}

#[test]
fn loaded_tools_are_only_appended() {
    let (_, before) = emulation(&body());
    let mut later = body();
    let input = later["input"].as_array_mut().unwrap();
    input.push(json!({"type": "additional_tools", "role": "developer", "tools": [function("find"), function("late")]}));
    // The history contains the same search result again, and an empty search result.
    for (id, tools) in [("call_s2", searched()[2]["tools"].clone()), ("call_s3", json!([]))] {
        input.push(json!({"type": "tool_search_call", "execution": "client", "call_id": id, "arguments": {}}));
        input.push(json!({"type": "tool_search_output", "execution": "client", "call_id": id, "tools": tools}));
    }
    let (_, after) = emulation(&later);
    let (before, after) = (before["tools"].as_array().unwrap(), after["tools"].as_array().unwrap());
    assert_eq!(&after[..before.len()], before);
    assert_eq!(after[before.len()..], [function("find"), function("late")]);
    let (_, sent) = emulation(&later);
    assert_eq!(
        sent["input"].as_array().unwrap().last(),
        Some(&output("call_s3", "Nothing new was loaded."))
    );
}

/// Returns the output of the backend: a message, a search, a call to a tool in a namespace, and a call to a tool
/// without a namespace.
fn backend_items() -> [Value; 4] {
    [
        message(1, "Let me look."),
        call("call_s9", "tool_search", r#"{"query":"invoice"}"#),
        call("call_f9", "mcp__git__push", "{}"),
        call("call_h9", "shell", "{}"),
    ]
}

/// Returns the items of `backend_items` in the format that the client expects.
fn client_items() -> [Value; 4] {
    let [text, _, _, shell] = backend_items();
    let mut push = call("call_f9", "push", "{}");
    push["namespace"] = json!("mcp__git__");
    let search = json!({"id": "fc_call_s9", "type": "tool_search_call", "status": "completed",
        "arguments": {"query": "invoice"}, "call_id": "call_s9", "execution": "client"});
    [text, search, push, shell]
}

#[test]
fn a_complete_response_is_translated_back() {
    let (emulation, _) = emulation(&body());
    let upstream = response(1, "completed", &backend_items(), &Value::Null);
    let mut expected = response(1, "completed", &client_items(), &Value::Null);
    expected["tools"] = client_tools();
    let got: Value =
        serde_json::from_str(&emulation.restore_response(&upstream.to_string())).unwrap();
    assert_eq!(got, expected);
    assert_eq!(emulation.restore_response("<html>"), "<html>");
}

fn events(emulation: &mut DeferralEmulation, text: &str) -> String {
    let (mut decoder, mut out) = (Decoder::default(), Vec::new());
    decoder.push(text.as_bytes());
    while let Some(event) = decoder.next_event().unwrap() {
        emulation.restore_event(&event, &mut out);
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn a_stream_is_translated_back() {
    let (mut emulation, _) = emulation(&body());
    let mut upstream = EventBuilder::default();
    upstream.add(
        "response.created",
        &json!({"response": response(1, "in_progress", &[], &Value::Null)}),
    );
    for (index, item) in backend_items().iter().enumerate() {
        upstream.item(index, item);
    }
    upstream.add(
        "response.completed",
        &json!({"response": response(1, "completed", &backend_items(), &Value::Null)}),
    );
    let text = events(&mut emulation, &(upstream.text + "data: [DONE]\n\n"));

    let own = |status: &str, output: &[Value]| {
        let mut own = response(1, status, output, &Value::Null);
        own["tools"] = client_tools();
        own
    };
    let mut expected = EventBuilder::default();
    expected.add("response.created", &json!({"response": own("in_progress", &[])}));
    for (index, item) in client_items().iter().enumerate() {
        if item["type"] == "tool_search_call" {
            let mut begun = item.clone();
            (begun["status"], begun["arguments"]) = (json!("in_progress"), json!({}));
            expected
                .add("response.output_item.added", &json!({"output_index": index, "item": begun}));
            expected
                .add("response.output_item.done", &json!({"output_index": index, "item": item}));
        } else {
            expected.item(index, item);
        }
    }
    expected.add("response.completed", &json!({"response": own("completed", &client_items())}));
    assert_eq!(text, expected.text + "data: [DONE]\n\n");
}

#[test]
fn a_request_without_deferral_is_unchanged() {
    let plain = json!({"model": "m", "input": [user("hi"), call("c", "shell", "{}")], "tools": [function("shell")]});
    assert!(DeferralEmulation::read(&plain.to_string()).is_none());
    assert!(DeferralEmulation::read("[]").is_none());
    assert!(DeferralEmulation::read(r#"{"input": "hi"}"#).is_none());
}

#[test]
fn with_the_hosted_search_all_tools_are_kept() {
    let mut deferred = function("find");
    deferred["defer_loading"] = json!(true);
    let body = json!({"model": "m", "input": [
            user("hi"),
            {"type": "tool_search_call", "execution": "server", "call_id": null, "arguments": {"paths": ["crm"]}},
            {"type": "tool_search_output", "execution": "server", "call_id": null, "tools": [deferred]},
        ],
        "tools": [deferred, {"type": "tool_search"}]});
    let (_, sent) = emulation(&body);
    assert_eq!(sent, json!({"model": "m", "input": [user("hi")], "tools": [function("find")]}));
}

#[test]
fn a_deferred_tool_is_declared_once_it_is_loaded() {
    let mut deferred = function("find");
    deferred["defer_loading"] = json!(true);
    let mut body = json!({"model": "m", "input": [user("hi")],
        "tools": [{"type": "namespace", "name": "crm", "tools": [deferred, function("ping")]}, search_tool()]});
    let names = |sent: &Value| -> Vec<String> {
        sent["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&emulation(&body).1), ["crm__ping", "tool_search"]);
    body["input"].as_array_mut().unwrap().extend(searched()[1..3].iter().cloned());
    assert_eq!(names(&emulation(&body).1), ["crm__ping", "tool_search", "crm__find"]);
}

#[test]
fn tool_choice_uses_the_flat_names() {
    let with = |choice: Value| {
        let mut body = body();
        body["tool_choice"] = choice.clone();
        let (emulation, sent) = emulation(&body);
        let mut echoed = response(1, "completed", &[], &Value::Null);
        echoed["tool_choice"] = sent["tool_choice"].clone();
        let got: Value =
            serde_json::from_str(&emulation.restore_response(&echoed.to_string())).unwrap();
        assert_eq!(got["tool_choice"], choice, "and back");
        sent["tool_choice"].clone()
    };
    let named = |name: &str| json!({"type": "function", "name": name});
    assert_eq!(with(json!("required")), "required");
    assert_eq!(with(named("shell")), named("shell"));
    assert_eq!(with(json!({"type": "tool_search"})), named("tool_search"));
    let push = json!({"type": "function", "name": "push", "namespace": "mcp__git__"});
    assert_eq!(with(push.clone()), named("mcp__git__push"));
    let allowed = |tools: Value| json!({"type": "allowed_tools", "mode": "auto", "tools": tools});
    assert_eq!(
        with(allowed(json!([push, named("shell")]))),
        allowed(json!([named("mcp__git__push"), named("shell")]))
    );
}

#[test]
fn a_client_function_named_like_the_search_keeps_its_name() {
    let mut body = body();
    body["tools"].as_array_mut().unwrap().push(function("tool_search"));
    let (emulation, sent) = emulation(&body);
    let name = sent["tools"][3]["name"].as_str().unwrap();
    assert_ne!(name, "tool_search");
    assert_eq!(sent["input"][1]["name"], name);
    let items = [call("call_a", "tool_search", "{}"), call("call_b", name, "no json")];
    let got: Value = serde_json::from_str(
        &emulation.restore_response(&response(1, "completed", &items, &Value::Null).to_string()),
    )
    .unwrap();
    assert_eq!(got["output"][0], items[0]);
    assert_eq!(
        (&got["output"][1]["type"], &got["output"][1]["arguments"]),
        (&json!("tool_search_call"), &json!({"query": "no json"}))
    );
}
