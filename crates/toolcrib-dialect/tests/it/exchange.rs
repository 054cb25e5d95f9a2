//! Tests of complete exchanges without sockets: the actions, their order, and what the client gets.
//!
//! This module contains the loop that drives an exchange. It uses a map as the store and a list of answers as the
//! upstream.

mod errors;
mod passthrough;
mod unsupported_features;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use toolcrib_core::FourCharsPerToken;
use toolcrib_dialect::capability::{LearnedUnsupported, UnsupportedFeature};
use toolcrib_dialect::exchange::action::{
    DecisionReport, Ending, ExchangeConfig, ExchangeOutcome, ModeFallback, OutgoingRequest,
    ResponseBody,
};
use toolcrib_dialect::mode::{ReferenceKind, RequestedMode};
use toolcrib_dialect::{Action, Api, Exchange, Mode, RecordKey, Request, Toolset};

use crate::conversation::tools;

const TARGET: &str = "/v1/messages";
const HOST: &str = "api.anthropic.com";

/// How the upstream answers a request.
enum UpstreamAnswer {
    Events(String),
    Whole(u16, String),
    /// The upstream sends these bytes of a stream, and then the stream is cut off.
    CutOff(String),
    Unreachable,
}

/// What was observed while an exchange ran.
#[derive(Debug, Default)]
struct ExchangeRun {
    /// The names of the actions, in order. Consecutive actions with the same name are listed once.
    actions: Vec<&'static str>,
    sent: Vec<Value>,
    status: Option<u16>,
    body: Vec<u8>,
    fell_back: Vec<ModeFallback>,
    learned: Option<LearnedUnsupported>,
    done: Option<ExchangeOutcome>,
    report: DecisionReport,
}

