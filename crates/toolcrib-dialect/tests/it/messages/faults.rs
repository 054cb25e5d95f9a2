//! Tests of responses that are cut off, are errors, or contain unexpected data.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_dialect::mode::{HostedSearch, ReferenceKind};
use toolcrib_dialect::{Api, Mode, PassthroughReason, Request};

use crate::conversation::NextStep;

use super::{
    TARGET, answer, assert_valid_history, call, new_conversation, play, read_as_client, request,
    result, search, text, thinking, user,
};

const MODES: [Mode; 3] =
    [Mode::Bridge, Mode::Reference(ReferenceKind::ToolReference), Mode::Hosted(HostedSearch::Bm25)];

/// Plays the same pieces as the upstream's stream in every round. Returns what the client gets, and the number of
/// records.
fn rounds(mode: Mode, pieces: &[&[u8]]) -> (String, usize) {
    let body = request(&json!([user("Find Ada.")]), true).to_string();
    let mut turn = new_conversation(mode).turn(TARGET, &body);
    let mut out = Vec::new();
    loop {
        for piece in pieces {
            turn.bytes(piece, &mut out);
        }
        if let NextStep::Done(done) = turn.end(&mut out) {
            let _: Value = serde_json::from_str(&turn.request()).expect("the request is JSON");
            return (String::from_utf8_lossy(&out).into_owned(), done.records.len());
        }
    }
}

/// Plays one round, in which the upstream sends these pieces. Returns what the client gets, and the next step.
fn stream(mode: Mode, pieces: &[&[u8]]) -> (String, NextStep) {
    let body = request(&json!([user("Find Ada.")]), true).to_string();
    let mut turn = new_conversation(mode).turn(TARGET, &body);
    let mut out = Vec::new();
    for piece in pieces {
        turn.bytes(piece, &mut out);
    }
    let next = turn.end(&mut out);
    (String::from_utf8_lossy(&out).into_owned(), next)
}

fn records(next: &NextStep) -> Option<usize> {
    match next {
        NextStep::Again => None,
        NextStep::Done(done) => Some(done.records.len()),
    }
}

fn searching() -> String {
    let output = vec![thinking("s"), text("Looking."), search("toolu_search01", "find customer")];
    answer(1, &(output, "tool_use"), true)
}

