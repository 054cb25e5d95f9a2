//! Tests of translation: the client uses one API and the backend another.

mod arbitrary_input;
mod hidden_search;
mod messages;
mod messages_stream;
mod properties;
mod responses;
mod responses_stream;

use serde_json::{Value, json};
use toolcrib_dialect::Api;
use toolcrib_dialect::translate::{Adapter, adapter};

/// The APIs of clients whose requests can be translated.
const CLIENTS: [Api; 2] = [Api::Messages, Api::Responses];

/// Translates a request. Returns the adapter, which can then translate the response, and the translated request.
fn translated(from: Api, body: &Value) -> (Adapter, Value) {
    let mut adapter = adapter(from, Api::Chat).unwrap();
    let adapted = adapter.request(&body.to_string()).unwrap();
    assert_eq!(adapted.path, "/v1/chat/completions");
    (adapter, serde_json::from_str(&adapted.body).unwrap())
}

/// Translates a complete response. Returns the translated status and body.
fn whole(adapter: &mut Adapter, status: u16, body: &str) -> (u16, Value) {
    let answer = adapter.complete_response(status, body.as_bytes());
    (answer.status, serde_json::from_slice(&answer.body).unwrap())
}

/// Returns the bytes of a stream of these chunks. A chunk that is a string is written as it is.
fn stream_bytes(chunks: &[Value]) -> String {
    chunks
        .iter()
        .map(|chunk| match chunk {
            Value::String(text) => format!("data: {text}\n\n"),
            chunk => format!("data: {chunk}\n\n"),
        })
        .collect()
}

/// Returns the events that a client gets for the chunks of a backend, fed byte by byte.
fn streamed(adapter: &mut Adapter, chunks: &[Value]) -> Vec<Value> {
    let mut out = Vec::new();
    for byte in stream_bytes(chunks).as_bytes() {
        adapter.bytes(&[*byte], &mut out);
    }
    adapter.end(&mut out);
    events(&out)
}

/// Returns the data of events, and checks that the name of each event is its `type`.
fn events(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).unwrap();
    text.split_terminator("\n\n")
        .filter(|event| !event.starts_with(':'))
        .map(|event| {
            let (name, data) = event.split_once('\n').unwrap();
            let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
            data
        })
        .collect()
}

/// Returns a chunk of the streamed response `chatcmpl-1`.
fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000,
        "model": "qwen3-32b", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

/// Returns the chunk that contains the token counts.
fn usage_chunk() -> Value {
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000,
        "model": "qwen3-32b", "choices": [], "usage": usage()})
}

fn usage() -> Value {
    json!({"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150,
        "prompt_tokens_details": {"cached_tokens": 90, "cache_write_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 8}})
}

/// Returns a piece of a streamed call.
fn piece(index: usize, id: Option<&str>, name: Option<&str>, arguments: &str) -> Value {
    let mut function = json!({"arguments": arguments});
    if let Some(name) = name {
        function["name"] = json!(name);
    }
    let mut piece = json!({"index": index, "function": function});
    if let Some(id) = id {
        piece["id"] = json!(id);
        piece["type"] = json!("function");
    }
    piece
}

fn call_chunk(pieces: &[Value]) -> Value {
    chunk(&json!({"tool_calls": pieces}), None)
}

/// Returns a stream with text and two calls, the second of which begins before the first has ended.
fn two_calls() -> Vec<Value> {
    vec![
        chunk(&json!({"role": "assistant", "content": "", "reasoning_content": "Hm."}), None),
        chunk(&json!({"content": "Loo"}), None),
        chunk(&json!({"content": "king."}), None),
        call_chunk(&[piece(0, Some("call_a"), Some("read"), "")]),
        call_chunk(&[piece(0, None, None, "{\"path\":")]),
        call_chunk(&[piece(1, Some("call_b"), Some("wri"), "")]),
        call_chunk(&[piece(1, None, Some("te"), "{\"path\": \"b\"")]),
        call_chunk(&[piece(0, None, None, " \"a\"}"), piece(1, None, None, "}")]),
        chunk(&json!({}), Some("tool_calls")),
        usage_chunk(),
        json!("[DONE]"),
    ]
}

/// Returns the text and the calls of [`two_calls`] as a complete response.
fn two_calls_complete() -> String {
    json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000,
        "model": "qwen3-32b", "choices": [{"index": 0, "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": "Looking.", "reasoning_content": "Hm.",
                "tool_calls": [
                    {"id": "call_a", "type": "function",
                        "function": {"name": "read", "arguments": "{\"path\": \"a\"}"}},
                    {"id": "call_b", "type": "function",
                        "function": {"name": "write", "arguments": "{\"path\": \"b\"}"}}]}}],
        "usage": usage()})
    .to_string()
}

#[test]
fn only_these_two_translations_are_supported() {
    for from in Api::ALL {
        for to in Api::ALL {
            let known = matches!((from, to), (Api::Messages | Api::Responses, Api::Chat));
            assert_eq!(adapter(from, to).is_some(), known, "{from} to {to}");
        }
    }
}
