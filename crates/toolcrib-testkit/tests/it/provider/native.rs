//! Tests of native searches: within a response, split across two responses, and run by the client.

use serde_json::{Value, json};
use toolcrib_testkit::provider::{Action, Options, Provider, Step};

use super::agent::post;

fn kinds(items: &Value) -> Vec<&str> {
    items.as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect()
}

fn anthropic(messages: Value) -> Value {
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    json!({"model": "m", "max_tokens": 9, "messages": messages, "tools": [
        {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
        {"name": "clock", "input_schema": schema},
        {"name": "crm_find", "description": "Find a customer", "input_schema": schema, "defer_loading": true},
        {"name": "mail_send", "description": "Send mail", "input_schema": schema, "defer_loading": true},
    ]})
}

#[tokio::test]
async fn anthropic_searches_within_its_response() {
    let steps = [
        Step::new([Action::call("crm_find", json!({"q": "ada"}))]),
        Step::new([Action::report("Done: ")]),
    ];
    let provider = Provider::start(Options::steps(steps)).unwrap();
    let url = format!("{}/v1/messages", provider.url);
    let user = json!({"role": "user", "content": "Go."});
    let (_, answer) = post(&url, &anthropic(json!([user]))).await;
    let content = &answer["content"];
    assert_eq!(kinds(content), ["server_tool_use", "tool_search_tool_result", "tool_use"]);
    assert_eq!(content[0]["input"], json!({"query": "crm find"}));
    let references = json!([{"type": "tool_reference", "tool_name": "crm_find"}]);
    assert_eq!(content[1]["content"]["tool_references"], references);
    assert_eq!(content[1]["tool_use_id"], content[0]["id"]);
    // The reference in the history stays valid, so the second step needs no search.
    let result =
        json!({"type": "tool_result", "tool_use_id": content[2]["id"], "content": "found"});
    let history = json!([user, {"role": "assistant", "content": content}, {"role": "user", "content": [result]}]);
    let (_, answer) = post(&url, &anthropic(history)).await;
    assert_eq!(answer["content"], json!([{"type": "text", "text": "Done: found"}]));
}

#[tokio::test]
async fn a_search_next_to_a_call_gets_its_result_in_the_next_response() {
    let steps = [
        Step::new([Action::call("clock", json!({"q": "now"})), Action::search("customer")]),
        Step::new([Action::call("crm_find", json!({"q": "ada"}))]),
    ];
    let provider = Provider::start(Options::steps(steps)).unwrap();
    let url = format!("{}/v1/messages", provider.url);
    let user = json!({"role": "user", "content": "Go."});
    let (_, first) = post(&url, &anthropic(json!([user]))).await;
    assert_eq!(kinds(&first["content"]), ["tool_use", "server_tool_use"]);
    assert_eq!(first["stop_reason"], "tool_use");
    let result =
        json!({"type": "tool_result", "tool_use_id": first["content"][0]["id"], "content": "noon"});
    let history = json!([user, {"role": "assistant", "content": first["content"]}, {"role": "user", "content": [result]}]);
    let (_, second) = post(&url, &anthropic(history)).await;
    assert_eq!(second["content"][0]["type"], "tool_search_tool_result");
    assert_eq!(second["content"][0]["tool_use_id"], first["content"][1]["id"]);
    assert_eq!(second["content"].as_array().unwrap().last().unwrap()["name"], "crm_find");
}

#[tokio::test]
async fn a_reference_in_a_result_makes_a_deferred_tool_callable() {
    let provider = Provider::start(Options::steps([Step::new([Action::call(
        "crm_find",
        json!({"q": "ada"}),
    )])]))
    .unwrap();
    let schema = json!({"type": "object", "properties": {"query": {"type": "string"}}});
    let body = |messages: Value| {
        let mut body = anthropic(messages);
        body["tools"][0] = json!({"name": "tool_search", "input_schema": schema});
        body
    };
    let url = format!("{}/v1/messages", provider.url);
    let user = json!({"role": "user", "content": "Go."});
    let (_, first) = post(&url, &body(json!([user]))).await;
    assert_eq!(first["content"][0]["name"], "tool_search");
    let result = json!({"type": "tool_result", "tool_use_id": first["content"][0]["id"],
        "content": [{"type": "tool_reference", "tool_name": "crm_find"}]});
    let history = json!([user, {"role": "assistant", "content": first["content"]}, {"role": "user", "content": [result]}]);
    let (_, second) = post(&url, &body(history)).await;
    assert_eq!(second["content"][0]["name"], "crm_find");
    assert_eq!(second["content"][0]["input"], json!({"q": "ada"}));
}

fn responses(input: Value, search: Value) -> Value {
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    json!({"model": "m", "input": input, "tools": [
        search,
        {"type": "namespace", "name": "crm", "description": "Customers", "tools": [
            {"type": "function", "name": "find", "parameters": schema, "defer_loading": true}]},
        {"type": "function", "name": "mail_send", "description": "Send mail", "parameters": schema, "defer_loading": true},
    ]})
}

#[tokio::test]
async fn responses_searches_within_its_response_and_names_the_namespace() {
    let steps = [Step::new([
        Action::call("crm__find", json!({"q": "ada"})),
        Action::call("mail_send", json!({"q": "hi"})),
    ])];
    let provider = Provider::start(Options::steps(steps)).unwrap();
    let url = format!("{}/v1/responses", provider.url);
    let (_, answer) = post(&url, &responses(json!("Go."), json!({"type": "tool_search"}))).await;
    let output = &answer["output"];
    let round = ["tool_search_call", "tool_search_output", "function_call"];
    assert_eq!(kinds(output), [round, round].concat());
    assert_eq!(output[0]["call_id"], Value::Null);
    assert_eq!(output[0]["arguments"], json!({"paths": ["crm"]}));
    let called = |at: usize| (output[at]["namespace"].as_str(), output[at]["name"].as_str());
    assert_eq!(called(2), (Some("crm"), Some("find")));
    assert_eq!(called(5), (Some("mail_send"), Some("mail_send")));
}

#[tokio::test]
async fn responses_lets_the_client_search() {
    let steps = [Step::new([Action::call("crm__find", json!({"q": "ada"}))])];
    let provider = Provider::start(Options::steps(steps)).unwrap();
    let url = format!("{}/v1/responses", provider.url);
    let search = json!({"type": "tool_search", "execution": "client", "description": "Find tools", "parameters": {}});
    let (_, answer) = post(&url, &responses(json!("Go."), search.clone())).await;
    assert_eq!(kinds(&answer["output"]), ["tool_search_call"]);
    let call = &answer["output"][0];
    let loaded = json!({"type": "tool_search_output", "execution": "client", "call_id": call["call_id"],
        "status": "completed", "tools": [{"type": "function", "name": "crm__find", "parameters": {}}]});
    let history = json!([{"role": "user", "content": "Go."}, call, loaded]);
    let (_, answer) = post(&url, &responses(history, search)).await;
    assert_eq!(answer["output"][0]["name"], "crm__find");
    assert_eq!(answer["output"][0]["namespace"], "crm__find");
}

#[tokio::test]
async fn responses_continues_from_a_stored_response() {
    let provider = Provider::start(Options::default()).unwrap();
    let url = format!("{}/v1/responses", provider.url);
    let tools = json!([{"type": "function", "name": "a", "parameters": {}}]);
    let (_, first) =
        post(&url, &json!({"model": "m", "input": "goal: a {}", "tools": tools})).await;
    let output = json!({"type": "function_call_output", "call_id": first["output"][0]["call_id"], "output": "ok"});
    let next = json!({"model": "m", "input": [output], "tools": tools, "previous_response_id": first["id"]});
    let (_, second) = post(&url, &next).await;
    assert_eq!(second["output"][0]["content"][0]["text"], "Done: ok");
    assert_eq!(second["previous_response_id"], first["id"]);
    assert_ne!(second["id"], first["id"]);
}
