//! Tests with clients that defer tools themselves.

use serde_json::{Value, json};
use toolcrib_dialect::messages::deferral_emulation::without_deferral;
use toolcrib_dialect::{Api, ClientDeferral, Request};

use super::{TARGET, call, result, text, user};

fn body(tools: Value, messages: Value) -> String {
    json!({"model": "claude-sonnet-4-5", "max_tokens": 10, "tools": tools, "messages": messages})
        .to_string()
}

fn tool(name: &str) -> Value {
    json!({"name": name, "input_schema": {"type": "object"}})
}

fn deferred(name: &str) -> Value {
    let mut tool = tool(name);
    tool["defer_loading"] = json!(true);
    tool
}

fn defers(body: &str) -> Option<ClientDeferral> {
    Request::read(Api::Messages, TARGET, body.as_bytes().to_vec()).unwrap().client_deferral
}

fn translated(body: &str) -> Value {
    serde_json::from_str(&without_deferral(body).unwrap()).unwrap()
}

/// Returns a search that the client itself ran, as the two messages that the client's history contains.
fn searched(id: &str, names: &[&str]) -> [Value; 2] {
    let references: Vec<Value> =
        names.iter().map(|name| json!({"type": "tool_reference", "tool_name": name})).collect();
    [
        json!({"role": "assistant", "content": [call(id, "ToolSearch", json!({"query": "x"}))]}),
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": references}, text("Go on.")]}),
    ]
}

#[test]
fn a_request_without_deferral_is_unchanged() {
    let plain = body(json!([tool("a")]), json!([user("what is a tool_reference?")]));
    assert_eq!(defers(&plain), None);
    assert_eq!(without_deferral(&plain), None);
    for odd in ["", "[]", "{}", r#"{"messages":[]}"#, r#"{"messages":1,"tools":2}"#] {
        assert_eq!(without_deferral(odd), None);
    }
}

#[test]
fn references_become_text_and_loaded_tools_are_appended() {
    let tools = json!([tool("ToolSearch"), deferred("a"), deferred("b"), tool("z"), deferred("c")]);
    let mut messages = vec![user("hi")];
    let first = body(tools.clone(), json!(messages));
    assert_eq!(defers(&first), Some(ClientDeferral::References));
    assert_eq!(translated(&first)["tools"], json!([tool("ToolSearch"), tool("z")]));

    messages.extend(searched("toolu_1", &["c", "a"]));
    let second = translated(&body(tools.clone(), json!(messages)));
    assert_eq!(second["tools"], json!([tool("ToolSearch"), tool("z"), tool("c"), tool("a")]));
    assert_eq!(
        second["messages"][2]["content"],
        json!([{"type": "tool_result", "tool_use_id": "toolu_1",
            "content": [text("The tool c is loaded."), text("The tool a is loaded.")]},
            text("Go on.")])
    );
    assert_eq!(second["messages"][1], messages[1]);

    messages.extend(searched("toolu_2", &["a", "b", "gone"]));
    let third = translated(&body(tools, json!(messages)));
    let names: Vec<&Value> =
        third["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["ToolSearch", "z", "c", "a", "b"]);
    assert_eq!(third["max_tokens"], 10);
    let again = third.to_string();
    assert_eq!(
        defers(&again),
        Some(ClientDeferral::OwnSearch),
        "only the client's own search is left"
    );
    assert!(!again.contains("tool_reference") && !again.contains("defer_loading"));
}

#[test]
fn references_alone_show_that_a_client_defers() {
    let mut messages = vec![user("hi")];
    messages.extend(searched("toolu_1", &["a"]));
    let body = body(json!([tool("a")]), json!(messages));
    assert_eq!(defers(&body), Some(ClientDeferral::References));
    assert_eq!(translated(&body)["tools"], json!([tool("a")]));
}

#[test]
fn the_hosted_search_is_removed_and_all_tools_are_kept() {
    for kind in [
        "tool_search_tool_bm25_20251119",
        "tool_search_tool_regex",
        "openrouter:tool_search",
        "orq:tool_search",
    ] {
        let tools = json!([deferred("a"), {"type": kind, "name": kind}, tool("z"), deferred("c")]);
        let asks = json!({"type": "server_tool_use", "id": "srvtoolu_1",
            "name": "tool_search_tool_bm25", "input": {"query": "x"}});
        let finds = json!({"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1",
            "content": {"type": "tool_search_tool_search_result",
                "tool_references": [{"type": "tool_reference", "tool_name": "a"}]}});
        let web = json!({"type": "server_tool_use", "id": "srvtoolu_2", "name": "web_search",
            "input": {}});
        let messages = json!([user("hi"),
            {"role": "assistant", "content": [text("So."), asks, finds, web, call("t", "a", json!({}))]},
            {"role": "user", "content": [result("t", "ok")]},
            {"role": "assistant", "content": [asks, finds]},
            user("And?")]);
        let body = body(tools, messages.clone());
        assert_eq!(defers(&body), Some(ClientDeferral::Hosted));
        let plain = translated(&body);
        assert_eq!(plain["tools"], json!([tool("a"), tool("z"), tool("c")]));
        assert_eq!(
            plain["messages"],
            json!([messages[0],
                {"role": "assistant", "content": [text("So."), web, call("t", "a", json!({}))]},
                messages[2],
                {"role": "assistant", "content": [text("I searched for tools.")]},
                messages[4]])
        );
        assert_eq!(defers(&plain.to_string()), None);
    }
}

#[test]
fn everything_else_keeps_its_bytes() {
    let text = r#"{"x": 1.00, "tools": [{"name":"a", "input_schema":{"z": 1e2}}, {"name":"b","defer_loading":true, "k": [ ]}],
        "messages": [{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"tool_reference","tool_name":"b","cache_control":{"type":"ephemeral"}}, {"type":"text", "text":"n"}], "is_error": false}]}], "y" : null }"#;
    assert_eq!(
        without_deferral(text).unwrap(),
        r#"{"x": 1.00, "tools": [{"name":"a", "input_schema":{"z": 1e2}},{"name":"b","k":[ ]}],
        "messages": [{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","cache_control":{"type":"ephemeral"},"text":"The tool b is loaded."},{"type":"text", "text":"n"}],"is_error":false}]}], "y" : null }"#
    );
}