impl ExchangeRun {
    fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

/// Drives an exchange, with a map as the store and a list of answers as the upstream. Returns what was observed.
fn play(
    body: &Value,
    setup: ExchangeConfig,
    store: &mut HashMap<RecordKey, Vec<u8>>,
    answers: Vec<UpstreamAnswer>,
) -> ExchangeRun {
    play_at(TARGET, body, setup, store, answers)
}

fn play_at(
    target: &str,
    body: &Value,
    setup: ExchangeConfig,
    store: &mut HashMap<RecordKey, Vec<u8>>,
    answers: Vec<UpstreamAnswer>,
) -> ExchangeRun {
    let request = Request::read(Api::Messages, target, body.to_string().into_bytes());
    let mut exchange = Exchange::new(Api::Messages, target, request, setup);
    let (mut played, mut answers) = (ExchangeRun::default(), answers.into_iter());
    let mut rest: Option<UpstreamAnswer> = None;
    loop {
        let action = exchange.next_action();
        let name = match &action {
            None => "read",
            Some(Action::LoadRecords(_)) => "load",
            Some(Action::PrepareToolset(_)) => "prepare",
            Some(Action::Send(_)) => "send",
            Some(Action::StartResponse(_)) => "respond",
            Some(Action::Forward(_)) => "forward",
            Some(Action::StoreRecords(_)) => "store",
            Some(Action::FellBack(_)) => "fall back",
            Some(Action::Remember(_)) => "learn",
            Some(Action::Done(_)) => "done",
        };
        if played.actions.last() != Some(&name) {
            played.actions.push(name);
        }
        match action {
            None => match rest.take().expect("there is no response to read") {
                UpstreamAnswer::Events(text) => {
                    text.as_bytes().chunks(50).for_each(|piece| {
                        exchange.response_bytes(Bytes::copy_from_slice(piece));
                    });
                    exchange.response_ended();
                }
                UpstreamAnswer::Whole(_, text) => {
                    exchange.response_bytes(text.into());
                    exchange.response_ended();
                }
                UpstreamAnswer::CutOff(text) => {
                    exchange.response_bytes(text.into());
                    exchange.response_cut_off();
                }
                UpstreamAnswer::Unreachable => unreachable!(),
            },
            Some(Action::LoadRecords(keys)) => {
                exchange.records_loaded(keys.iter().map(|key| store.get(key).cloned()).collect());
            }
            Some(Action::PrepareToolset(plan)) => {
                let toolset = Arc::new(Toolset::new(*plan, exchange.tools()));
                exchange.toolset_prepared(toolset);
            }
            Some(Action::Send(request)) => {
                played.sent.push(serde_json::from_slice(&request.body).unwrap());
                let answer = answers.next().expect("another answer");
                match &answer {
                    UpstreamAnswer::Events(_) | UpstreamAnswer::CutOff(_) => {
                        exchange.response_started(200, true);
                    }
                    UpstreamAnswer::Whole(status, _) => exchange.response_started(*status, false),
                    UpstreamAnswer::Unreachable => exchange.upstream_unreachable(),
                }
                rest = Some(answer);
            }
            Some(Action::StartResponse(start)) => {
                assert_eq!(played.status.replace(start.status), None, "a response begins once");
                match (start.body, rest.take()) {
                    (ResponseBody::Complete(body), _) => played.body = body.to_vec(),
                    (ResponseBody::Forwarded, answer) => rest = answer,
                    (
                        ResponseBody::Passthrough,
                        Some(UpstreamAnswer::Whole(_, text) | UpstreamAnswer::Events(text)),
                    ) => {
                        played.body = text.into_bytes();
                    }
                    (ResponseBody::Passthrough, _) => panic!("no body"),
                }
            }
            Some(Action::Forward(bytes)) => played.body.extend_from_slice(&bytes),
            Some(Action::StoreRecords(records)) => store.extend(records),
            Some(Action::FellBack(fell_back)) => played.fell_back.push(fell_back),
            Some(Action::Remember(learned)) => played.learned = Some(learned),
            Some(Action::Done(done)) => {
                played.done = Some(done);
                break;
            }
        }
    }
    assert!(answers.next().is_none(), "a response was not used");
    played.report = exchange.report().clone();
    played
}

fn setup() -> ExchangeConfig {
    ExchangeConfig::new(HOST, Arc::new(FourCharsPerToken))
}

fn request(messages: &Value, stream: bool) -> Value {
    let tools: Vec<Value> = tools(40)
        .into_iter()
        .map(|(name, description, schema)| {
            json!({"name": name, "description": description, "input_schema": schema})
        })
        .collect();
    json!({"model": "claude-sonnet-4-5", "max_tokens": 1024, "messages": messages, "tools": tools,
        "stream": stream})
}

fn first_request(stream: bool) -> Value {
    request(&json!([{"role": "user", "content": "Who is Ada?"}]), stream)
}

/// Returns the upstream's answer, streamed or complete, for a round in which the model calls a tool.
fn calls(id: &str, name: &str, input: &Value, stream: bool) -> UpstreamAnswer {
    let usage = json!({"input_tokens": 10, "output_tokens": 1});
    if !stream {
        let call = json!({"type": "tool_use", "id": id, "name": name, "input": input});
        let body = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": [call], "stop_reason": "tool_use", "stop_sequence": null, "usage": usage});
        return UpstreamAnswer::Whole(200, body.to_string());
    }
    let events = [
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message",
            "role": "assistant", "model": "m", "content": [], "stop_reason": null,
            "stop_sequence": null, "usage": usage}}),
        json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "tool_use", "id": id, "name": name, "input": {}}}),
        json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": input.to_string()}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ];
    let text = events.iter().map(|event| {
        let kind = event["type"].as_str().unwrap();
        format!("event: {kind}\ndata: {event}\n\n")
    });
    UpstreamAnswer::Events(text.collect())
}

fn searches(stream: bool) -> UpstreamAnswer {
    calls("toolu_search000001", "tool_search", &json!({"query": "find a customer"}), stream)
}

/// Returns the upstream's answer for a round in which the model calls a tool through the bridge.
fn wrapped(stream: bool) -> UpstreamAnswer {
    let input = json!({"name": "crm__find_customer", "arguments": {"q": "Ada"}});
    calls("toolu_call00000001", "tool_call", &input, stream)
}

fn refusal(path: &str, message: &str) -> UpstreamAnswer {
    let error = json!({"type": "invalid_request_error", "message": format!("{path}: {message}")});
    UpstreamAnswer::Whole(400, json!({"type": "error", "error": error}).to_string())
}

/// Performs actions until the exchange sends a request to the upstream, and returns that request.
fn sent(exchange: &mut Exchange) -> OutgoingRequest {
    loop {
        match exchange.next_action().expect("an action") {
            Action::PrepareToolset(plan) => {
                let toolset = Arc::new(Toolset::new(*plan, exchange.tools()));
                exchange.toolset_prepared(toolset);
            }
            Action::Send(outgoing) => return outgoing,
            other => panic!("{other:?}"),
        }
    }
}
