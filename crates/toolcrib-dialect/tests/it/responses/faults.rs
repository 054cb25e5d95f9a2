//! Tests of streams that are cut off, and of undocumented shapes.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_dialect::sse::Decoder;
use toolcrib_dialect::{Api, DeferralEmulation, Request};

use super::{
    BOTH, EventBuilder, TARGET, answer, answers, bridge, call, client_tools, message,
    new_conversation, output, read_as_client, reasoning, request, response, search, user,
};
use crate::conversation::{ClientResponse, DrivenTurn, NextStep, TurnOutcome};

fn turn() -> DrivenTurn {
    new_conversation().turn(TARGET, &request(&json!([user("Find Ada.")]), true).to_string())
}

/// Plays rounds of one turn in pieces of these sizes. Returns what the client got, and the step after the last round.
fn play(rounds: &[String], sizes: &[usize]) -> (String, Option<NextStep>) {
    let (mut turn, mut out, mut last) = (turn(), Vec::new(), None);
    let mut sizes = sizes.iter().copied().cycle();
    for round in rounds {
        let mut rest = round.as_bytes();
        while !rest.is_empty() {
            let size = sizes.next().unwrap_or(1).clamp(1, rest.len());
            let (piece, more) = rest.split_at(size);
            turn.bytes(piece, &mut out);
            rest = more;
        }
        last = Some(turn.end(&mut out));
    }
    (String::from_utf8(out).unwrap(), last)
}

fn records(next: Option<NextStep>) -> usize {
    match next {
        Some(NextStep::Done(done)) => done.records.len(),
        other => panic!("the turn has not ended: {other:?}"),
    }
}

/// Returns the upstream's responses of two rounds with every kind of item.
fn rounds() -> Vec<String> {
    let first = [
        reasoning(1),
        message(1, "Let me look, für dich."),
        search("call_search00001", "find customer"),
    ];
    let second = [
        message(2, "There."),
        bridge("call_find0000001", "crm__find_customer", &json!({"q": "ada"})),
        search("call_search00002", "update customer"),
    ];
    answers(&[&first, &second], true)
}

