//! Streams that break, and shapes that nobody promised.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_dialect::sse::Decoder;
use toolcrib_dialect::{Api, DeferralEmulation, Request};

use super::{
    BOTH, Events, TARGET, answer, answers, bridge, call, client_tools, message, output, reasoning,
    request, response, search, seen, talk, user,
};
use crate::support::{Done, Got, Next, Turn};

fn turn() -> Turn {
    talk().turn(TARGET, &request(&json!([user("Find Ada.")]), true).to_string())
}

/// Plays rounds against one turn, in pieces of these sizes; what the client got.
fn play(rounds: &[String], sizes: &[usize]) -> (String, Option<Next>) {
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

fn records(next: Option<Next>) -> usize {
    match next {
        Some(Next::Done(done)) => done.records.len(),
        other => panic!("not the end: {other:?}"),
    }
}

/// Two rounds with everything in them.
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

fn mended(text: &str) -> String {
    text.replace(r#"[{"type":"function","name":"what_went_up"}]"#, &client_tools().to_string())
}

#[test]
fn a_stream_that_is_cut_ends_where_it_was_cut() {
    let upstream = answer(1, &[message(1, "Hello there, friend.")], true);
    let events: Vec<&str> = upstream.split_inclusive("\n\n").collect();
    let half = events[..6].concat();
    let (got, next) = play(std::slice::from_ref(&half), &[7]);
    assert_eq!(got, mended(&half));
    assert_eq!(records(next), 0);
    // A call that is held when it happens is nobody's.
    let upstream = answer(1, &[search("call_search00001", "find customer")], true);
    let events: Vec<&str> = upstream.split_inclusive("\n\n").collect();
    for count in 2..events.len() - 1 {
        let (got, next) = play(&[events[..count].concat()], &[7]);
        assert_eq!(got, mended(&events[..2].concat()), "{count}");
        assert_eq!(records(next), 0);
    }
}

#[test]
fn half_an_event_at_the_end_passes_as_it_came() {
    let upstream = answer(1, &[message(1, "Hello.")], true);
    let half = &upstream[..upstream.len() / 2];
    let (got, next) = play(&[half.to_owned()], &[5]);
    assert_eq!(got, mended(half));
    assert_eq!(records(next), 0);
    // The blank line after the last event may be missing.
    let (got, next) = play(&[upstream.trim_end().to_owned()], &[5]);
    assert_eq!(got, mended(upstream.trim_end()));
    assert_eq!(records(next), 0);
}

#[test]
fn an_error_in_the_stream_passes_and_ends_the_turn() {
    let mut events = Events::default();
    events.add(
        "response.created",
        &json!({"response": response(1, "in_progress", &[], &Value::Null)}),
    );
    events.item(0, &message(1, "Hello."));
    events.add("error", &json!({"code": "server_error", "message": "sorry", "param": null}));
    let (got, next) = play(&[events.text.clone()], &[11]);
    assert_eq!(got, mended(&events.text));
    assert_eq!(records(next), 0);

    let mut events = Events::default();
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
    let last = Got { text: got, done: Done::default() }.events().pop().unwrap();
    assert_eq!(last["sequence_number"], 1);
    assert_eq!(last["response"]["error"]["message"], "sorry");
    assert_eq!(last["response"]["output"], json!([]));
    assert_eq!(last["response"]["tools"], client_tools());
}

#[test]
fn a_later_round_that_fails_is_told_in_the_stream() {
    let (mut turn, mut out) = (turn(), Vec::new());
    turn.bytes(rounds()[0].as_bytes(), &mut out);
    assert!(matches!(turn.end(&mut out), Next::Again));
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
fn what_is_unknown_passes_as_it_came() {
    let mut events = Events::default();
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

/// However the events tell it, the client gets the call and then the message.
fn the_call_comes_before_the_message(events: Events) {
    let mut talk = talk();
    let got = talk.ask(TARGET, &request(&json!([user("Find Ada.")]), true), &[events.text]);
    let expected = [
        call("call_find0000001", "crm__find_customer", r#"{"q":"ada"}"#),
        message(1, "Meanwhile."),
    ];
    assert_eq!(seen(&got, true).output, expected);
}

#[test]
fn an_item_that_begins_while_another_is_held_waits_for_it() {
    let found = bridge("call_find0000001", "crm__find_customer", &json!({"q": "ada"}));
    let mut events = Events::default();
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
fn a_server_that_repeats_nothing_at_the_end_is_put_together() {
    // As some do that keep nothing: the items are in the events alone.
    let found = bridge("call_find0000001", "crm__find_customer", &json!({"q": "ada"}));
    let begun = response(1, "in_progress", &[], &Value::Null);
    let whole = response(1, "completed", &[], &Value::Null);
    let mut events = Events::default();
    events.add("response.created", &json!({"response": begun}));
    events.item(0, &found);
    // One that never ends, and one that waited for it.
    let mut half = search("call_search00001", "find");
    half["arguments"] = json!("");
    events.add("response.output_item.added", &json!({"output_index": 1, "item": half}));
    events.item(2, &message(1, "Meanwhile."));
    events.add("response.completed", &json!({"response": whole}));
    the_call_comes_before_the_message(events);
}

#[test]
fn servers_that_number_and_name_nothing_and_say_all_at_the_end() {
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
    let mut talk = talk();
    let got = talk.ask(TARGET, &request(&json!([user("Find Ada.")]), true), &rounds);
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
fn a_response_that_is_none_goes_as_it_came() {
    for body in [r#"{"error": {"message": "no"}}"#, "<html>", "[]", r#"{"output": 7}"#] {
        let mut turn = talk().turn(TARGET, &request(&json!("hi"), false).to_string());
        assert!(turn.whole(body.as_bytes()).is_none(), "{body}");
    }
}

#[test]
fn every_other_byte_of_a_whole_response_stays() {
    let upstream = format!(
        "{{ \"id\" : \"resp_1\",\n \"output\": [ {} ], \"tools\": [ ] , \"usage\":{{\"input_tokens\": 1.0}} }}\n",
        message(1, "Hello.")
    );
    let got = talk().ask(TARGET, &request(&json!("hi"), false), std::slice::from_ref(&upstream));
    assert_eq!(got.text, upstream.replace("[ ]", &client_tools().to_string()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn however_the_bytes_are_cut_the_client_gets_the_same(sizes in prop::collection::vec(1usize..400, 1..12)) {
        let rounds = rounds();
        let whole = play(&rounds, &[usize::MAX]).0;
        prop_assert_eq!(play(&rounds, &sizes).0, whole);
    }

    #[test]
    fn no_bytes_of_an_upstream_stop_us(
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
            let mut turn = talk().turn(TARGET, &body.to_string());
            turn.whole(&bytes);
        }
    }

    #[test]
    fn no_request_stops_us(
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
