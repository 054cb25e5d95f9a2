//! Tests with servers that deviate from the specification.

use serde_json::{Value, json};
use toolcrib_dialect::Mode;

use super::{TARGET, new_conversation, read_as_client, request};
use crate::conversation::{ClientResponse, TestConversation};

/// Returns a request of a client with a shell tool, which is always sent in full.
fn request_with_shell() -> Value {
    let mut body = request(&json!([{"role": "user", "content": "Find Ada."}]), true);
    let shell = json!({"type": "function", "function": {"name": "bash", "description": "Runs a command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}});
    body["tools"].as_array_mut().unwrap().push(shell);
    body
}

fn chunk(delta: &Value, finish: &Value, usage: &Value) -> String {
    let chunk = json!({"id": "chatcmpl-1", "created": 1001, "usage": usage,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    format!("data: {chunk}\n\n")
}

fn piece(delta: &Value) -> String {
    chunk(delta, &Value::Null, &Value::Null)
}

fn end() -> String {
    chunk(&json!({}), &json!("tool_calls"), &Value::Null) + "data: [DONE]\n\n"
}

fn call(index: usize, id: &str, name: &str, arguments: &str) -> Value {
    json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

const WRAPPED: &str = r#"{"name":"crm__find_customer","arguments":{"q":"ada"}}"#;
const SEARCH: &str = r#"{"query":"find customer"}"#;

/// Plays these responses of the upstream, with a chunk for the role added at the start of the first response. Returns
/// what the client gets.
fn send(conversation: &mut TestConversation, answers: &[String]) -> ClientResponse {
    let mut answers = answers.to_vec();
    answers[0].insert_str(0, &role());
    conversation.send(TARGET, &request_with_shell(), &answers)
}

fn role() -> String {
    piece(&json!({"role": "assistant", "content": ""}))
}

fn names(got: &ClientResponse) -> Vec<String> {
    let calls =
        read_as_client(got, true).message["tool_calls"].as_array().cloned().unwrap_or_default();
    calls.iter().map(|call| call["function"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn calls_and_the_end_in_one_chunk_keep_their_order() {
    let calls = json!([
        call(0, "call_bash00000001", "bash", r#"{"command":"ls"}"#),
        call(1, "call_find00000001", "tool_call", WRAPPED)
    ]);
    let delta = json!({"role": "assistant", "content": null, "tool_calls": calls});
    let upstream = chunk(&delta, &json!("tool_calls"), &Value::Null) + "data: [DONE]\n\n";
    let got = new_conversation().send(TARGET, &request_with_shell(), &[upstream]);
    assert_eq!(names(&got), ["bash", "crm__find_customer"]);
}

#[test]
fn a_name_repeated_in_every_piece_is_used_once() {
    let search =
        |arguments| json!({"tool_calls": [call(0, "call_search000001", "tool_search", arguments)]});
    let first = piece(&search(&SEARCH[..9])) + &piece(&search(&SEARCH[9..])) + &end();
    let second =
        piece(&json!({"tool_calls": [call(0, "call_find00000001", "tool_call", WRAPPED)]}))
            + &end();
    let got = send(&mut new_conversation(), &[first, second]);
    assert_eq!(
        (names(&got), got.done.summary.searches),
        (vec!["crm__find_customer".to_owned()], 1)
    );
}

#[test]
fn a_call_whose_id_changes_is_still_one_call() {
    let more = json!({"tool_calls": [{"index": 0, "id": "call_another00001", "function": {"arguments": r#""ls"}"#}}]});
    let upstream =
        piece(&json!({"tool_calls": [call(0, "call_bash00000001", "bash", r#"{"command":"#)]}))
            + &piece(&more)
            + &end();
    let got = send(&mut new_conversation(), std::slice::from_ref(&upstream));
    assert_eq!(got.text, role() + &upstream);
    assert!(got.done.records.is_empty());
}

#[test]
fn an_error_next_to_a_choice_ends_the_turn() {
    let error = json!({"id": "chatcmpl-1", "error": {"message": "overloaded", "code": 502},
        "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]});
    let half = piece(
        &json!({"tool_calls": [call(0, "call_search000001", "tool_search", r#"{"query":"#)]}),
    );
    let got = send(&mut new_conversation(), &[format!("{half}data: {error}\n\n")]);
    assert!(got.text.ends_with(&format!("data: {error}\n\n")), "{}", got.text);
    assert_eq!((got.done.records.len(), got.done.summary.searches), (0, 0));
}

#[test]
fn usage_repeated_in_every_chunk_is_counted_once() {
    let usage = |output| json!({"prompt_tokens": 100, "completion_tokens": output, "total_tokens": 100 + output});
    let round = |delta: &Value| {
        chunk(delta, &Value::Null, &usage(1))
            + &chunk(&json!({}), &json!("tool_calls"), &usage(5))
            + "data: [DONE]\n\n"
    };
    let first =
        round(&json!({"tool_calls": [call(0, "call_search000001", "tool_search", SEARCH)]}));
    let second =
        round(&json!({"tool_calls": [call(0, "call_find00000001", "tool_call", WRAPPED)]}));
    let got = send(&mut new_conversation(), &[first, second]);
    assert_eq!(
        read_as_client(&got, true).usage,
        json!({"prompt_tokens": 200, "completion_tokens": 10, "total_tokens": 210})
    );
}

#[test]
fn a_tool_found_twice_is_appended_once() {
    let mut conversation = TestConversation::new(toolcrib_dialect::Api::Chat, Mode::Append);
    let search =
        |id: &str| piece(&json!({"tool_calls": [call(0, id, "tool_search", SEARCH)]})) + &end();
    let calls = piece(
        &json!({"tool_calls": [call(0, "call_find00000001", "crm__find_customer", r#"{"q":"ada"}"#)]}),
    );
    let answers = [search("call_search000001"), search("call_search000002"), calls + &end()];
    send(&mut conversation, &answers);
    let tools = conversation.sent[2]["tools"].as_array().unwrap();
    let found = tools.iter().filter(|tool| tool["function"]["name"] == "crm__find_customer");
    assert_eq!(found.count(), 1);
}
