//! Tests of responses that are cut off, fail, or have unexpected shapes.

use crate::conversation::NextStep;
use serde_json::json;

use super::*;

/// Plays these rounds, and returns what the client got.
fn send(rounds: &[String]) -> ClientResponse {
    let mut conversation = GeminiConversation::new(true);
    conversation.inner.send(EVENTS, &request(&json!(conversation.contents)), rounds)
}

fn searched() -> String {
    answer(1, &json!([search()]), "STOP", true)
}

fn event(value: &Value) -> String {
    format!("data: {value}\r\n\r\n")
}

#[test]
fn a_stream_that_is_cut_off_is_not_recorded() {
    let whole = answer(1, &json!([{"text": "Half of a sentence"}, search()]), "STOP", true);
    for cut in [whole.len() / 3, whole.len() / 2] {
        let got = send(&[whole[..cut].to_owned()]);
        assert_eq!(got.text, whole[..cut], "unchanged");
        assert!(got.done.records.is_empty());
    }
    // A complete search is neither answered nor recorded if its round has no finish reason.
    let unended = whole.replace(r#""finishReason":"STOP","#, "");
    let got = send(&[unended]);
    assert!(got.done.records.is_empty());
    assert!(
        !got.text.contains("tool_search") && !got.text.contains("finishReason"),
        "{}",
        got.text
    );
    // If a later round is cut off, nothing is recorded either.
    let later = answer(2, &json!([{"text": "Now then"}]), "STOP", true);
    let first = later.split_inclusive("\r\n\r\n").next().unwrap();
    let got = send(&[searched(), first.to_owned()]);
    assert!(got.done.records.is_empty());
    assert_eq!(got.events().len(), 1);
    assert_eq!(got.events()[0]["candidates"][0]["content"]["parts"], json!([{"text": "Now "}]));
}

#[test]
fn an_error_in_the_stream_is_forwarded_and_ends_the_turn() {
    let error =
        event(&json!({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}));
    let got = send(&[searched() + &error]);
    assert_eq!(got.text, error, "no second round");
    assert!(got.done.records.is_empty());
    let got = send(&[searched(), error.clone()]);
    assert_eq!(got.text, error);
    assert!(got.done.records.is_empty());
}

#[test]
fn a_failed_round_is_reported_in_the_stream() {
    let conversation = GeminiConversation::new(true);
    let body = request(&json!(conversation.contents)).to_string();
    let mut out = Vec::new();
    for (status, error_body, expected) in [
        (
            429,
            "{\"error\": {\"code\": 429,\n \"message\": \"slow down\"}}",
            r#"{"error":{"code":429,"message":"slow down"}}"#,
        ),
        (
            502,
            "<html>",
            r#"{"error":{"code":502,"message":"the upstream answered 502","status":"UNAVAILABLE"}}"#,
        ),
    ] {
        let mut turn = conversation.inner.turn(EVENTS, &body);
        out.clear();
        turn.bytes(searched().as_bytes(), &mut out);
        assert!(matches!(turn.end(&mut out), NextStep::Again));
        assert_eq!(out, b"", "the hidden search is not forwarded");
        assert_eq!(turn.keep_alive(), b"", "no keep-alive: clients read every line as data");
        turn.fail(status, error_body.as_bytes(), &mut out);
        assert_eq!(String::from_utf8_lossy(&out), format!("data: {expected}\n\n"));
    }
}

#[test]
fn a_truncated_round_is_the_last() {
    for stream in BOTH {
        for finish in ["MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL", "TOO_MANY_TOOL_CALLS"] {
            let mut conversation = GeminiConversation::new(stream);
            let upstream = answer(1, &json!([{"text": "Let me"}, search()]), finish, stream);
            let got = conversation.inner.send(
                target(stream),
                &request(&json!(conversation.contents)),
                &[upstream],
            );
            let received = read_as_client(&got, stream);
            assert_eq!(received, expected(&json!([{"text": "Let me"}]), finish, 1));
            // The search arrived complete, so it is kept in the history. It is also answered, because a history must
            // not contain a call without a result.
            let tail = conversation.reply(&received, &json!([{"text": "Go on."}]));
            assert_eq!(tail[0]["parts"], json!([{"text": "Let me"}, search()]));
            assert!(outputs(&tail[1])[0].contains("crm__find_customer"));
            assert_eq!(tail[2..], [user("Go on.")]);
        }
    }
    // A round whose only event has a finish reason and no content.
    let bare =
        event(&json!({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "index": 0,
        "finishMessage": "Malformed function call: print("}], "responseId": "resp-1"}));
    assert_eq!(send(std::slice::from_ref(&bare)).text, bare);
    let got = send(&[searched(), bare]);
    assert_eq!(
        got.events(),
        [json!({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "index": 0,
        "finishMessage": "Malformed function call: print("}], "responseId": "resp-1",
        "usageMetadata": expected(&json!([]), "", 1).usage})]
    );
}

