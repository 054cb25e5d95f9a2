//! Tests of Chat Completions.

mod custom_tools;
mod faults;
mod scenarios;
mod terse;
mod truncated;
mod unusual_servers;

use serde_json::{Value, json};
use toolcrib_dialect::{Api, Mode};

use crate::conversation::{TestConversation, begins_with, tools};

const TARGET: &str = "/v1/chat/completions";

fn new_conversation() -> TestConversation {
    TestConversation::new(Api::Chat, Mode::Bridge)
}

/// Returns a request with forty tools.
fn request(messages: &Value, stream: bool) -> Value {
    let tools: Vec<Value> = tools(40)
        .into_iter()
        .map(|(name, description, parameters)| {
            json!({"type": "function", "function": {
                "name": name, "description": description, "parameters": parameters}})
        })
        .collect();
    json!({"model": "gpt-4o-mini", "messages": messages, "tools": tools, "stream": stream,
        "temperature": 0.25, "metadata": {"trace": "t-1"}})
}

/// The model's output in one round of a turn.
struct ModelOutput<'a> {
    text: &'a str,
    /// Id, name and arguments of each call.
    calls: &'a [(&'a str, &'a str, &'a str)],
    finish: &'a str,
}

/// Returns the upstream's response in round `n`, complete or as chunks.
fn answer(n: u32, output: &ModelOutput<'_>, stream: bool) -> String {
    let id = format!("chatcmpl-{n}");
    let created = 1000 + n;
    let usage = json!({"prompt_tokens": 100 * n, "completion_tokens": 10, "total_tokens": 100 * n + 10,
        "prompt_tokens_details": {"cached_tokens": 5}});
    if !stream {
        let calls: Vec<Value> = output.calls.iter().map(|(id, name, arguments)| {
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
        }).collect();
        let mut message = json!({"role": "assistant", "content": output.text, "refusal": null});
        if output.text.is_empty() {
            message["content"] = Value::Null;
        }
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        return json!({"id": id, "object": "chat.completion", "created": created, "model": "gpt-4o-mini-2024",
            "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": output.finish}],
            "usage": usage, "system_fingerprint": "fp_1"}).to_string();
    }
    let chunk = |delta: Value, finish: Value| {
        let chunk = json!({"id": id, "object": "chat.completion.chunk", "created": created,
            "model": "gpt-4o-mini-2024", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            "usage": null});
        format!("data: {chunk}\n\n")
    };
    let mut out = chunk(json!({"role": "assistant", "content": ""}), Value::Null);
    for word in output.text.split_inclusive(' ') {
        out += &chunk(json!({"content": word}), Value::Null);
    }
    for (index, (id, name, arguments)) in output.calls.iter().enumerate() {
        out += &chunk(
            json!({"tool_calls": [{"index": index, "id": id, "type": "function",
            "function": {"name": name, "arguments": ""}}]}),
            Value::Null,
        );
        let half = arguments.len() / 2;
        for part in [&arguments[..half], &arguments[half..]] {
            out += &chunk(
                json!({"tool_calls": [{"index": index, "function": {"arguments": part}}]}),
                Value::Null,
            );
        }
    }
    out += &chunk(json!({}), json!(output.finish));
    let last = json!({"id": id, "object": "chat.completion.chunk", "created": created,
        "model": "gpt-4o-mini-2024", "choices": [], "usage": usage});
    [out, format!("data: {last}\n\n"), "data: [DONE]\n\n".to_owned()].concat()
}

/// A response as the client reads it: the id, the message, the finish reason and the usage.
#[derive(Debug, PartialEq)]
struct ReceivedMessage {
    id: String,
    message: Value,
    finish: String,
    usage: Value,
}

