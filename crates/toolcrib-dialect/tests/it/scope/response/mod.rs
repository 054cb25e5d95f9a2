//! Tests of which parts of a response reach a caller with a limited scope: only calls to tools that its request
//! declares, and nothing that cannot be checked. `unusual_calls` tests calls in forms that hidden rounds do not
//! recognise, so that only this check can stop them.

mod unusual_calls;

use std::slice;
use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::FourCharsPerToken;
use toolcrib_dialect::exchange::action::{Ending, ExchangeConfig, ResponseBody};
use toolcrib_dialect::{Action, Api, Exchange, Request, Toolset, WithheldReason};

use super::generated::visible;
use super::target;

/// A response of the upstream.
struct UpstreamAnswer {
    status: u16,
    is_events: bool,
    body: Vec<u8>,
}

/// The response that the client gets.
#[derive(Debug, PartialEq, Eq)]
struct ClientResponse {
    body: String,
    ending: Ending,
    rounds: usize,
}

fn whole(body: &Value) -> UpstreamAnswer {
    UpstreamAnswer { status: 200, is_events: false, body: body.to_string().into_bytes() }
}

fn events(events: &[Value]) -> UpstreamAnswer {
    let events: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    UpstreamAnswer { status: 200, is_events: true, body: events.concat().into_bytes() }
}

fn request(api: Api) -> Value {
    let user = json!([{"role": "user", "content": "Hi"}]);
    let schema = json!({"type": "object"});
    match api {
        Api::Chat => json!({"model": "m", "messages": user, "tools": [
            {"type": "function", "function": {"name": "show_a", "parameters": schema}},
            {"type": "function", "function": {"name": "hide_a", "parameters": schema}}]}),
        Api::Responses => json!({"model": "m", "input": user, "tools": [
            {"type": "function", "name": "show_a", "parameters": schema},
            {"type": "function", "name": "hide_a", "parameters": schema}]}),
        Api::Messages => json!({"model": "m", "max_tokens": 9, "messages": user, "tools": [
            {"name": "show_a", "input_schema": schema}, {"name": "hide_a", "input_schema": schema}]}),
        Api::Gemini => json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "tools": [
            {"functionDeclarations": [{"name": "show_a"}, {"name": "hide_a"}]}]}),
    }
}

fn streamed(api: Api) -> Value {
    let mut body = request(api);
    if api != Api::Gemini {
        body["stream"] = json!(true);
    }
    body
}

fn path(api: Api, is_stream: bool) -> &'static str {
    match api {
        Api::Gemini if is_stream => "/v1beta/models/m:streamGenerateContent?alt=sse",
        _ => target(api),
    }
}

/// Sends a request of a limited caller, answers it with these responses, and returns what the client gets.
fn play(api: Api, body: &Value, answers: Vec<UpstreamAnswer>) -> ClientResponse {
    play_at(None, api, body, answers)
}

/// Like `play`, but the upstream uses the API `speaks` if it is given.
fn play_at(
    speaks: Option<Api>,
    api: Api,
    body: &Value,
    answers: Vec<UpstreamAnswer>,
) -> ClientResponse {
    let is_stream = answers.first().is_some_and(|answer| answer.is_events);
    let path = path(api, is_stream);
    let read = Request::read_in_scope(api, path, body.to_string().into_bytes(), &visible).unwrap();
    let mut setup = ExchangeConfig::new("localhost", Arc::new(FourCharsPerToken));
    (setup.checks_calls, setup.upstream.other_api) = (true, speaks);
    let mut exchange = Exchange::new(api, path, read, setup);
    let mut answers = answers.into_iter();
    let mut answer = UpstreamAnswer { status: 0, is_events: false, body: Vec::new() };
    let mut got = Vec::new();
    loop {
        match exchange.next_action().unwrap() {
            Action::LoadRecords(keys) => exchange.records_loaded(vec![None; keys.len()]),
            Action::PrepareToolset(plan) => {
                let toolset = Toolset::new(*plan, exchange.tools());
                exchange.toolset_prepared(Arc::new(toolset));
            }
            Action::Send(outgoing) => {
                assert!(outgoing.is_read, "a compressed response cannot be checked");
                answer = answers.next().unwrap();
                exchange.response_started(answer.status, answer.is_events);
                for piece in answer.body.chunks(7) {
                    exchange.response_bytes(piece.to_vec().into());
                }
                exchange.response_ended();
            }
            Action::StartResponse(start) => match start.body {
                ResponseBody::Complete(body) => got.extend(body),
                ResponseBody::Forwarded => {}
                ResponseBody::Passthrough => {
                    assert_ne!(start.status, 200, "a success response must be read");
                    got.extend(&answer.body);
                }
            },
            Action::Forward(bytes) => got.extend(bytes),
            Action::Done(done) => {
                let body = String::from_utf8(got).unwrap();
                return ClientResponse { body, ending: done.ending, rounds: done.summary.rounds };
            }
            _ => {}
        }
    }
}

