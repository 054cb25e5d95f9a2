//! Tests of streams that never end: the data that is held back is limited, and data that is forwarded is not kept in
//! memory.

use std::sync::Arc;

use bytes::Bytes;
use toolcrib_core::FourCharsPerToken;
use toolcrib_dialect::exchange::action::{Ending, ExchangeConfig, ExchangeOutcome};
use toolcrib_dialect::{Action, Api, Exchange, Request, Toolset};
use toolcrib_dialect::{LimitExceeded, ResponseLimits};

const LIMITS: ResponseLimits = ResponseLimits { response: 100_000, turn: 50_000, call: 20_000 };

/// An upstream's stream: its first events, and an event that is repeated. In each repetition, `@` is replaced by a
/// counter.
struct UpstreamStream {
    api: Api,
    speaks: Option<Api>,
    start: Vec<String>,
    again: String,
}

fn body(api: Api) -> (&'static str, &'static str) {
    match api {
        Api::Chat => (
            "/v1/chat/completions",
            r#"{"model":"m","stream":true,"messages":[],"tools":[{"type":"function","function":{"name":"find"}}]}"#,
        ),
        Api::Responses => (
            "/v1/responses",
            r#"{"model":"m","stream":true,"input":"Hi","tools":[{"type":"function","name":"find"}]}"#,
        ),
        Api::Messages => (
            "/v1/messages",
            r#"{"model":"m","stream":true,"messages":[],"tools":[{"name":"find","input_schema":{}}]}"#,
        ),
        Api::Gemini => (
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            r#"{"contents":[],"tools":[{"functionDeclarations":[{"name":"find"}]}]}"#,
        ),
    }
}

/// Plays a stream until the exchange is over, with at most `times` repetitions of the event `again`. Returns what the
/// client got, how the exchange ended (`None` if it has not ended), and the sizes of the stored records.
fn play(stream: &UpstreamStream, times: usize) -> (String, Option<ExchangeOutcome>, Vec<usize>) {
    play_within(LIMITS, stream, times)
}

fn play_within(
    limits: ResponseLimits,
    stream: &UpstreamStream,
    times: usize,
) -> (String, Option<ExchangeOutcome>, Vec<usize>) {
    let (target, body) = body(stream.api);
    let mut setup = ExchangeConfig::new("localhost", Arc::new(FourCharsPerToken));
    (setup.limits, setup.checks_calls) = (limits, true);
    setup.upstream.other_api = stream.speaks;
    let read = Request::read(stream.api, target, body.as_bytes().to_vec());
    let mut exchange = Exchange::new(stream.api, target, read, setup);
    let (mut out, mut done, mut records) = (String::new(), None, Vec::new());
    let again = (0..times).map(|number| stream.again.replace('@', &number.to_string()));
    let mut events = stream.start.iter().cloned().chain(again);
    while done.is_none() {
        match exchange.next_action() {
            Some(Action::LoadRecords(keys)) => exchange.records_loaded(vec![None; keys.len()]),
            Some(Action::PrepareToolset(plan)) => {
                let toolset = Toolset::new(*plan, exchange.tools());
                exchange.toolset_prepared(Arc::new(toolset));
            }
            Some(Action::Send(_)) => exchange.response_started(200, true),
            Some(Action::Forward(bytes)) => out += std::str::from_utf8(&bytes).unwrap(),
            Some(Action::StoreRecords(all)) => {
                records.extend(all.iter().map(|(_, record)| record.len()));
            }
            Some(Action::Done(ended)) => done = Some(ended),
            Some(_) => {}
            None => match events.next() {
                Some(data) => exchange.response_bytes(Bytes::from(format!("data: {data}\n\n"))),
                None => break,
            },
        }
    }
    (out, done, records)
}

