//! Tests of clients that defer tools themselves, with an upstream that supports only Chat Completions. Claude Code uses
//! tool references, and Codex uses namespaces.

use serde_json::{Value, json};
use toolcrib_dialect::Api;
use toolcrib_proxy::config::RouteConfig;
use toolcrib_testkit::provider::{CannedResponse, Options};

use crate::client_requests::ClientCase;
use crate::setup::TestSetup;

/// Starts a proxy that sends every model's requests to a provider that supports only Chat Completions.
async fn chat_only(options: Options) -> TestSetup {
    let provider = toolcrib_testkit::provider::Provider::start(options).unwrap();
    let mut config = crate::setup::config(&provider);
    let route = json!({"models": ["*"], "url": provider.url, "speaks": "chat"});
    config.routes = vec![serde_json::from_value::<RouteConfig>(route).unwrap()];
    TestSetup::start(provider, config, None).await
}

/// Returns a response of Chat Completions with this message.
fn chat_response(message: &Value) -> CannedResponse {
    let finish = if message.get("tool_calls").is_some() { "tool_calls" } else { "stop" };
    CannedResponse::json(
        200,
        &json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "local",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}}),
    )
}

fn calls(name: &str, arguments: &str) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_0123456789", "type": "function", "function": {"name": name, "arguments": arguments}}]})
}

fn names(body: &Value) -> Vec<String> {
    let tools = body["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn claude_codes_references_are_translated_for_a_chat_upstream() {
    let answer = chat_response(&calls("crm__find", r#"{"q":"ada"}"#));
    let setup = chat_only(Options::responses([answer])).await;
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    let body = json!({
        "model": "claude-opus-5", "max_tokens": 100,
        "tools": [
            {"name": "ToolSearch", "description": "Finds tools.", "input_schema": schema},
            {"name": "crm__find", "description": "Finds a customer.", "input_schema": schema, "defer_loading": true},
            {"name": "crm__drop", "description": "Drops a customer.", "input_schema": schema, "defer_loading": true}
        ],
        "messages": [
            {"role": "user", "content": "Find Ada."},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "toolu_1", "name": "ToolSearch", "input": {"q": "customer"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1",
                "content": [{"type": "tool_reference", "tool_name": "crm__find"}]}]}
        ]
    });
    let got = setup.ask(ClientCase { api: Api::Messages, stream: false }, &body).await;
    assert_eq!(got.status, 200, "{}", got.text());
    assert_eq!(
        got.json()["content"],
        json!([
        {"type": "tool_use", "id": "call_0123456789", "name": "crm__find", "input": {"q": "ada"}}])
    );

    let sent = &setup.provider.requests()[0];
    assert_eq!(sent.path, "/v1/chat/completions");
    let sent = sent.json();
    // Of the deferred tools, only the referenced ones are loaded.
    assert_eq!(names(&sent), ["ToolSearch", "crm__find"]);
    assert!(
        !sent.to_string().contains("tool_reference") && !sent.to_string().contains("defer_loading")
    );
    let result = sent["messages"].as_array().unwrap().last().unwrap();
    assert_eq!((&result["role"], &result["tool_call_id"]), (&json!("tool"), &json!("toolu_1")));
    assert!(result["content"].as_str().unwrap().contains("crm__find"));
}

#[tokio::test]
async fn codex_namespaces_and_search_are_translated_for_a_chat_upstream() {
    let search = chat_response(&calls("tool_search", r#"{"query":"customer"}"#));
    let call = chat_response(&calls("crm__find", r#"{"q":"ada"}"#));
    let setup = chat_only(Options::responses([search, call])).await;
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    let find = json!({"type": "function", "name": "find", "description": "Finds a customer.",
        "parameters": schema, "defer_loading": true});
    let namespace =
        json!({"type": "namespace", "name": "crm", "description": "Customers.", "tools": [find]});
    let tools = json!([
        {"type": "function", "name": "shell", "description": "Runs a command.", "parameters": schema},
        {"type": "tool_search", "execution": "client", "description": "Finds tools.", "parameters":
            {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}}
    ]);
    let mut input = vec![json!({"type": "message", "role": "user", "content": "Find Ada."})];
    let case = ClientCase { api: Api::Responses, stream: false };
    let ask = |input: &[Value]| json!({"model": "gpt-5.4", "store": false, "tools": tools, "input": input});

    let got = setup.ask(case, &ask(&input)).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let searched = got.json()["output"][0].clone();
    assert_eq!(searched["type"], "tool_search_call");
    assert_eq!(searched["arguments"], json!({"query": "customer"}));
    assert_eq!(got.json()["tools"], tools, "the response repeats the client's own tools");

    // The client runs the search itself, and returns the result in its own format.
    let output = json!({"type": "tool_search_output", "execution": "client", "status": "completed",
        "call_id": searched["call_id"], "tools": [namespace]});
    input.extend([searched, output]);
    let got = setup.ask(case, &ask(&input)).await;
    let call = got.json()["output"][0].clone();
    assert_eq!(
        (&call["type"], &call["name"], &call["namespace"], &call["arguments"]),
        (&json!("function_call"), &json!("find"), &json!("crm"), &json!(r#"{"q":"ada"}"#))
    );

    let sent = setup.bodies();
    assert_eq!(names(&sent[0]), ["shell", "tool_search"]);
    assert_eq!(names(&sent[1]), ["shell", "tool_search", "crm__find"]);
    assert!(
        sent[1].to_string().contains("tool_search") && !sent[1].to_string().contains("namespace")
    );
}

#[tokio::test]
async fn two_hundred_tools_of_messages_are_deferred_for_a_chat_upstream() {
    for api in [Api::Messages, Api::Responses] {
        for stream in [false, true] {
            let setup = chat_only(Options::default()).await;
            let case = ClientCase { api, stream };
            let view = setup
                .ask_and_read(
                    case,
                    &case.ask(crate::client_requests::GOAL, &crate::client_requests::tools(200)),
                )
                .await;
            assert_eq!(view.calls.len(), 1, "{case:?}");
            assert_eq!(view.calls[0].name, "crm__find_customer");
            let paths: Vec<String> =
                setup.provider.requests().iter().map(|sent| sent.path.clone()).collect();
            assert_eq!(paths, ["/v1/chat/completions", "/v1/chat/completions"], "{case:?}");
            assert_eq!(names(&setup.bodies()[0]), ["tool_search", "tool_describe", "tool_call"]);
        }
    }
}