/// Reads a response as a client SDK does.
fn read_as_client(got: &crate::conversation::ClientResponse, stream: bool) -> ReceivedMessage {
    if !stream {
        let body = got.json();
        let choice = &body["choices"][0];
        return ReceivedMessage {
            id: body["id"].as_str().unwrap().into(),
            message: choice["message"].clone(),
            finish: choice["finish_reason"].as_str().unwrap().into(),
            usage: body["usage"].clone(),
        };
    }
    let mut received = ReceivedMessage {
        id: String::new(),
        message: json!({"role": "assistant"}),
        finish: String::new(),
        usage: Value::Null,
    };
    let (mut text, mut calls, mut done) = (String::new(), Vec::<Value>::new(), false);
    let mut roles = 0;
    for event in got.events() {
        assert!(!done, "event after the end of the response: {event}");
        if event == "[DONE]" {
            done = true;
            continue;
        }
        if received.id.is_empty() {
            received.id = event["id"].as_str().unwrap().into();
        }
        assert_eq!(event["id"], json!(received.id), "all events have the same id");
        if !event["usage"].is_null() {
            received.usage = event["usage"].clone();
        }
        let Some(choice) = event["choices"].get(0) else { continue };
        assert!(received.finish.is_empty(), "choice after the finish reason: {event}");
        roles += usize::from(choice["delta"].get("role").is_some());
        text += choice["delta"]["content"].as_str().unwrap_or_default();
        for piece in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(piece["index"].as_u64().unwrap()).unwrap();
            if index == calls.len() {
                calls.push(json!({"id": piece["id"], "type": "function",
                    "function": {"name": piece["function"]["name"], "arguments": ""}}));
            }
            let arguments = calls[index]["function"]["arguments"].as_str().unwrap().to_owned();
            let more = piece["function"]["arguments"].as_str().unwrap_or_default();
            calls[index]["function"]["arguments"] = json!(arguments + more);
        }
        if let Some(finish) = choice["finish_reason"].as_str() {
            received.finish = finish.into();
        }
    }
    assert!(done);
    assert_eq!(roles, 1, "the role is sent once");
    received.message["content"] = if text.is_empty() { Value::Null } else { json!(text) };
    received.message["refusal"] = Value::Null;
    if !calls.is_empty() {
        received.message["tool_calls"] = json!(calls);
    }
    received
}

impl ReceivedMessage {
    /// Checks all fields of the response. The usage must be the sum over `rounds` rounds.
    fn assert_is(&self, text: &str, calls: &[(&str, &str, &str)], finish: &str, rounds: u32) {
        let mut message = json!({"role": "assistant", "content": text, "refusal": null});
        if text.is_empty() {
            message["content"] = Value::Null;
        }
        let calls: Vec<Value> = calls.iter().map(|(id, name, arguments)| {
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
        }).collect();
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        let prompt: u32 = (1..=rounds).map(|n| 100 * n).sum();
        let usage = json!({"prompt_tokens": prompt, "completion_tokens": 10 * rounds,
            "total_tokens": prompt + 10 * rounds, "prompt_tokens_details": {"cached_tokens": 5 * rounds}});
        let whole =
            ReceivedMessage { id: "chatcmpl-1".into(), message, finish: finish.into(), usage };
        assert_eq!(*self, whole);
    }
}

/// A conversation under test.
struct ChatConversation {
    inner: TestConversation,
    stream: bool,
    messages: Vec<Value>,
}

impl ChatConversation {
    fn new(stream: bool) -> Self {
        let messages = vec![json!({"role": "user", "content": "Find Ada."})];
        Self { inner: new_conversation(), stream, messages }
    }

    /// Sends one request of the client. `rounds` is the model's output in each round.
    fn send(&mut self, rounds: &[ModelOutput<'_>]) -> ReceivedMessage {
        let answers: Vec<String> =
            rounds.iter().zip(1..).map(|(says, n)| answer(n, says, self.stream)).collect();
        let got = self.inner.send(TARGET, &request(&json!(self.messages), self.stream), &answers);
        assert!(!got.text.contains("tool_search"), "{}", got.text);
        assert!(!got.text.contains("tool_call\""), "{}", got.text);
        read_as_client(&got, self.stream)
    }

    /// Sends the client's next request: all earlier messages, the message that the client received, and the messages in
    /// `more`. Checks that the history sent upstream begins with the history of the previous request, and returns the
    /// entries after that.
    fn reply(&mut self, received: &ReceivedMessage, more: &[Value]) -> Vec<Value> {
        let before = self.inner.sent.last().unwrap().clone();
        self.messages.push(received.message.clone());
        self.messages.extend_from_slice(more);
        self.send(&[ModelOutput { text: "Very well.", calls: &[], finish: "stop" }]);
        let (now, known) =
            (self.inner.sent.last().unwrap(), before["messages"].as_array().unwrap().len());
        assert!(begins_with(&now["messages"], &before["messages"]), "{now:#}");
        assert_eq!(now["tools"], before["tools"]);
        now["messages"].as_array().unwrap()[known..].to_vec()
    }
}