fn chat(delta: &str) -> String {
    format!(r#"{{"id":"c","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
}

fn own(api: Api, start: &[&str], again: &str) -> UpstreamStream {
    let start = start.iter().map(|data| (*data).to_owned()).collect();
    UpstreamStream { api, speaks: None, start, again: again.to_owned() }
}

/// Returns streams that make the exchange hold more and more data, each with a label and with the limit that ends it.
#[expect(clippy::too_many_lines, reason = "a table")]
fn streams_over_a_limit() -> Vec<(&'static str, UpstreamStream, LimitExceeded)> {
    let (turn, call) = (LimitExceeded::Turn(LIMITS.turn), LimitExceeded::Call(LIMITS.call));
    let x = "x".repeat(500);
    let held = chat(
        r#"{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"nope","arguments":""}}]}"#,
    );
    let more =
        chat(&format!(r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":"{x}"}}}}]}}"#));
    let translated = |api, start: &[&str], again: &str| UpstreamStream {
        speaks: Some(Api::Chat),
        ..own(api, start, again)
    };
    let created =
        r#"{"type":"response.created","response":{"id":"r","status":"in_progress","output":[]}}"#;
    let begun = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"nope"}}"#;
    let block = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"nope","input":{}}}"#;
    vec![
        ("arguments", own(Api::Chat, &[&held], &more), call),
        (
            "calls",
            own(
                Api::Chat,
                &[],
                &chat(r#"{"tool_calls":[{"index":@,"id":"call_@","function":{"name":"find"}}]}"#),
            ),
            LimitExceeded::Turn(LIMITS.turn),
        ),
        (
            "input",
            own(
                Api::Messages,
                &[block],
                &format!(
                    r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"input_json_delta","partial_json":"{x}"}}}}"#
                ),
            ),
            call,
        ),
        (
            "blocks",
            own(
                Api::Messages,
                &[],
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            ),
            turn,
        ),
        (
            "waiting events",
            own(
                Api::Responses,
                &[created, begun],
                r#"{"type":"response.output_text.delta","output_index":1,"delta":"x"}"#,
            ),
            turn,
        ),
        (
            "held arguments",
            own(
                Api::Responses,
                &[created, begun],
                &format!(
                    r#"{{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{x}"}}"#
                ),
            ),
            turn,
        ),
        (
            "items",
            own(
                Api::Responses,
                &[created],
                r#"{"type":"response.output_item.added","output_index":7,"item":{"type":"message"}}"#,
            ),
            turn,
        ),
        ("beginnings", own(Api::Responses, &[], created), turn),
        (
            "after the end",
            own(
                Api::Responses,
                &[created, r#"{"type":"response.completed","response":{"id":"r","output":[]}}"#],
                "[DONE]",
            ),
            turn,
        ),
        (
            "calls",
            own(
                Api::Gemini,
                &[],
                r#"{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"nope","args":{}}}]}}]}"#,
            ),
            turn,
        ),
        ("translated arguments", translated(Api::Messages, &[&held], &more), call),
        (
            "translated text",
            translated(Api::Responses, &[], &chat(&format!(r#"{{"content":"{x}"}}"#))),
            turn,
        ),
    ]
}

#[test]
fn held_data_is_bounded_and_the_client_gets_the_reason() {
    for (what, stream, exceeded) in streams_over_a_limit() {
        let (out, done, records) = play(&stream, 100_000);
        let done = done.unwrap_or_else(|| panic!("{what}: the turn did not end"));
        assert_eq!((done.ending, done.status), (Ending::LimitExceeded(exceeded), 502), "{what}");
        assert!(records.is_empty(), "{what}");
        let last = out.trim_end().rsplit("data: ").next().unwrap();
        let last: serde_json::Value = serde_json::from_str(last).unwrap();
        let error = if stream.api == Api::Responses && last["response"].is_object() {
            &last["response"]["error"]
        } else if last["error"].is_object() {
            &last["error"]
        } else {
            &last
        };
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains(&exceeded.to_string()), "{what}: {last}");
    }
}

#[test]
fn a_limit_that_is_reached_is_not_exceeded() {
    let x = "x".repeat(LIMITS.call);
    let stream = |arguments: &str| {
        let again = chat(&format!(
            r#"{{"tool_calls":[{{"index":0,"id":"call_1","function":{{"name":"nope","arguments":"{arguments}"}}}}]}}"#
        ));
        own(Api::Chat, &[], &again)
    };
    assert!(play(&stream(&x), 1).1.is_none());
    let (_, done, _) = play(&stream(&format!("{x}x")), 1);
    assert_eq!(done.unwrap().ending, Ending::LimitExceeded(LimitExceeded::Call(LIMITS.call)));
}

/// The streams contain text, thinking, or a call to one of the client's own tools, all of which are forwarded.
#[test]
fn forwarded_data_is_unbounded_and_not_recorded() {
    let x = "x".repeat(500);
    let streams = [
        own(Api::Chat, &[], &chat(&format!(r#"{{"content":"{x}","reasoning_content":"{x}"}}"#))),
        own(
            Api::Chat,
            &[&chat(
                r#"{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"find","arguments":""}}]}"#,
            )],
            &chat(&format!(r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":"{x}"}}}}]}}"#)),
        ),
        own(
            Api::Messages,
            &[
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            ],
            &format!(
                r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{x}"}}}}"#
            ),
        ),
        own(
            Api::Responses,
            &[],
            &format!(r#"{{"type":"response.output_text.delta","output_index":0,"delta":"{x}"}}"#),
        ),
        own(
            Api::Gemini,
            &[],
            &format!(
                r#"{{"candidates":[{{"content":{{"role":"model","parts":[{{"text":"{x}"}}]}}}}]}}"#
            ),
        ),
    ];
    for stream in streams {
        let (out, done, _) = play(&stream, 1000);
        assert!(done.is_none(), "{done:?}");
        assert_eq!(out.matches(&stream.again).count(), 1000);
    }
}

/// Some steps look at all calls for every piece that arrives. So the number of calls is limited, in addition to their
/// size.
#[test]
fn a_turn_with_too_many_calls_ends() {
    let call =
        r#"{"tool_calls":[{"index":@,"id":"call_@","function":{"name":"NAME","arguments":"{}"}}]}"#;
    let chat = |name: &str| chat(&call.replace("NAME", name));
    let message = r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{}}}"#;
    let block = concat!(
        r#"{"type":"content_block_start","index":@,"content_block":{"type":"tool_use","id":"t@","name":"find","input":{}}}"#,
        "\n\ndata: ",
        r#"{"type":"content_block_stop","index":@}"#
    );
    let item = concat!(
        r#"{"type":"response.output_item.added","output_index":@,"item":{"type":"function_call","id":"f@","call_id":"c@","name":"find","arguments":""}}"#,
        "\n\ndata: ",
        r#"{"type":"response.output_item.done","output_index":@,"item":{"type":"function_call","id":"f@","call_id":"c@","name":"find","arguments":"{}"}}"#
    );
    let part = r#"{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"find","args":{}}}]}}]}"#;
    let mut translated = own(Api::Messages, &[], &chat("find"));
    translated.speaks = Some(Api::Chat);
    for stream in [
        own(Api::Chat, &[], &chat("find")),
        own(Api::Chat, &[], &chat("nope")),
        own(Api::Messages, &[message], block),
        own(Api::Responses, &[], item),
        own(Api::Gemini, &[], part),
        translated,
    ] {
        let (out, done, _) = play_within(ResponseLimits::default(), &stream, 20_000);
        let ending = done.map(|done| done.ending);
        assert_eq!(ending, Some(Ending::LimitExceeded(LimitExceeded::Calls)), "{:?}", stream.api);
        assert!(out.contains("more than 1024 calls"), "{:?}", stream.api);
    }
}

/// Only the calls of the first choice are checked, so the client must not get any other choice.
#[test]
fn choices_that_were_not_requested_are_dropped() {
    let two = r#"{"id":"c","choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null},{"index":1,"delta":{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"nope","arguments":"{}"}}]},"finish_reason":null}]}"#;
    let (out, ..) = play(&own(Api::Chat, &[two], &chat(r#"{"content":"."}"#)), 3);
    assert!(out.contains("Hello") && !out.contains("nope"), "{out}");
}
