//! Tests of OpenAI's Responses API.

mod deferral_emulation;
mod extreme_input;
mod faults;
mod native_deferral;
mod replay;
mod scenarios;
mod stored_responses;

use serde_json::{Value, json};
use toolcrib_dialect::{Api, Mode};

use crate::conversation::{ClientResponse, TestConversation, tools};

const TARGET: &str = "/v1/responses";
const BOTH: [bool; 2] = [false, true];

fn new_conversation() -> TestConversation {
    TestConversation::new(Api::Responses, Mode::Bridge)
}

/// Returns the client's forty tools.
fn client_tools() -> Value {
    let tools = tools(40).into_iter().map(|(name, description, parameters)| {
        json!({"type": "function", "name": name, "description": description,
            "parameters": parameters, "strict": false})
    });
    tools.collect()
}

fn request(input: &Value, stream: bool) -> Value {
    json!({"model": "gpt-5.4", "input": input, "tools": client_tools(), "stream": stream,
        "store": false, "include": ["reasoning.encrypted_content"], "temperature": 0.25})
}

fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

fn output(id: &str, text: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": text})
}

fn message(n: u32, text: &str) -> Value {
    json!({"id": format!("msg_{n}"), "type": "message", "status": "completed", "role": "assistant",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": format!("fc_{id}"), "type": "function_call", "status": "completed",
        "arguments": arguments, "call_id": id, "name": name})
}

fn reasoning(n: u32) -> Value {
    json!({"id": format!("rs_{n}"), "type": "reasoning", "summary": [],
        "encrypted_content": format!("gAAAA{n}==")})
}

fn search(id: &str, query: &str) -> Value {
    call(id, "tool_search", &json!({"query": query}).to_string())
}

fn bridge(id: &str, name: &str, arguments: &Value) -> Value {
    call(id, "tool_call", &json!({"name": name, "arguments": arguments}).to_string())
}

/// Returns the upstream's response in round `n`, with these items: complete, or as events.
fn answer(n: u32, items: &[Value], stream: bool) -> String {
    response_with_status(n, items, "completed", stream)
}

fn response(n: u32, status: &str, output: &[Value], usage: &Value) -> Value {
    json!({"id": format!("resp_{n}"), "object": "response", "created_at": 1000 + n, "status": status,
        "error": null, "model": "gpt-5.4-2026", "output": output, "previous_response_id": null,
        "tool_choice": "auto", "tools": [{"type": "function", "name": "sent_upstream"}], "usage": usage})
}

fn response_with_status(n: u32, items: &[Value], status: &str, stream: bool) -> String {
    let usage = json!({"input_tokens": 100 * n, "input_tokens_details": {"cached_tokens": 5},
        "output_tokens": 10, "total_tokens": 100 * n + 10});
    let whole = response(n, status, items, &usage);
    if !stream {
        return whole.to_string();
    }
    let mut events = EventBuilder::default();
    let begun = response(n, "in_progress", &[], &Value::Null);
    events.add("response.created", &json!({"response": begun}));
    events.add("response.in_progress", &json!({"response": begun}));
    for (index, item) in items.iter().enumerate() {
        events.item(index, item);
    }
    events.add(&format!("response.{status}"), &json!({"response": whole}));
    events.text
}

/// A stream of events in the format of the API, to which a test adds events.
#[derive(Default)]
struct EventBuilder {
    text: String,
    number: usize,
}

impl EventBuilder {
    fn add(&mut self, kind: &str, more: &Value) {
        let mut data = json!({"type": kind, "sequence_number": self.number});
        data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.text.extend(["event: ", kind, "\ndata: ", &data.to_string(), "\n\n"]);
        self.number += 1;
    }

    fn item(&mut self, index: usize, item: &Value) {
        let id = &item["id"];
        let mut begun = item.clone();
        begun["status"] = json!("in_progress");
        match item["type"].as_str().unwrap() {
            "function_call" => begun["arguments"] = json!(""),
            "message" => begun["content"] = json!([]),
            "tool_search_call" => {
                // In recorded streams, the `call_id` of a tool search call differs between its first and its last
                // event.
                begun["arguments"] = json!({});
                if begun["call_id"].is_string() {
                    begun["call_id"] = json!("call_of_the_beginning");
                }
            }
            _ => {}
        }
        let at = |more: Value| {
            let mut all = json!({"item_id": id, "output_index": index});
            all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            all
        };
        self.add("response.output_item.added", &json!({"output_index": index, "item": begun}));
        match item["type"].as_str().unwrap() {
            "function_call" => {
                let arguments = item["arguments"].as_str().unwrap();
                let half = arguments.len() / 2;
                for part in [&arguments[..half], &arguments[half..]] {
                    let delta = json!({"delta": part, "obfuscation": "x1"});
                    self.add("response.function_call_arguments.delta", &at(delta));
                }
                self.add(
                    "response.function_call_arguments.done",
                    &at(json!({"arguments": arguments, "name": item["name"]})),
                );
            }
            "message" => {
                let text = item["content"][0]["text"].as_str().unwrap();
                for word in text.split_inclusive(' ') {
                    let delta = json!({"content_index": 0, "delta": word, "obfuscation": "x2"});
                    self.add("response.output_text.delta", &at(delta));
                }
                let done = json!({"content_index": 0, "text": text});
                self.add("response.output_text.done", &at(done));
            }
            _ => {}
        }
        self.add("response.output_item.done", &json!({"output_index": index, "item": item}));
    }
}