#[test]
fn a_blocked_prompt() {
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}, "responseId": "resp-9",
        "usageMetadata": {"promptTokenCount": 5, "totalTokenCount": 5}});
    assert_eq!(
        send(&[event(&blocked)]).text,
        event(&blocked),
        "the response is forwarded unchanged"
    );
    let sum = json!({"promptTokenCount": 105, "candidatesTokenCount": 10, "totalTokenCount": 115,
        "cachedContentTokenCount": 7, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 100}]});
    let expected = json!({"promptFeedback": {"blockReason": "SAFETY"}, "responseId": "resp-1",
        "usageMetadata": sum});
    assert_eq!(send(&[searched(), event(&blocked)]).events(), std::slice::from_ref(&expected));
    let mut conversation = GeminiConversation::new(false);
    let answers = [answer(1, &json!([search()]), "STOP", false), blocked.to_string()];
    let got = conversation.inner.send(WHOLE, &request(&json!(conversation.contents)), &answers);
    assert_eq!(got.json(), expected);
}

#[test]
fn unknown_events_are_forwarded_unchanged() {
    let strange = [
        ": a comment\n\n",
        "event: note\ndata: {\"note\": 1.00}\n\n",
        "data: [1, 2]\n\n",
        "data: half of {\n\n",
        "data: [DONE]\n\n",
        "data: {\"candidates\":null,\"usageMetadata\":{}}\n\n",
        "data: {\"candidates\":[{\"content\":{\"parts\":[7,null,{\"x\":1}]}}]}\n\n",
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"args\":3}}]}}]}\n\n",
        "data: {\"candidates\":[\"x\"]}\n\n",
    ]
    .concat();
    let end = answer(1, &json!([{"text": "Done."}]), "STOP", true);
    let upstream = strange.clone() + &end;
    assert_eq!(
        send(std::slice::from_ref(&upstream)).text,
        upstream,
        "the response is forwarded unchanged"
    );
    // After a search, events that are not responses are still forwarded to the client.
    let got = send(&[searched(), upstream]).text;
    for frame in [": a comment\n\n", "event: note\ndata: {\"note\": 1.00}\n\n", "data: [DONE]\n\n"]
    {
        assert!(got.contains(frame), "{got}");
    }
    assert!(got.contains(r#"[7,null,{"x":1}]"#), "{got}");
}

#[test]
fn a_finish_reason_in_every_event_and_usage_after_it() {
    // Older models send a finish reason in every event, and the usage may arrive in a separate event.
    let piece = |text: &str| {
        event(&json!({"candidates": [{"content": {"parts": [{"text": text}], "role": "model"},
            "finishReason": "STOP", "groundingMetadata": {"q": 1}}], "responseId": "resp-2"}))
    };
    let counts =
        event(&json!({"usageMetadata": {"promptTokenCount": 200}, "responseId": "resp-2"}));
    let got = send(&[searched(), piece("One ") + &piece("two.") + &counts]);
    let text_event = |text: &str| {
        json!({"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}}],
            "responseId": "resp-1"})
    };
    let end = json!({"candidates": [{"content": {"parts": [{"text": ""}], "role": "model"},
        "finishReason": "STOP", "groundingMetadata": {"q": 1}}], "responseId": "resp-1",
        "usageMetadata": {"promptTokenCount": 300, "candidatesTokenCount": 10, "totalTokenCount": 110,
            "cachedContentTokenCount": 7, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 100}]}});
    assert_eq!(got.events(), [text_event("One "), text_event("two."), end]);
    assert_eq!(got.done.summary.usage.input, 300);
    assert_eq!(got.done.summary.last.input, 200);
}

#[test]
fn a_body_that_is_not_a_response_is_forwarded_unchanged() {
    let conversation = GeminiConversation::new(false);
    let body = request(&json!(conversation.contents)).to_string();
    for other in ["", "[]", "null", "{}", r#"{"error":{"code":400}}"#, "\u{0}", "<html>"] {
        assert!(
            conversation.inner.turn(WHOLE, &body).complete_response(other.as_bytes()).is_none(),
            "{other}"
        );
    }
    assert!(conversation.inner.turn(WHOLE, &body).complete_response(b"\xff").is_none());
}
