//! Tests of thinking whose signature covers everything before it.
//!
//! The upstream in these tests signs each thought with a hash of the tools, the system prompt and all blocks before it,
//! and rejects a request with an invalid signature, as newer models do.

use serde_json::{Value, json};
use toolcrib_dialect::Mode;
use toolcrib_dialect::messages::thinking::strip_thinking;
use toolcrib_dialect::mode::{HostedSearch, ReferenceKind};

use super::{
    BOTH, ModelOutput, TARGET, answer, call, new_conversation, read_as_client, request, result,
    search, text, thinking, user,
};
use crate::conversation::{ClientResponse, NextStep, TestConversation};

/// Returns the blocks of a history with their roles. A signature does not depend on how the blocks are distributed over
/// messages.
fn blocks(messages: &Value) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for message in messages.as_array().unwrap() {
        let role = message["role"].as_str().unwrap();
        let content = match &message["content"] {
            Value::String(plain) => vec![text(plain)],
            blocks => blocks.as_array().unwrap().clone(),
        };
        all.extend(content.into_iter().map(|block| (role.to_owned(), block)));
    }
    all
}

/// Returns the signature of a thought that follows these blocks.
fn sign(body: &Value, before: &[(String, Value)]) -> String {
    let bound = json!([body["tools"], body["system"], before]).to_string();
    blake3::hash(bound.as_bytes()).to_hex().to_string()
}

/// Returns the position of the first thought with an invalid signature.
fn first_invalid_signature(body: &Value) -> Option<usize> {
    let all = blocks(&body["messages"]);
    let holds = |at: usize| all[at].1["signature"] == sign(body, &all[..at]);
    (0..all.len()).find(|at| all[*at].1["type"] == "thinking" && !holds(*at))
}

/// Plays one request, in which each round begins with a thought that the upstream signed. Returns the message that the
/// client reads. If the upstream rejects the request, returns the position of the first thought with an invalid
/// signature as the error.
fn send(
    conversation: &mut TestConversation,
    body: &Value,
    rounds: &[ModelOutput],
) -> Result<Value, usize> {
    let stream = body["stream"] == true;
    let mut turn = conversation.turn(TARGET, &body.to_string());
    let mut out = Vec::new();
    for (n, (blocks_of_round, stop)) in (1..).zip(rounds) {
        let sent = turn.request();
        let sent_json: Value = serde_json::from_str(&sent).unwrap();
        conversation.sent.push(sent_json.clone());
        conversation.sent_bodies.push(sent);
        if let Some(at) = first_invalid_signature(&sent_json) {
            return Err(at);
        }
        let signed = thinking(&sign(&sent_json, &blocks(&sent_json["messages"])));
        let blocks_of_round = [vec![signed], blocks_of_round.clone()].concat();
        let upstream = answer(n, &(blocks_of_round, stop), stream);
        let next = if stream {
            turn.bytes(upstream.as_bytes(), &mut out);
            turn.end(&mut out)
        } else {
            turn.complete_response(upstream.as_bytes()).unwrap()
        };
        if let NextStep::Done(done) = next {
            assert_eq!(n as usize, rounds.len());
            conversation.records.extend(done.records.iter().cloned());
            let text = done.body.clone().unwrap_or_else(|| String::from_utf8(out).unwrap());
            return Ok(read_as_client(&ClientResponse { text, done }, stream));
        }
    }
    panic!("the test has no further response for the turn");
}

fn find(mode: Mode, id: &str) -> Value {
    match mode {
        Mode::Bridge => {
            call(id, "tool_call", json!({"name": "crm__find_customer", "arguments": {"q": id}}))
        }
        _ => call(id, "crm__find_customer", json!({"q": id})),
    }
}

/// Plays four requests of a conversation with hidden rounds, search results that are held back until the next request,
/// and plain turns. Returns the conversation and the client's history.
fn converse(mode: Mode, stream: bool) -> (TestConversation, Vec<Value>) {
    let mut conversation = new_conversation(mode);
    let mut messages = vec![user("Find Ada.")];
    let by_name = |id: &str, name: &str| search(id, &format!("select:{name}"));
    let turns: Vec<Vec<ModelOutput>> = vec![
        vec![
            (vec![text("Hm."), by_name("toolu_search01", "crm__find_customer")], "tool_use"),
            (vec![by_name("toolu_search02", "crm__update_customer")], "tool_use"),
            (vec![find(mode, "toolu_find0001")], "tool_use"),
        ],
        vec![(
            vec![by_name("toolu_search03", "archive ticket"), find(mode, "toolu_find0002")],
            "tool_use",
        )],
        vec![(vec![text("Both found.")], "end_turn")],
        vec![
            (vec![by_name("toolu_search04", "export report")], "tool_use"),
            (vec![text("That too.")], "end_turn"),
        ],
    ];
    for rounds in turns {
        let client = send(&mut conversation, &request(&json!(messages), stream), &rounds);
        let content = client.expect("every signature is valid")["content"].clone();
        let calls = content.as_array().unwrap().iter().filter(|block| block["type"] == "tool_use");
        let results: Vec<Value> =
            calls.map(|call| result(call["id"].as_str().unwrap(), "Ada, 7")).collect();
        messages.push(json!({"role": "assistant", "content": content}));
        let answered = json!({"role": "user", "content": results});
        messages.push(if results.is_empty() { user("And?") } else { answered });
    }
    (conversation, messages)
}

#[test]
fn signatures_stay_valid_over_a_conversation_with_hidden_rounds() {
    for mode in [
        Mode::Bridge,
        Mode::Reference(ReferenceKind::ToolReference),
        Mode::Hosted(HostedSearch::Bm25),
    ] {
        for stream in BOTH {
            let (mut conversation, messages) = converse(mode, stream);
            let last = vec![(vec![text("Done.")], "end_turn")];
            send(&mut conversation, &request(&json!(messages), stream), &last).expect("it holds");
        }
    }
}

#[test]
fn without_records_signatures_are_invalid_until_thinking_is_removed() {
    let (mut conversation, messages) = converse(Mode::Bridge, true);
    conversation.records.clear();
    let body = request(&json!(messages), true);
    let last: Vec<ModelOutput> = vec![(vec![text("Done.")], "end_turn")];
    assert!(send(&mut conversation, &body, &last).is_err());
    let body: Value = serde_json::from_str(&strip_thinking(&body.to_string())).unwrap();
    send(&mut conversation, &body, &last).expect("no signature is left");
}

#[test]
fn only_thinking_is_stripped() {
    let text = r#"{"model": "m", "messages": [ {"role":"user", "content":"thinking"},
        {"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"},
            {"type": "text", "text": "a b", "x": 1.00}, {"type":"redacted_thinking","data":"d"}], "y": 2},
        {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"}]},
        {"role":"user","content":[{"type":"thinking"}]} ], "thinking": {"type": "adaptive"} }"#;
    assert_eq!(
        strip_thinking(text),
        r#"{"model": "m", "messages": [{"role":"user", "content":"thinking"},{"role":"assistant","content":[{"type": "text", "text": "a b", "x": 1.00}],"y":2},{"role":"user","content":[{"type":"thinking"}]}], "thinking": {"type": "adaptive"} }"#
    );
    for untouched in ["", "{", "[]", r#"{"messages": 1}"#, r#"{ "messages": [ {"role":"user"} ] }"#]
    {
        assert_eq!(strip_thinking(untouched), untouched);
    }
}