/// A response as the client reads it.
#[derive(Debug, PartialEq)]
struct ReceivedResponse {
    id: String,
    status: String,
    /// The items that the client adds to its next request.
    output: Vec<Value>,
    usage: Value,
}

/// Checks that a response repeats the client's own tools. A test may have added more tools after them.
fn assert_client_tools(tools: &Value) {
    let (tools, own) = (tools.as_array().unwrap(), client_tools());
    assert!(tools.starts_with(own.as_array().unwrap()), "the response repeats the client's tools");
}

/// Reads a response as a client SDK does, and checks the sequence numbers of a stream.
fn read_as_client(got: &ClientResponse, stream: bool) -> ReceivedResponse {
    let received = |response: &Value| ReceivedResponse {
        id: response["id"].as_str().unwrap().into(),
        status: response["status"].as_str().unwrap().into(),
        output: response["output"].as_array().unwrap().clone(),
        usage: response["usage"].clone(),
    };
    if !stream {
        let body = got.json();
        assert_client_tools(&body["tools"]);
        return received(&body);
    }
    let mut last: Option<ReceivedResponse> = None;
    let (mut items, mut arguments) = (Vec::<Value>::new(), Vec::<String>::new());
    let mut id = Value::Null;
    for (number, event) in got.events().into_iter().enumerate() {
        assert!(last.is_none(), "event after the end of the response: {event}");
        assert_eq!(event["sequence_number"], json!(number), "{event}");
        if let Some(response) = event.get("response") {
            assert_client_tools(&response["tools"]);
            if number == 0 {
                id = response["id"].clone();
            }
            assert_eq!(response["id"], id, "all events have the same id");
        }
        let index = event["output_index"].as_u64().map(|index| usize::try_from(index).unwrap());
        match event["type"].as_str().unwrap() {
            "response.created" => assert_eq!(number, 0),
            "response.in_progress" => assert_eq!(number, 1),
            "response.output_item.added" => {
                assert_eq!(index, Some(items.len()), "{event}");
                items.push(event["item"].clone());
                arguments.push(String::new());
            }
            "response.function_call_arguments.delta" => {
                arguments[index.unwrap()] += event["delta"].as_str().unwrap();
            }
            "response.function_call_arguments.done" => {
                assert_eq!(event["arguments"], json!(arguments[index.unwrap()]));
                let begun = &items[index.unwrap()];
                assert_eq!((&event["item_id"], &event["name"]), (&begun["id"], &begun["name"]));
            }
            "response.output_item.done" => {
                let (begun, done) = (&mut items[index.unwrap()], &event["item"]);
                assert_eq!((&begun["id"], &begun["name"]), (&done["id"], &done["name"]));
                if done["type"] == "function_call" {
                    assert_eq!(done["arguments"], json!(arguments[index.unwrap()]));
                    assert_eq!(begun["arguments"], "");
                }
                *begun = done.clone();
            }
            "response.completed" | "response.incomplete" => {
                last = Some(received(&event["response"]));
                assert_eq!(last.as_ref().unwrap().output, items);
            }
            _ => {}
        }
    }
    last.expect("the stream has no last event")
}

/// Returns the upstream's responses for these rounds, in order.
fn answers(rounds: &[&[Value]], stream: bool) -> Vec<String> {
    (1..).zip(rounds).map(|(n, items)| answer(n, items, stream)).collect()
}

fn list(items: &[Value]) -> Value {
    json!(items)
}

/// Returns the client's next input: the input that it sent before, the output that it received, and its new items.
fn next_input(input: &Value, received: &ReceivedResponse, more: &[Value]) -> Value {
    let mut all = input.as_array().unwrap().clone();
    all.extend(received.output.iter().cloned());
    all.extend(more.iter().cloned());
    json!(all)
}

fn input_of(conversation: &TestConversation, at: usize) -> &Vec<Value> {
    conversation.sent[at]["input"].as_array().unwrap()
}
