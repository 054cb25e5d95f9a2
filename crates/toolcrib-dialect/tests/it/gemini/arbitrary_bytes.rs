//! Property tests with arbitrary bytes in arbitrary pieces.

use proptest::prelude::*;
use serde_json::json;
use toolcrib_dialect::Request;

use crate::conversation::feed;

use super::*;

/// Plays rounds split into pieces, and returns all bytes that the client gets.
fn play(
    conversation: &GeminiConversation,
    body: &str,
    rounds: &[Vec<u8>],
    pieces: &[usize],
) -> Vec<u8> {
    feed(conversation.inner.turn(EVENTS, body), rounds, pieces)
}

fn rounds() -> Vec<Vec<u8>> {
    let outputs = [
        json!([{"text": "Ich schaue nach: Müller & Söhne. 🎻"}, search()]),
        json!([{"text": "Once more."}, search(), bridged(), {"text": "So.", "thoughtSignature": "eA=="}]),
    ];
    outputs.iter().zip(1..).map(|(parts, n)| answer(n, parts, "STOP", true).into_bytes()).collect()
}

/// Generates bytes that mostly look like events.
fn event_like_bytes() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "null",
        "1e999",
        "\"candidates\"",
        "\"content\"",
        "\"parts\"",
        "\"text\"",
        "\"functionCall\"",
        "\"name\"",
        "\"args\"",
        "\"tool_search\"",
        "\"tool_call\"",
        "\"finishReason\"",
        "\"STOP\"",
        "\"usageMetadata\"",
        "\"contents\"",
        "\"tools\"",
        "\"role\"",
        "\"model\"",
        "\"functionResponse\"",
        "data: ",
        "\n\n",
        "\r\n",
        "\"\\ud800\"",
        "\u{feff}",
    ]);
    let worded = prop::collection::vec(words, 0..60).prop_map(|words| words.concat().into_bytes());
    prop_oneof![worded, prop::collection::vec(any::<u8>(), 0..200)]
}

/// Generates model output in undocumented shapes.
fn unusual_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!("STOP")),
        Just(json!("tool_search")),
        Just(json!("tool_call")),
        Just(json!("crm__find_customer")),
        Just(json!(7)),
        Just(json!({"query": "find"})),
        Just(json!({"name": "crm__find_customer", "arguments": {"q": "a"}})),
        Just(json!("model")),
    ];
    let keys = prop::sample::select(vec![
        "candidates",
        "content",
        "parts",
        "functionCall",
        "functionResponse",
        "text",
        "name",
        "args",
        "id",
        "role",
        "finishReason",
        "usageMetadata",
        "promptTokenCount",
        "responseId",
        "thought",
    ]);
    leaf.prop_recursive(6, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..5).prop_map(|pairs| pairs
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_result_does_not_depend_on_how_the_bytes_are_split(
        pieces in prop::collection::vec(1..90_usize, 1..20)
    ) {
        let conversation = GeminiConversation::new(true);
        let body = request(&json!(conversation.contents)).to_string();
        let whole = play(&conversation, &body, &rounds(), &[usize::MAX]);
        prop_assert!(whole.ends_with(b"\n\n"));
        prop_assert_eq!(play(&conversation, &body, &rounds(), &pieces), whole);
    }

    #[test]
    fn arbitrary_bytes_never_cause_a_panic(
        bytes in event_like_bytes(), odd in unusual_json(), at in any::<prop::sample::Index>(), byte in any::<u8>()
    ) {
        let conversation = GeminiConversation::new(true);
        let body = request(&json!(conversation.contents)).to_string();
        let mut flipped = rounds();
        let position = at.index(flipped[0].len());
        flipped[0][position] = byte;
        let event = format!("data: {}\n\n", json!({"candidates": [{"content": {"parts": [odd]}}, odd]}));
        for round in [bytes.clone(), flipped[0].clone(), event.into_bytes(), format!("data: {odd}\n\n").into_bytes()] {
            play(&conversation, &body, &[round.clone(), bytes.clone()], &[7]);
            let _ = conversation.inner.turn(WHOLE, &body).complete_response(&round);
        }
        let _ = conversation.inner.turn(WHOLE, &body).complete_response(odd.to_string().as_bytes());
        let _ = Request::read(Api::Gemini, WHOLE, bytes.clone());
        let _ = Request::read(Api::Gemini, &String::from_utf8_lossy(&bytes), body.into_bytes());
        let mut odd_request = request(&json!([user("hi"), {"role": "model", "parts": [odd]}, odd, {"parts": [odd]}]));
        let _ = Request::read(Api::Gemini, WHOLE, odd_request.to_string().into_bytes())
            .map(|_| conversation.inner.turn(WHOLE, &odd_request.to_string()).request());
        odd_request["tools"] = odd;
        let _ = Request::read(Api::Gemini, WHOLE, odd_request.to_string().into_bytes());
    }
}
