//! Checks translation between the clients of two APIs and a backend of a third API, with any input from either side.
//!
//! The first line of an input says how to run it, as described at [`Head`](crate::client::Head), except that the first
//! digit selects the client: `0` is Messages, `1` is Responses. After `r`, the rest is a request. After `s`, it is a
//! stream of the backend, and after `w`, a complete response. After `a`, `g` and `h`, a request, streams and complete
//! responses are generated from the rest.

use std::collections::HashMap;

use serde_json::Value;
use toolcrib_dialect::translate::{Adapter, adapter};
use toolcrib_dialect::{Api, Mode};

use crate::client::{self, head};
use crate::{client_reader, generated_requests, generated_responses, response_checks};

/// Runs an input through the adapter between one of the clients and the backend.
pub fn check(data: &[u8]) {
    let (head, rest) = head(Api::Chat, data);
    let api =
        if data.first().is_some_and(|byte| byte % 2 == 1) { Api::Responses } else { Api::Messages };
    match head.kind {
        b'r' => check_request(api, &String::from_utf8_lossy(rest)),
        b'a' => check_request(api, &generated_requests::request(api, rest).unwrap_or_default()),
        b's' => check_stream(api, &response_checks::parted(rest), head.cut),
        b'w' => check_whole(api, rest),
        b'h' => generated_responses::rounds(Api::Chat, rest, true)
            .iter()
            .for_each(|body| check_whole(api, body)),
        _ => check_stream(api, &generated_responses::rounds(Api::Chat, rest, false), head.cut),
    }
}

fn begun(api: Api, stream: bool) -> Adapter {
    let mut adapter = adapter(api, Api::Chat).expect("there is one");
    adapter.request(&client::body(api, stream)).expect("a request of the client's API");
    adapter
}

fn check_request(api: Api, body: &str) {
    let mut adapter = adapter(api, Api::Chat).expect("there is one");
    let Ok(adapted) = adapter.request(body) else { return };
    assert!(client_reader::is_json(&adapted.body), "{}", adapted.body);
    assert_eq!(adapter.request(body), Ok(adapted), "asked again");
}

fn check_whole(api: Api, body: &[u8]) {
    for status in [200, 429] {
        let mut adapter = begun(api, false);
        let answer = adapter.complete_response(status, body);
        assert!(serde_json::from_slice::<Value>(&answer.body).is_ok(), "{}", text(&answer.body));
        // If the translated response is a success, the proxy must be able to read it as a response of the client's API.
        let mut turn = client::turn(api, Mode::Bridge, false);
        let next = turn.complete_response(&answer.body);
        assert_eq!(next.is_some(), answer.status < 400, "{}", text(&answer.body));
    }
}

fn check_stream(api: Api, rounds: &[Vec<u8>], cut: usize) {
    for round in rounds {
        let whole = stream(api, round, usize::MAX);
        assert_eq!(text(&whole), text(&stream(api, round, cut)), "in pieces of {cut}");
        let events = client_reader::events(&whole);
        assert!(client_reader::is_clean(&events), "{}", text(&whole));
        let values: Vec<Value> = events
            .iter()
            .filter_map(|event| event.data())
            .map(|data| serde_json::from_str(&data).expect("what we write is JSON"))
            .collect();
        match api {
            Api::Messages => check_messages(&values),
            _ => check_responses(&values),
        }
        let mut turn = client::turn(api, Mode::Bridge, true);
        let mut out = Vec::new();
        turn.bytes(&whole, &mut out);
        turn.end(&mut out);
        client_reader::check_stream(api, &client_reader::events(&out));
    }
}

fn stream(api: Api, bytes: &[u8], cut: usize) -> Vec<u8> {
    let mut adapter = begun(api, true);
    let mut out = Vec::new();
    bytes.chunks(cut).for_each(|piece| adapter.bytes(piece, &mut out));
    adapter.end(&mut out);
    out
}

/// Checks that the events form one message or end with an error, and that the blocks of the message start and stop one
/// after another.
fn check_messages(events: &[Value]) {
    let (mut blocks, mut open) = (0_u64, false);
    for (at, event) in events.iter().enumerate() {
        let last = at + 1 == events.len();
        match event["type"].as_str() {
            Some("message_start") => assert_eq!(at, 0, "{event}"),
            Some("content_block_start") => {
                assert!(!open && event["index"] == blocks, "{event}");
                open = true;
            }
            Some("content_block_delta") => assert!(open && event["index"] == blocks, "{event}"),
            Some("content_block_stop") => {
                assert!(open && event["index"] == blocks, "{event}");
                (open, blocks) = (false, blocks + 1);
            }
            Some("message_delta") => assert!(!open, "{event}"),
            Some("message_stop" | "error") => assert!(last, "{event}"),
            _ => panic!("{event}"),
        }
        assert!(
            !last || matches!(event["type"].as_str(), Some("message_stop" | "error")),
            "{event}"
        );
    }
}

/// Checks that the events form one response: they are numbered, items start and end in order, and the final event
/// repeats the same items.
fn check_responses(events: &[Value]) {
    let mut done: HashMap<u64, &Value> = HashMap::new();
    for (at, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], at, "{event}");
        let (kind, index) = (event["type"].as_str().unwrap_or_default(), &event["output_index"]);
        match kind {
            "response.output_item.added" => assert_eq!(*index, done.len(), "{event}"),
            "response.output_item.done" => {
                assert_eq!(*index, done.len(), "{event}");
                done.insert(done.len() as u64, &event["item"]);
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                assert_eq!(at + 1, events.len(), "{event}");
                let output = event["response"]["output"].as_array().expect("items");
                for (at, item) in (0..).zip(output) {
                    assert_eq!(done.get(&at).copied(), Some(item), "{event}");
                }
            }
            _ => assert!(at + 1 < events.len() || kind == "error", "{event}"),
        }
    }
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