#[test]
fn a_stream_that_is_cut_off_ends_there() {
    let whole = searching();
    let reason = whole.find("event: message_delta").unwrap();
    let held = whole.find("event: content_block_start").unwrap();
    let held = held + whole[held..].find(r#""name":"tool_search""#).unwrap();
    let held = whole[..held].rfind("event:").unwrap();
    let (got, next) = stream(Mode::Bridge, &[&whole.as_bytes()[..reason]]);
    assert_eq!(got, whole[..held], "everything before the held call is forwarded");
    assert_eq!(records(&next), Some(0), "nothing is recorded");
    // The stream is cut off in the middle of an event. The incomplete event is forwarded unchanged.
    let half = whole.find("Look").unwrap();
    let (got, next) = stream(Mode::Bridge, &[&whole.as_bytes()[..half]]);
    assert_eq!(got, whole[..half]);
    assert_eq!(records(&next), Some(0));
}

#[test]
fn a_missing_final_blank_line_is_accepted() {
    let whole = searching();
    let (_, next) = stream(Mode::Bridge, &[whole.trim_end().as_bytes()]);
    assert_eq!(records(&next), None, "the search is answered");
    let plain = answer(1, &(vec![text("Yes.")], "end_turn"), true);
    let (got, _) = stream(Mode::Bridge, &[plain.trim_end().as_bytes()]);
    assert_eq!(got, plain.trim_end());
}

#[test]
fn an_error_in_the_stream_is_forwarded_and_ends_the_turn() {
    let whole = searching();
    let at = whole.find("event: message_delta").unwrap();
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let broken = format!("{}{error}{}", &whole[..at], &whole[at..]);
    let (got, next) = stream(Mode::Bridge, &[broken.as_bytes()]);
    assert!(got.ends_with(error), "{got}");
    assert!(!got.contains("tool_search"));
    assert_eq!(records(&next), Some(0));
}

#[test]
fn a_failed_later_round_becomes_an_error_event() {
    let body = request(&json!([user("Find Ada.")]), true).to_string();
    let fail = |error: &str| {
        let mut turn = new_conversation(Mode::Bridge).turn(TARGET, &body);
        let mut out = Vec::new();
        turn.bytes(searching().as_bytes(), &mut out);
        assert!(matches!(turn.end(&mut out), NextStep::Again));
        let before = out.len();
        turn.fail(529, error.as_bytes(), &mut out);
        String::from_utf8(out.split_off(before)).unwrap()
    };
    assert_eq!(
        fail("{\"type\": \"error\",\n \"error\": {\"type\": \"overloaded_error\"}}"),
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n"
    );
    assert_eq!(
        fail("<html>"),
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"the upstream answered 529\"}}\n\n"
    );
}

#[test]
fn unknown_events_are_forwarded_unchanged_in_every_round() {
    let odd = ": a comment\n\nevent: news\ndata: {\"type\":\"news\", \"x\": 1.0}\n\ndata: no json\n\nid: 7\n\n";
    let with = |whole: String| {
        let at = whole.find("event: content_block_start").unwrap();
        format!("{}{odd}{}", &whole[..at], &whole[at..])
    };
    let plain = with(answer(1, &(vec![text("Yes.")], "end_turn"), true));
    assert_eq!(stream(Mode::Bridge, &[plain.as_bytes()]).0, plain);
    let mut conversation = new_conversation(Mode::Bridge);
    let answers = [with(searching()), with(answer(2, &(vec![text("Yes.")], "end_turn"), true))];
    let body = request(&json!([user("Find Ada.")]), true);
    let got = conversation.send(TARGET, &body, &answers);
    assert_eq!(got.text.matches(odd).count(), 2);
}

/// Plays these events without `event:` lines, and returns the events that the client gets.
fn events(events: &[Value]) -> Vec<Value> {
    let mut body = request(&json!([user("Find Ada.")]), true);
    let bash = json!({"type": "bash_20250124", "name": "bash"});
    body["tools"].as_array_mut().unwrap().push(bash);
    let mut turn = new_conversation(Mode::Bridge).turn(TARGET, &body.to_string());
    let mut out = Vec::new();
    for event in events {
        turn.bytes(format!("data: {event}\n\n").as_bytes(), &mut out);
    }
    turn.end(&mut out);
    let got = String::from_utf8(out).unwrap();
    let data = got.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn begins(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn input(index: u64, text: &str) -> Value {
    json!({"type": "content_block_delta", "index": index,
        "delta": {"type": "input_json_delta", "partial_json": text}})
}

fn ends(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

#[test]
fn a_call_waits_for_an_earlier_incomplete_one() {
    let start = json!({"type": "message_start", "message": {"id": "m"}});
    let reason = json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}});
    let stop = json!({"type": "message_stop"});
    let mut second = call("toolu_b", "bash", json!({}));
    second["x"] = json!(1);
    let third = call("toolu_c", "crm__find_customer", json!({"q": "ada"}));
    let got = events(&[
        start.clone(),
        begins(3, call("toolu_a", "tool_call", json!({}))),
        begins(4, second.clone()),
        input(4, r#"{"command":"#),
        input(3, r#"{"name":"crm__update_customer","#),
        input(4, r#""ls"}"#),
        ends(4),
        input(3, r#""arguments":{"id":7}}"#),
        ends(3),
        // The arguments of this call arrive complete with its start.
        begins(5, third),
        ends(5),
        reason.clone(),
        stop.clone(),
    ]);
    let expected = [
        start,
        begins(0, call("toolu_a", "crm__update_customer", json!({}))),
        input(0, r#"{"id":7}"#),
        ends(0),
        begins(1, second),
        input(1, r#"{"command":"ls"}"#),
        ends(1),
        begins(2, call("toolu_c", "crm__find_customer", json!({}))),
        input(2, r#"{"q":"ada"}"#),
        ends(2),
        reason,
        stop,
    ];
    assert_eq!(got, expected);
}

#[test]
fn the_largest_block_index_causes_no_panic() {
    let reason = json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}});
    let find = |id: &str| call(id, "crm__find_customer", json!({"q": "ada"}));
    let got = events(&[
        begins(u64::MAX, text("")),
        ends(u64::MAX),
        begins(0, find("toolu_a")),
        ends(0),
        begins(1, find("toolu_b")),
        ends(1),
        reason,
    ]);
    let calls = got.iter().filter(|event| event["content_block"]["type"] == "tool_use");
    assert_eq!(calls.count(), 2);
}

#[test]
fn a_count_omitted_at_the_end_keeps_its_initial_value() {
    let mut conversation = new_conversation(Mode::Bridge);
    let left_out = |whole: String| {
        let usage = r#""usage":{"output_tokens":10}"#;
        assert!(whole.contains(usage));
        whole.replace(usage, r#""usage":{"input_tokens":null,"output_tokens":10}"#)
    };
    let last = answer(2, &(vec![text("Yes.")], "end_turn"), true);
    let body = request(&json!([user("Find Ada.")]), true);
    let got = conversation.send(TARGET, &body, &[left_out(searching()), left_out(last)]);
    assert_eq!(read_as_client(&got, true)["usage"]["input_tokens"], 300);
    assert_eq!(got.done.summary.usage.input, 300 + 2 * 27);
    assert_eq!(got.done.summary.last.input, 200 + 27);
}

#[test]
fn citations_are_sent_back_with_their_text() {
    let mut conversation = new_conversation(Mode::Bridge);
    let cites = |at: u64| {
        let cited = json!({"type": "char_location", "start_char_index": at});
        let delta = json!({"type": "citations_delta", "citation": cited});
        json!({"type": "content_block_delta", "index": 1, "delta": delta})
    };
    let whole = searching();
    let at = whole.find(r#"data: {"type":"content_block_stop","index":1}"#).unwrap();
    let at = whole[..at].rfind("event:").unwrap();
    let cited =
        format!("{}data: {}\n\ndata: {}\n\n{}", &whole[..at], cites(1), cites(2), &whole[at..]);
    let last = answer(2, &(vec![text("Yes.")], "end_turn"), true);
    let body = request(&json!([user("Find Ada.")]), true);
    conversation.send(TARGET, &body, &[cited, last]);
    let mut expected = text("Looking.");
    expected["citations"] = json!([{"type": "char_location", "start_char_index": 1},
        {"type": "char_location", "start_char_index": 2}]);
    assert_eq!(conversation.sent[1]["messages"][1]["content"][1], expected);
}

#[test]
fn an_incomplete_call_that_the_client_got_has_empty_input() {
    let mut conversation = new_conversation(Mode::Bridge);
    let mut body = request(&json!([user("Find Ada.")]), true);
    body["tools"].as_array_mut().unwrap().push(json!({"type": "bash_20250124", "name": "bash"}));
    let half = call("toolu_bash0001", "bash", json!({"command": "ls"}));
    let half = answer(2, &(vec![half], "max_tokens"), true);
    let cut = half.replace(r#"ls\"}""#, r#"ls""#);
    assert_ne!(cut, half);
    conversation.send(TARGET, &body, &[searching(), cut]);
    let content =
        json!([thinking("s"), text("Looking."), call("toolu_bash0001", "bash", json!({}))]);
    body["messages"] = json!([user("Find Ada."), {"role": "assistant", "content": content},
        {"role": "user", "content": [result("toolu_bash0001", "cut short")]}]);
    play(&mut conversation, &body, &[(vec![text("Yes.")], "end_turn")]);
    let sent = &conversation.sent[2]["messages"];
    assert_valid_history(sent);
    assert_eq!(sent[3]["content"], json!([call("toolu_bash0001", "bash", json!({}))]));
}

#[test]
fn empty_text_is_forwarded_but_not_sent_back() {
    for stream in [false, true] {
        let mut conversation = new_conversation(Mode::Bridge);
        let rounds = [
            (vec![text(" \n"), search("toolu_search01", "find customer")], "tool_use"),
            (vec![], "end_turn"),
        ];
        let client = play(&mut conversation, &request(&json!([user("Find.")]), stream), &rounds);
        assert_eq!(client["content"], json!([text(" \n")]));
        let kept = &conversation.sent[1]["messages"][1]["content"];
        assert_eq!(*kept, json!([search("toolu_search01", "find customer")]));
    }
}

#[test]
fn bodies_that_are_not_requests_are_left_unchanged() {
    let read = |body: &str| {
        Request::read(Api::Messages, TARGET, body.as_bytes().to_vec())
            .map_err(|unread| unread.reason)
            .err()
    };
    assert_eq!(read("{"), Some(PassthroughReason::Malformed));
    assert_eq!(read(r#"{"model":"m","messages":[]}"#), Some(PassthroughReason::NoTools));
    assert_eq!(read(r#"{"model":"m","messages":[],"tools":[]}"#), Some(PassthroughReason::NoTools));
    assert_eq!(
        read(r#"{"model":"m","messages":[],"tools":null}"#),
        Some(PassthroughReason::NoTools)
    );
    assert_eq!(
        read(r#"{"model":"m","messages":[],"tools":{}}"#),
        Some(PassthroughReason::Malformed)
    );
    assert_eq!(
        read(r#"{"model":"m","messages":[1],"tools":[1]}"#),
        Some(PassthroughReason::Malformed)
    );
    assert_eq!(read(r#"{"messages":[],"tools":[1]}"#), Some(PassthroughReason::Malformed));
    assert_eq!(read(r#"{"model":"m","messages":[],"tools":[1]}"#), None);
    let body = request(&json!([user("Find Ada.")]), false).to_string();
    for error in ["", "<html>", r#"{"type":"error","error":{}}"#, r#"{"content":"x"}"#] {
        let mut turn = new_conversation(Mode::Bridge).turn(TARGET, &body);
        assert!(turn.complete_response(error.as_bytes()).is_none());
    }
}

/// Generates pieces of streams, some of them malformed.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let output = vec![
        thinking("s"),
        text("Looking."),
        search("toolu_search01", "find customer"),
        call("toolu_find0001", "crm__find_customer", json!({"q": "ada"})),
    ];
    let whole = answer(1, &(output, "tool_use"), true);
    let events: Vec<String> = whole.split_inclusive("\n\n").map(str::to_owned).collect();
    let odd = [
        r#"{"type":"content_block_start"}"#,
        r#"{"type":"content_block_start","index":-1,"content_block":{"type":"tool_use"}}"#,
        r#"{"type":"content_block_start","index":18446744073709551615,"content_block":{"type":"text"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"partial_json":7,"citation":{}}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_search_tool_result","content":[]}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":7}"#,
        r#"{"type":"message_delta","delta":null,"usage":{"output_tokens":18446744073709551615}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"pause_turn"}}"#,
        r#"{"type":7}"#,
    ];
    let events: Vec<Vec<u8>> = events
        .into_iter()
        .chain(odd.map(|data| format!("data: {data}\n\n")))
        .map(String::into_bytes)
        .collect();
    let piece = prop_oneof![
        8 => proptest::sample::select(events),
        1 => proptest::collection::vec(any::<u8>(), 0..20),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_result_does_not_depend_on_how_the_stream_is_split(
        bytes in pieces(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
        mode in proptest::sample::select(MODES.to_vec()),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.sort_unstable();
        let mut parts = Vec::new();
        let mut at = 0;
        for cut in cuts.into_iter().chain([bytes.len()]) {
            parts.push(&bytes[at..cut]);
            at = cut;
        }
        prop_assert_eq!(rounds(mode, &[&bytes]), rounds(mode, &parts));
    }

    #[test]
    fn arbitrary_bodies_never_cause_a_panic(
        shape in "[\\[\\]{}\",:a-z0-9 ]{0,60}",
        value in proptest::sample::select(vec![
            "null", "[]", "{}", r#""x""#, "[null]", r#"[{"type":"text"}]"#,
            r#"[{"type":"tool_use","name":"tool_call","input":7}]"#,
            r#"[{"type":"tool_result","content":[{"type":"tool_reference"}]}]"#,
            r#"[{"type":"thinking"}]"#, "[[[]]]",
        ]),
        role in proptest::sample::select(vec!["user", "assistant", "system", "", "\\u0000"]),
        mode in proptest::sample::select(MODES.to_vec()),
    ) {
        let _ = Request::read(Api::Messages, TARGET, shape.clone().into_bytes());
        let _ = toolcrib_dialect::messages::deferral_emulation::without_deferral(&shape);
        let mut body = request(&json!([]), false);
        let message = format!(r#"{{"role":"{role}","content":{value}}}"#);
        body["messages"] = json!([user("Hi."), serde_json::from_str::<Value>(&message).unwrap()]);
        let body = body.to_string();
        let _ = toolcrib_dialect::messages::deferral_emulation::without_deferral(&body);
        let _ = toolcrib_dialect::messages::thinking::strip_thinking(&body);
        let mut turn = new_conversation(mode).turn(TARGET, &body);
        let _ = turn.request();
        let _ = turn.complete_response(shape.as_bytes());
        let _ = turn.complete_response(format!(r#"{{"content":{value},"usage":{value},"stop_reason":{value}}}"#).as_bytes());
    }
}