/// Checks that the response is withheld for the reason `why`, and that the client does not get the name `hide_a`.
fn assert_withheld(api: Api, body: &Value, answer: UpstreamAnswer, why: WithheldReason) {
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let got = play(api, body, vec![answer]);
    assert_eq!(got.ending, Ending::Withheld(why), "{api:?} {text}");
    assert!(!got.body.contains("hide_a"), "{api:?} {text}");
}

/// Checks that the client gets a response unchanged.
fn assert_unchanged(api: Api, body: &Value, answer: UpstreamAnswer) {
    let text = String::from_utf8(answer.body.clone()).unwrap();
    let got = play(api, body, vec![answer]);
    assert_eq!((got.ending, got.body), (Ending::Complete, text), "{api:?}");
}

fn chat_call(name: &str) -> Value {
    json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": "{\"name\":\"x\"}"}})
}

fn chat(messages: &[Value]) -> Value {
    let choices: Vec<Value> = (0..)
        .zip(messages)
        .map(
            |(index, message)| json!({"index": index, "message": message, "finish_reason": "stop"}),
        )
        .collect();
    json!({"id": "c", "object": "chat.completion", "created": 1, "choices": choices})
}

fn chunk(delta: &Value) -> Value {
    json!({"id": "c", "created": 1, "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn chat_end() -> Value {
    json!({"id": "c", "created": 1, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
}

fn response(items: &[Value]) -> Value {
    json!({"id": "r", "object": "response", "status": "completed", "output": items})
}

fn message(blocks: &[Value]) -> Value {
    json!({"id": "m", "type": "message", "role": "assistant", "content": blocks, "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1}})
}

fn content(parts: &[Value]) -> Value {
    json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]})
}

#[test]
fn calls_of_declared_tools_are_forwarded_unchanged() {
    let call = chat_call("show_a");
    let tool_use = json!({"type": "tool_use", "id": "t", "name": "show_a", "input": {"type": "tool_use", "name": "hide_b"}});
    let item = json!({"type": "function_call", "id": "f", "call_id": "c", "name": "show_a", "arguments": "{}"});
    let part = json!({"functionCall": {"name": "show_a", "args": {"name": "hide_b"}}});
    let two = json!({"functionCall": {"name": "show_b", "args": {}}});
    assert_unchanged(
        Api::Chat,
        &request(Api::Chat),
        whole(&chat(&[json!({"role": "assistant", "content": null, "tool_calls": [call]})])),
    );
    assert_unchanged(
        Api::Messages,
        &request(Api::Messages),
        whole(&message(slice::from_ref(&tool_use))),
    );
    assert_unchanged(
        Api::Responses,
        &request(Api::Responses),
        whole(&response(slice::from_ref(&item))),
    );
    let mut gemini = request(Api::Gemini);
    gemini["tools"][0]["functionDeclarations"][1]["name"] = json!("show_b");
    assert_unchanged(Api::Gemini, &gemini, whole(&content(&[part.clone(), two.clone()])));
    assert_unchanged(Api::Gemini, &gemini, events(&[content(&[part, two])]));
    let piece = json!({"index": 0, "function": {"arguments": "{}"}});
    let again =
        json!({"index": 0, "id": "call_2", "function": {"name": "show_a", "arguments": "{}"}});
    let deltas = [
        json!({"role": "assistant", "tool_calls": [call]}),
        json!({"tool_calls": [piece]}),
        json!({"tool_calls": [again]}),
    ];
    let mut chunks: Vec<Value> = deltas.iter().map(chunk).collect();
    chunks.push(chat_end());
    assert_unchanged(Api::Chat, &streamed(Api::Chat), events(&chunks));
    assert_unchanged(
        Api::Messages,
        &streamed(Api::Messages),
        events(&[
            json!({"type": "message_start", "message": message(&[])}),
            json!({"type": "content_block_start", "index": 0, "content_block": tool_use}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}}),
            json!({"type": "message_stop"}),
        ]),
    );
    assert_unchanged(
        Api::Responses,
        &streamed(Api::Responses),
        events(&[
            json!({"type": "response.created", "response": {"id": "r", "output": [], "tools": [{"type": "function", "name": "show_a"}]}}),
            json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
            json!({"type": "response.completed", "response": response(&[item])}),
        ]),
    );
}

/// A call to a tool outside the scope is answered in a hidden round, if the call has the usual form.
#[test]
fn a_call_of_a_hidden_tool_is_answered_in_a_hidden_round() {
    let last = json!({"role": "assistant", "content": "Done."});
    let call = json!({"role": "assistant", "content": null, "tool_calls": [chat_call("hide_a")]});
    let got =
        play(Api::Chat, &request(Api::Chat), vec![whole(&chat(&[call])), whole(&chat(&[last]))]);
    assert_eq!((got.ending, got.rounds), (Ending::Complete, 2));
    assert!(got.body.contains("Done.") && !got.body.contains("hide_a"), "{}", got.body);
}

#[test]
fn a_translated_response_is_checked_too() {
    let play = |messages: &[Value]| {
        let body = request(Api::Messages);
        let answers = messages.iter().map(|message| whole(&chat(slice::from_ref(message))));
        play_at(Some(Api::Chat), Api::Messages, &body, answers.collect())
    };
    let call = |name: &str| json!({"role": "assistant", "tool_calls": [chat_call(name)]});
    let got = play(&[call("show_a")]);
    assert_eq!((got.ending, got.rounds), (Ending::Complete, 1));
    assert!(got.body.contains(r#""type":"tool_use""#), "{}", got.body);
    let got = play(&[call("hide_a"), json!({"role": "assistant", "content": "Done."})]);
    assert_eq!((got.ending, got.rounds), (Ending::Complete, 2));
    assert!(got.body.contains("Done.") && !got.body.contains("hide_a"), "{}", got.body);
    // The translation cannot express a legacy `function_call`, so the call is dropped.
    let got =
        play(&[json!({"role": "assistant", "content": "Hi", "function_call": {"name": "hide_a"}})]);
    assert_eq!(got.ending, Ending::Complete);
    assert!(got.body.contains("Hi") && !got.body.contains("hide_a"), "{}", got.body);
}

#[test]
fn a_response_that_cannot_be_read_is_refused() {
    let call =
        chat(&[json!({"role": "assistant", "tool_calls": [chat_call("hide_a")]})]).to_string();
    let choices = format!(r#"{},"choices":[]}}"#, call.strip_suffix('}').unwrap());
    let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
    let bytes =
        |body: &[u8], is_events| UpstreamAnswer { status: 200, is_events, body: body.to_vec() };
    let rows: [(&[u8], bool, WithheldReason); 10] = [
        (b"\x1f\x8b\x08\x00", false, WithheldReason::NotAnObject),
        (b"", false, WithheldReason::NotAnObject),
        (b"[{\"tool_calls\":1}]", false, WithheldReason::NotAnObject),
        (b"{\"x\":NaN}", false, WithheldReason::NotAnObject),
        (b"data: {}\n\n", false, WithheldReason::NotAnObject),
        (choices.as_bytes(), false, WithheldReason::DuplicateKey),
        (b"\x1f\x8b\x08\x00", true, WithheldReason::NotEventStream),
        (call.as_bytes(), true, WithheldReason::NotEventStream),
        (b"data: [{\"tool_calls\":1}]\n\n", true, WithheldReason::NotEventStream),
        (b"data: {\"x\":\"\xff\"}\n\n", true, WithheldReason::NotEventStream),
    ];
    for api in [Api::Chat, Api::Responses, Api::Messages, Api::Gemini] {
        for (body, is_events, why) in rows {
            let ask = if is_events { streamed(api) } else { request(api) };
            assert_withheld(api, &ask, bytes(body, is_events), why);
        }
        let nested = json!({"x": serde_json::from_str::<Value>(&deep).unwrap()});
        assert_withheld(api, &request(api), whole(&nested), WithheldReason::TooComplex);
    }
    // A response is read according to its own content type, even if the client requested a different one.
    let streamed_call = events(&[chunk(&json!({"tool_calls": [chat_call("hide_a")]}))]);
    assert_withheld(Api::Chat, &request(Api::Chat), streamed_call, WithheldReason::UndeclaredTool);
    assert_unchanged(
        Api::Chat,
        &request(Api::Chat),
        events(&[chunk(&json!({"content": "Hi"})), chat_end()]),
    );
    // A response with a byte order mark can be read.
    let hi = format!("\u{feff}{}", chat(&[json!({"role": "assistant", "content": "Hi"})]));
    assert_unchanged(Api::Chat, &request(Api::Chat), bytes(hi.as_bytes(), false));
    // Error responses are not checked, because clients do not read calls in them.
    let error = UpstreamAnswer { status: 500, is_events: false, body: b"no JSON".to_vec() };
    assert_unchanged(Api::Chat, &request(Api::Chat), error);
}
