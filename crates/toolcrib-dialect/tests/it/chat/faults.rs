//! Tests of forced calls, of responses that are cut off or fail, and of arbitrary bytes in arbitrary pieces.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_dialect::{Api, Request};

use super::{
    ChatConversation, ModelOutput, TARGET, answer, new_conversation, read_as_client, request,
};
use crate::conversation::{ClientResponse, feed};

const SEARCH: ModelOutput<'_> = ModelOutput {
    text: "",
    calls: &[("call_search00001", "tool_search", r#"{"query":"find customer"}"#)],
    finish: "tool_calls",
};
const FOUND: ModelOutput<'_> = ModelOutput { text: "Found it.", calls: &[], finish: "stop" };

fn send(rounds: &[String]) -> ClientResponse {
    let messages = json!([{"role": "user", "content": "Find Ada."}]);
    new_conversation().send(TARGET, &request(&messages, true), rounds)
}

#[test]
fn a_forced_tool_is_sent_in_full_from_then_on() {
    for stream in [false, true] {
        let mut conversation = ChatConversation::new(stream);
        let mut body = request(&json!(conversation.messages), stream);
        body["tool_choice"] =
            json!({"type": "function", "function": {"name": "crm__find_customer"}});
        let says = ModelOutput {
            calls: &[("call_find0000001", "crm__find_customer", r#"{"q":"ada"}"#)],
            ..SEARCH
        };
        let upstream = answer(1, &says, stream);
        let got = conversation.inner.send(TARGET, &body, std::slice::from_ref(&upstream));
        assert_eq!(got.text, upstream, "the response is forwarded unchanged");
        assert_eq!(conversation.inner.sent[0]["tools"][0], body["tools"][0]);
        let found =
            json!({"role": "tool", "tool_call_id": "call_find0000001", "content": "Ada, 7"});
        conversation.reply(&read_as_client(&got, stream), &[found]);
    }
}

#[test]
fn none_and_required_do_not_change_the_tools() {
    for choice in ["none", "required"] {
        let mut conversation = ChatConversation::new(false);
        conversation.send(&[FOUND]);
        let mut body = request(&json!(conversation.messages), false);
        body["tool_choice"] = json!(choice);
        conversation.inner.send(
            TARGET,
            &body,
            &[answer(1, &SEARCH, false), answer(2, &FOUND, false)],
        );
        for sent in &conversation.inner.sent[1..] {
            assert_eq!(sent["tools"], conversation.inner.sent[0]["tools"]);
            assert_eq!(sent["tool_choice"], choice);
        }
    }
}

#[test]
fn a_stream_that_is_cut_off_is_not_recorded() {
    let whole = answer(1, &FOUND, true);
    let got = send(&[whole[..whole.len() / 3].to_owned()]);
    assert_eq!(got.text, whole[..whole.len() / 3], "unchanged");
    assert!(got.done.records.is_empty());
    // If the stream is cut off, a search in it is neither answered nor forwarded.
    let search = answer(1, &SEARCH, true);
    let cut = search.find(r#""finish_reason":"tool_calls""#).unwrap();
    let cut = search[..cut].rfind("data: ").unwrap();
    let got = send(&[search[..cut].to_owned()]);
    assert!(got.done.records.is_empty());
    assert!(!got.text.contains("tool_search"), "{}", got.text);
}

#[test]
fn an_error_in_the_stream_is_forwarded_and_ends_the_turn() {
    let error = "data: {\"error\": {\"message\": \"overloaded\"}}\n\n";
    let got = send(&[answer(1, &FOUND, true).replace("data: [DONE]\n\n", error)]);
    assert!(got.text.ends_with(error) && got.done.records.is_empty());
    let got = send(&[answer(1, &SEARCH, true).replace("data: [DONE]\n\n", error)]);
    assert!(got.text.ends_with(error) && got.done.records.is_empty(), "no second round");
    let got = send(&[answer(1, &SEARCH, true), error.to_owned()]);
    assert!(got.text.ends_with(error) && got.done.records.is_empty());
}

#[test]
fn unknown_events_are_forwarded_unchanged() {
    let strange = ": hi\n\nevent: x\ndata: {\"y\": 1.0}\n\ndata: half {\n\n\
        data: {\"choices\":[7]}\n\ndata: {\"choices\":[]}\n\n";
    let upstream = strange.to_owned() + &answer(1, &FOUND, true);
    assert_eq!(
        send(std::slice::from_ref(&upstream)).text,
        upstream,
        "the response is forwarded unchanged"
    );
}

#[test]
fn interleaved_calls_are_assembled_separately() {
    let chunk = |delta: &Value, finish: &Value| {
        let chunk = json!({"id": "chatcmpl-1", "created": 1, "choices": [
            {"index": 0, "delta": delta, "finish_reason": finish}]});
        format!("data: {chunk}\n\n")
    };
    let piece = |index: usize, arguments: &str| {
        chunk(
            &json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}),
            &Value::Null,
        )
    };
    let begin = |index: usize| {
        json!({"index": index, "id": format!("call_find000000{index}"), "type": "function",
            "function": {"name": "tool_call", "arguments": ""}})
    };
    let upstream = [
        chunk(&json!({"role": "assistant", "tool_calls": [begin(0), begin(1)]}), &Value::Null),
        piece(0, r#"{"name":"crm__find_customer","#),
        piece(1, r#"{"name":"crm__find_customer","arguments":{"q":"b"}}"#),
        piece(0, r#""arguments":{"q":"a"}}"#),
        chunk(&json!({}), &json!("tool_calls")),
        "data: [DONE]\n\n".to_owned(),
    ];
    let received = read_as_client(&send(&[upstream.concat()]), true);
    let call = |index: usize, arguments: &str| {
        json!({"id": format!("call_find000000{index}"), "type": "function",
            "function": {"name": "crm__find_customer", "arguments": arguments}})
    };
    assert_eq!(
        received.message["tool_calls"],
        json!([call(0, r#"{"q":"a"}"#), call(1, r#"{"q":"b"}"#)])
    );
}

fn play(rounds: &[Vec<u8>], pieces: &[usize]) -> Vec<u8> {
    let body = request(&json!([{"role": "user", "content": "Find Ada."}]), true).to_string();
    feed(new_conversation().turn(TARGET, &body), rounds, pieces)
}

/// Generates model output in undocumented shapes.
fn unusual_json() -> impl Strategy<Value = Value> {
    let leaf = prop::sample::select(vec![
        json!(null),
        json!(0),
        json!(7),
        json!("tool_search"),
        json!("tool_call"),
        json!("stop"),
        json!("length"),
        json!("assistant"),
        json!("{\"query\":\"find\"}"),
        json!({"query": "find"}),
    ]);
    let keys = prop::sample::select(vec![
        "choices",
        "delta",
        "message",
        "content",
        "tool_calls",
        "index",
        "id",
        "function",
        "name",
        "arguments",
        "finish_reason",
        "usage",
        "role",
        "reasoning_content",
    ]);
    leaf.prop_recursive(6, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..5).prop_map(|pairs| {
                pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_result_does_not_depend_on_how_the_bytes_are_split(
        pieces in prop::collection::vec(1..90_usize, 1..20)
    ) {
        let rounds = [answer(1, &SEARCH, true).into_bytes(), answer(2, &FOUND, true).into_bytes()];
        let whole = play(&rounds, &[usize::MAX]);
        prop_assert!(whole.ends_with(b"data: [DONE]\n\n"));
        prop_assert_eq!(play(&rounds, &pieces), whole);
    }

    #[test]
    fn arbitrary_bytes_never_cause_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200), odd in unusual_json(),
        at in any::<prop::sample::Index>(), byte in any::<u8>()
    ) {
        let mut flipped = answer(1, &SEARCH, true).into_bytes();
        let position = at.index(flipped.len());
        flipped[position] = byte;
        let call = json!({"choices": [{"delta": {"tool_calls": [odd, odd]}, "finish_reason": odd}]});
        let message = json!({"choices": [{"message": {"role": "assistant", "tool_calls": [odd]}}]});
        let body = request(&json!([{"role": "user", "content": "hi"}]), false).to_string();
        for value in [&odd, &call, &message] {
            let event = format!("data: {value}\n\n").into_bytes();
            play(&[[event.clone(), flipped.clone(), event].concat(), bytes.clone()], &[7]);
            let _ = new_conversation().turn(TARGET, &body).complete_response(value.to_string().as_bytes());
        }
        let odd_request = request(&json!([{"role": "assistant", "tool_calls": [odd], "content": odd}, odd]), true);
        if Request::read(Api::Chat, TARGET, odd_request.to_string().into_bytes()).is_ok() {
            new_conversation().turn(TARGET, &odd_request.to_string()).request();
        }
        let _ = Request::read(Api::Chat, TARGET, bytes);
    }
}
