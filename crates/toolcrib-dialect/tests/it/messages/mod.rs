//! Tests of Anthropic's Messages API.
// Passing a literal by value reads better than passing a reference to it.
#![allow(clippy::needless_pass_by_value)]

mod cache_breakpoints;
mod deferral_emulation;
mod faults;
mod hosted_search;
mod replay;
mod scenarios;
mod signed_thinking;
mod tool_choice;
mod tool_references;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolcrib_dialect::{Api, Mode};

use crate::conversation::{ClientResponse, TestConversation, tools};

const TARGET: &str = "/v1/messages";
const BOTH: [bool; 2] = [false, true];

fn new_conversation(mode: Mode) -> TestConversation {
    TestConversation::new(Api::Messages, mode)
}

/// Returns the client's forty tools.
fn forty() -> Vec<Value> {
    let tools = tools(40).into_iter();
    tools
        .map(|(name, description, schema)| {
            json!({"name": name, "description": description, "input_schema": schema})
        })
        .collect()
}

/// Returns a request with forty tools.
fn request(messages: &Value, stream: bool) -> Value {
    json!({"model": "claude-sonnet-4-5", "max_tokens": 1024, "system": "Be brief.",
        "messages": messages, "tools": forty(), "stream": stream, "metadata": {"user_id": "u-1"}})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn thinking(signature: &str) -> Value {
    json!({"type": "thinking", "thinking": "", "signature": signature})
}

fn call(id: &str, name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

fn search(id: &str, query: &str) -> Value {
    call(id, "tool_search", json!({"query": query}))
}

fn result(id: &str, content: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": content})
}

/// The blocks of the model's output in one round, and the stop reason.
type ModelOutput = (Vec<Value>, &'static str);

/// Returns the upstream's response in round `n`, complete or as events.
fn answer(n: u32, (blocks, stop): &ModelOutput, stream: bool) -> String {
    let id = format!("msg_{n}");
    let usage = json!({"input_tokens": 100 * n, "cache_creation_input_tokens": 7,
        "cache_read_input_tokens": 20, "output_tokens": 10, "service_tier": "standard"});
    if !stream {
        return json!({"id": id, "type": "message", "role": "assistant",
            "model": "claude-sonnet-4-5-20250929", "content": blocks, "stop_reason": stop,
            "stop_sequence": null, "usage": usage})
        .to_string();
    }
    let mut out = String::new();
    let mut event = |data: Value| {
        let (name, data) = (data["type"].as_str().unwrap(), data.to_string());
        out.extend(["event: ", name, "\ndata: ", &data, "\n\n"]);
    };
    let mut start = usage;
    start["output_tokens"] = json!(1);
    event(json!({"type": "message_start", "message": {"id": id, "type": "message",
        "role": "assistant", "model": "claude-sonnet-4-5-20250929", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": start}}));
    event(json!({"type": "ping"}));
    for (index, block) in blocks.iter().enumerate() {
        let (begun, deltas) = in_pieces(block);
        event(json!({"type": "content_block_start", "index": index, "content_block": begun}));
        for delta in deltas {
            event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        event(json!({"type": "content_block_stop", "index": index}));
    }
    event(json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
        "usage": {"output_tokens": 10}}));
    event(json!({"type": "message_stop"}));
    out
}

/// Splits a block, as for a stream, into its start and its deltas.
fn in_pieces(block: &Value) -> (Value, Vec<Value>) {
    let mut begun = block.clone();
    let halves = |text: &str| {
        let half = text.len() / 2;
        [text[..half].to_owned(), text[half..].to_owned()]
    };
    let deltas = match block["type"].as_str().unwrap() {
        "text" => {
            begun["text"] = json!("");
            let pieces = halves(block["text"].as_str().unwrap());
            pieces.map(|piece| json!({"type": "text_delta", "text": piece})).to_vec()
        }
        "thinking" => {
            begun["signature"] = json!("");
            vec![json!({"type": "signature_delta", "signature": block["signature"]})]
        }
        "tool_use" | "server_tool_use" => {
            begun["input"] = json!({});
            let pieces = halves(&block["input"].to_string());
            let piece = |piece| json!({"type": "input_json_delta", "partial_json": piece});
            pieces.map(piece).to_vec()
        }
        _ => Vec::new(),
    };
    (begun, deltas)
}

/// Reads a response as a client SDK does, and checks the required fields of the message.
fn read_as_client(got: &ClientResponse, stream: bool) -> Value {
    let pick = |message: &Value| {
        json!({"id": message["id"], "content": message["content"],
            "stop_reason": message["stop_reason"], "usage": message["usage"]})
    };
    if !stream {
        return pick(&got.json());
    }
    let mut message = Value::Null;
    let mut blocks: Vec<(Value, String)> = Vec::new();
    let (mut open, mut stopped) = (None, false);
    for event in got.events() {
        assert!(!stopped, "event after the end of the message: {event}");
        let index = || usize::try_from(event["index"].as_u64().unwrap()).unwrap();
        match event["type"].as_str().unwrap() {
            "message_start" => {
                assert!(message.is_null(), "a message begins once");
                message = event["message"].clone();
            }
            "content_block_start" => {
                assert_eq!(
                    (open, index()),
                    (None, blocks.len()),
                    "blocks are sent one by one: {event}"
                );
                open = Some(index());
                blocks.push((event["content_block"].clone(), String::new()));
            }
            "content_block_delta" => {
                assert_eq!(open, Some(index()), "{event}");
                let (block, input) = &mut blocks[index()];
                let delta = &event["delta"];
                *input += delta["partial_json"].as_str().unwrap_or_default();
                for key in ["text", "thinking", "signature"] {
                    if let Some(more) = delta[key].as_str() {
                        block[key] = json!(block[key].as_str().unwrap().to_owned() + more);
                    }
                }
            }
            "content_block_stop" => {
                assert_eq!(open.take(), Some(index()), "{event}");
                let (block, input) = &mut blocks[index()];
                if !input.is_empty() {
                    block["input"] = serde_json::from_str(input).unwrap();
                }
            }
            "message_delta" => {
                assert!(message["stop_reason"].is_null(), "a message ends once: {event}");
                message["stop_reason"] = event["delta"]["stop_reason"].clone();
                for (key, value) in event["usage"].as_object().unwrap() {
                    message["usage"][key] = value.clone();
                }
            }
            "message_stop" => stopped = true,
            "ping" => {}
            other => panic!("{other}"),
        }
    }
    assert!(stopped && open.is_none());
    message["content"] = blocks.into_iter().map(|(block, _)| block).collect();
    pick(&message)
}

/// Plays one request with these rounds, and returns the message that the client reads.
fn play(conversation: &mut TestConversation, body: &Value, rounds: &[ModelOutput]) -> Value {
    let stream = body["stream"] == true;
    let answers: Vec<String> =
        rounds.iter().zip(1..).map(|(says, n)| answer(n, says, stream)).collect();
    read_as_client(&conversation.send(TARGET, body, &answers), stream)
}

/// The tools and the history of a body that was sent upstream, as text.
#[derive(Deserialize)]
struct SentBody<'a> {
    #[serde(borrow)]
    tools: &'a RawValue,
    #[serde(borrow)]
    messages: &'a RawValue,
}

/// Checks that the history of body `n` begins with the history of the previous body, byte for byte, and that the tools
/// of both are identical.
fn assert_extends_previous(conversation: &TestConversation, n: usize) {
    let read =
        |n: usize| serde_json::from_str::<SentBody<'_>>(&conversation.sent_bodies[n]).unwrap();
    let (before, after) = (read(n - 1), read(n));
    assert_eq!(before.tools.get(), after.tools.get());
    let (before, after) = (before.messages.get(), after.messages.get());
    let prefix = before.strip_suffix(']').unwrap();
    assert!(after.starts_with(prefix), "body {n}\n{before}\n{after}");
    assert!(after.len() > before.len());
}

/// Checks that the API would accept a history: every call has its result directly after it, every result has a
/// call, and no message is empty.
fn assert_valid_history(messages: &Value) {
    let mut open: Vec<String> = Vec::new();
    for message in messages.as_array().unwrap() {
        let blocks = match &message["content"] {
            Value::String(text) => vec![json!({"type": "text", "text": text})],
            blocks => blocks.as_array().unwrap().clone(),
        };
        assert!(!blocks.is_empty(), "{message}");
        let mut answered = Vec::new();
        let mut past_results = false;
        for block in &blocks {
            let is_result = block["type"] == "tool_result";
            assert!(!(is_result && past_results), "results must come first: {message}");
            past_results |= !is_result;
            if is_result {
                answered.push(block["tool_use_id"].as_str().unwrap().to_owned());
            }
            assert_ne!(block["text"], "", "{message}");
        }
        if message["role"] == "assistant" {
            assert!(open.is_empty(), "calls without a result: {open:?}");
            let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
            open = calls.map(|call| call["id"].as_str().unwrap().to_owned()).collect();
        } else {
            open.sort();
            answered.sort();
            assert_eq!(open, answered, "{messages:#}");
            open.clear();
        }
    }
}