/// Replaces the tools that the upstream repeats in its response by the client's own tools.
fn with_client_tools(text: &str) -> String {
    text.replace(r#"[{"type":"function","name":"sent_upstream"}]"#, &client_tools().to_string())
}

#[test]
fn a_stream_that_is_cut_off_ends_there() {
    let upstream = answer(1, &[message(1, "Hello there, friend.")], true);
    let events: Vec<&str> = upstream.split_inclusive("\n\n").collect();
    let half = events[..6].concat();
    let (got, next) = play(std::slice::from_ref(&half), &[7]);
    assert_eq!(got, with_client_tools(&half));
    assert_eq!(records(next), 0);
    // If the stream is cut off, a call that is held back is neither forwarded nor answered.
    let upstream = answer(1, &[search("call_search00001", "find customer")], true);
    let events: Vec<&str> = upstream.split_inclusive("\n\n").collect();
    for count in 2..events.len() - 1 {
        let (got, next) = play(&[events[..count].concat()], &[7]);
        assert_eq!(got, with_client_tools(&events[..2].concat()), "{count}");
        assert_eq!(records(next), 0);
    }
}

#[test]
fn an_incomplete_last_event_is_forwarded_unchanged() {
    let upstream = answer(1, &[message(1, "Hello.")], true);
    let half = &upstream[..upstream.len() / 2];
    let (got, next) = play(&[half.to_owned()], &[5]);
    assert_eq!(got, with_client_tools(half));
    assert_eq!(records(next), 0);
    // The blank line after the last event may be missing.
    let (got, next) = play(&[upstream.trim_end().to_owned()], &[5]);
    assert_eq!(got, with_client_tools(upstream.trim_end()));
    assert_eq!(records(next), 0);
}

#[test]
fn an_error_in_the_stream_is_forwarded_and_ends_the_turn() {
    let mut events = EventBuilder::default();
    events.add(
        "response.created",
        &json!({"response": response(1, "in_progress", &[], &Value::Null)}),
    );
    events.item(0, &message(1, "Hello."));
    events.add("error", &json!({"code": "server_error", "message": "sorry", "param": null}));
    let (got, next) = play(&[events.text.clone()], &[11]);
    assert_eq!(got, with_client_tools(&events.text));
    assert_eq!(records(next), 0);

    let mut events = EventBuilder::default();
    events.add(
        "response.created",
        &json!({"response": response(1, "in_progress", &[], &Value::Null)}),
    );
    events.item(0, &search("call_search00001", "find customer"));
    let mut failed =
        response(1, "failed", &[search("call_search00001", "find customer")], &Value::Null);
    failed["error"] = json!({"code": "server_error", "message": "sorry"});
    events.add("response.failed", &json!({"response": failed}));
    let (got, next) = play(&[events.text], &[11]);
    assert_eq!(records(next), 0);
    let last = ClientResponse { text: got, done: TurnOutcome::default() }.events().pop().unwrap();
    assert_eq!(last["sequence_number"], 1);
    assert_eq!(last["response"]["error"]["message"], "sorry");
    assert_eq!(last["response"]["output"], json!([]));
    assert_eq!(last["response"]["tools"], client_tools());
}

#[test]
fn a_failed_later_round_is_reported_in_the_stream() {
    let (mut turn, mut out) = (turn(), Vec::new());
    turn.bytes(rounds()[0].as_bytes(), &mut out);
    assert!(matches!(turn.end(&mut out), NextStep::Again));
    let before = out.len();
    turn.fail(
        429,
        br#"{"error": {"message": "slow down", "type": "rate_limit", "code": null}}"#,
        &mut out,
    );
    let text = String::from_utf8(out[before..].to_vec()).unwrap();
    let event: Value =
        serde_json::from_str(text.lines().nth(1).unwrap().strip_prefix("data: ").unwrap()).unwrap();
    assert!(text.starts_with("event: response.failed\n"));
    let mut expected =
        response(1, "failed", &[reasoning(1), message(1, "Let me look, für dich.")], &Value::Null);
    expected["tools"] = client_tools();
    expected["error"] = json!({"code": "rate_limit", "message": "slow down"});
    assert_eq!(event["response"], expected);
}

#[test]
fn unknown_events_are_forwarded_unchanged() {
    let mut events = EventBuilder::default();
    events.text += ": a comment\n\n";
    events.add("response.created", &json!({"response": {"id": "resp_1", "object": "response"}}));
    events.add("response.new_thing", &json!({"what": [1, 2]}));
    events.item(0, &json!({"id": "nt_1", "type": "new_thing", "x": 1}));
    events.add("response.new_thing.delta", &json!({"output_index": 0, "delta": "?"}));
    events.text += "data: no json\n\nid: 7\nevent: odd\ndata: [1]\n\n";
    events.add("response.completed", &json!({"response": {"id": "resp_1", "status": "completed"}}));
    events.text += "data: [DONE]\n\n";
    let (got, next) = play(&[events.text.clone()], &[3]);
    assert_eq!(got, events.text);
    assert_eq!(records(next), 0);
}

/// Plays these events, and checks that the client gets the call to `crm__find_customer` before the message.
fn the_call_comes_before_the_message(events: EventBuilder) {
    let mut conversation = new_conversation();
    let got =
        conversation.send(TARGET, &request(&json!([user("Find Ada.")]), true), &[events.text]);
    let expected = [
        call("call_find0000001", "crm__find_customer", r#"{"q":"ada"}"#),
        message(1, "Meanwhile."),
    ];
    assert_eq!(read_as_client(&got, true).output, expected);
}

#[test]
fn an_item_waits_while_another_is_held() {
    let found = bridge("call_find0000001", "crm__find_customer", &json!({"q": "ada"}));
    let mut events = EventBuilder::default();
    events.add(
        "response.created",
        &json!({"response": response(1, "in_progress", &[], &Value::Null)}),
    );
    events.add(
        "response.in_progress",
        &json!({"response": response(1, "in_progress", &[], &Value::Null)}),
    );
    let mut begun = found.clone();
    begun["arguments"] = json!("");
    events.add("response.output_item.added", &json!({"output_index": 0, "item": begun}));
    events.item(1, &message(1, "Meanwhile."));
    events.add("response.output_item.done", &json!({"output_index": 0, "item": found}));
    let whole = response(1, "completed", &[found, message(1, "Meanwhile.")], &Value::Null);
    events.add("response.completed", &json!({"response": whole}));
    the_call_comes_before_the_message(events);
}

#[test]
fn the_output_is_assembled_if_the_last_event_omits_it() {
    // Some servers that do not store responses send items only in events, and leave them out of the last event.
    let found = bridge("call_find0000001", "crm__find_customer", &json!({"q": "ada"}));
    let begun = response(1, "in_progress", &[], &Value::Null);
    let whole = response(1, "completed", &[], &Value::Null);
    let mut events = EventBuilder::default();
    events.add("response.created", &json!({"response": begun}));
    events.item(0, &found);
    // A call that never ends, followed by a message that is held back because of it.
    let mut half = search("call_search00001", "find");
    half["arguments"] = json!("");
    events.add("response.output_item.added", &json!({"output_index": 1, "item": half}));
    events.item(2, &message(1, "Meanwhile."));
    events.add("response.completed", &json!({"response": whole}));
    the_call_comes_before_the_message(events);
}

#[test]
fn servers_without_event_names_and_numbers() {
    let bare = |kind: &str, more: Value| {
        let mut data = json!({"type": kind});
        data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        format!("data: {data}\n\n")
    };
    let rounds: Vec<String> = (1..)
        .zip([
            vec![search("call_search00001", "find customer")],
            vec![bridge("call_find0000001", "crm__find_customer", &json!({"q": "ada"}))],
        ])
        .map(|(n, items)| {
            let begun = response(n, "in_progress", &[], &Value::Null);
            bare("response.created", json!({"response": begun}))
                + &bare(
                    "response.completed",
                    json!({"response": response(n, "completed", &items, &Value::Null)}),
                )
                + "data: [DONE]\n\n"
        })
        .collect();
    let mut conversation = new_conversation();
    let got = conversation.send(TARGET, &request(&json!([user("Find Ada.")]), true), &rounds);
    let events = got.events();
    let kinds: Vec<&str> =
        events.iter().map(|event| event["type"].as_str().unwrap_or("-")).collect();
    assert_eq!(
        kinds,
        [
            "response.created",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed",
            "-"
        ]
    );
    assert!(events.iter().all(|event| event.get("sequence_number").is_none()));
    assert!(!got.text.contains("event:"));
    let found = call("call_find0000001", "crm__find_customer", r#"{"q":"ada"}"#);
    assert_eq!(events[5]["response"]["output"], json!([found]));
    assert_eq!(events[5]["response"]["id"], "resp_1");
}

#[test]
fn a_body_that_is_not_a_response_is_forwarded_unchanged() {
    for body in [r#"{"error": {"message": "no"}}"#, "<html>", "[]", r#"{"output": 7}"#] {
        let mut turn = new_conversation().turn(TARGET, &request(&json!("hi"), false).to_string());
        assert!(turn.complete_response(body.as_bytes()).is_none(), "{body}");
    }
}

#[test]
fn all_other_bytes_of_a_complete_response_are_kept() {
    let upstream = format!(
        "{{ \"id\" : \"resp_1\",\n \"output\": [ {} ], \"tools\": [ ] , \"usage\":{{\"input_tokens\": 1.0}} }}\n",
        message(1, "Hello.")
    );
    let got = new_conversation().send(
        TARGET,
        &request(&json!("hi"), false),
        std::slice::from_ref(&upstream),
    );
    assert_eq!(got.text, upstream.replace("[ ]", &client_tools().to_string()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_result_does_not_depend_on_how_the_bytes_are_split(sizes in prop::collection::vec(1usize..400, 1..12)) {
        let rounds = rounds();
        let whole = play(&rounds, &[usize::MAX]).0;
        prop_assert_eq!(play(&rounds, &sizes).0, whole);
    }

    #[test]
    fn arbitrary_responses_never_cause_a_panic(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        tail in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let mut bytes = rounds().concat().into_bytes();
        for (at, byte) in cuts {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.extend(tail);
        let (mut turn, mut out) = (turn(), Vec::new());
        turn.bytes(&bytes, &mut out);
        turn.end(&mut out);
        for stream in BOTH {
            let body = request(&json!([user("hi"), output("call_x", "y")]), stream);
            let mut turn = new_conversation().turn(TARGET, &body.to_string());
            turn.complete_response(&bytes);
        }
    }

    #[test]
    fn arbitrary_requests_never_cause_a_panic(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        noise in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let items = [
            user("hi"),
            reasoning(1),
            search("call_1", "x"),
            output("call_1", "y"),
            json!({"id": 1}),
            json!({"type": "additional_tools", "tools": [{"type": "namespace", "tools": [{"name": "x"}, 7]}]}),
        ];
        let mut bytes = request(&json!(items), true).to_string().into_bytes();
        for (at, byte) in cuts {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(mut emulation) = std::str::from_utf8(&bytes).ok().and_then(DeferralEmulation::read) {
            let (mut decoder, mut out) = (Decoder::default(), Vec::new());
            decoder.push(&rounds().concat().into_bytes());
            decoder.push(&noise);
            while let Ok(Some(event)) = decoder.next_event() {
                emulation.restore_event(&event, &mut out);
            }
            emulation.restore_response(&String::from_utf8_lossy(&bytes));
        }
        let _ = Request::read(Api::Responses, TARGET, bytes);
        let _ = Request::read(Api::Responses, TARGET, noise);
    }
}
