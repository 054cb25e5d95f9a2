//! Tests of features that the upstream does not support: the request is sent again in another mode.

use super::*;

#[test]
fn a_rejected_feature_a_fallback_and_a_hidden_round() {
    for stream in [false, true] {
        let mut store = HashMap::new();
        let refused = refusal("tools.0.custom.defer_loading", "Extra inputs are not permitted");
        let answers = vec![refused, searches(stream), wrapped(stream)];
        let played = play(&first_request(stream), setup(), &mut store, answers);

        let native = Mode::Reference(ReferenceKind::ToolReference);
        let missing = Some(UnsupportedFeature::References);
        assert_eq!(played.fell_back, [ModeFallback { from: native, unsupported: missing }]);
        assert!(played.sent[0].to_string().contains("defer_loading"));
        assert!(!played.sent[1].to_string().contains("defer_loading"));
        // The search result was sent to the upstream, and the client got only the call to the real tool.
        assert_eq!(played.sent[2]["messages"].as_array().unwrap().len(), 3);
        assert!(played.sent[2]["messages"][2].to_string().contains("crm__find_customer"));
        assert!(played.text().contains("crm__find_customer"), "{}", played.text());
        assert!(!played.text().contains("tool_search") && !played.text().contains("tool_call"));
        let done = played.done.unwrap();
        assert_eq!((done.ending, done.status), (Ending::Complete, 200));
        assert_eq!((done.summary.rounds, done.summary.searches), (2, 1));
        assert_eq!((played.report.mode, played.report.deferred), ("bridge", 40));
        let expected: &[&str] = if stream {
            &[
                "prepare",
                "send",
                "read",
                "fall back",
                "prepare",
                "send",
                "learn",
                "respond",
                "read",
                "forward",
                "send",
                "read",
                "forward",
                "store",
                "forward",
                "done",
            ]
        } else {
            &[
                "prepare",
                "send",
                "read",
                "fall back",
                "prepare",
                "send",
                "learn",
                "read",
                "send",
                "read",
                "store",
                "respond",
                "done",
            ]
        };
        assert_eq!(played.actions, expected);

        // The next request does not use the rejected feature, and the records of this turn are still found.
        let mut setup = setup();
        setup.learned = played.learned.unwrap();
        let messages = json!([
            {"role": "user", "content": "Who is Ada?"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_call00000001",
                "name": "crm__find_customer", "input": {"q": "Ada"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_call00000001",
                "content": "Customer 7"}]},
        ]);
        let next = play(&request(&messages, stream), setup, &mut store, vec![wrapped(stream)]);
        assert!(next.fell_back.is_empty());
        assert_eq!(next.actions[0], "load");
        let sent = next.sent[0]["messages"].as_array().unwrap();
        assert_eq!(sent[..3], played.sent[2]["messages"].as_array().unwrap()[..]);
        assert_eq!(next.sent[0]["tools"], played.sent[2]["tools"]);
    }
}

#[test]
fn a_feature_rejected_in_a_hidden_round() {
    for stream in [false, true] {
        let refused =
            refusal("messages.2.content.0", "Input tag 'tool_reference' found using 'type'");
        // The first search is made in the native mode. After the rejection, the turn starts again with a search
        // through the bridge.
        let answers = vec![searches(stream), refused, searches(stream), wrapped(stream)];
        let played = play(&first_request(stream), setup(), &mut HashMap::new(), answers);
        assert!(played.sent[1].to_string().contains("tool_reference"));
        assert!(!played.sent[2].to_string().contains("tool_reference"));
        assert_eq!(played.fell_back.len(), 1);
        assert_eq!(played.actions.iter().filter(|name| **name == "respond").count(), 1);
        let (text, done) = (played.text(), played.done.unwrap());
        assert!(text.contains("crm__find_customer") && !text.contains("tool_search"), "{text}");
        assert_eq!((done.summary.rounds, done.ending), (3, Ending::Complete));
    }
}

#[test]
fn two_features_rejected_in_a_row() {
    let deferring = refusal("tools.0.custom.defer_loading", "Extra inputs are not permitted");
    let bound =
        "Invalid `signature` in `thinking` block. The block is bound to a different conversation";
    let thinking = refusal("messages.1.content.0", bound);
    let messages = json!([
        {"role": "user", "content": "Who is Ada?"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "s"},
            {"type": "text", "text": "Which Ada?"},
        ]},
        {"role": "user", "content": "The customer."},
    ]);
    let answers = vec![deferring, thinking, wrapped(true)];
    let played = play(&request(&messages, true), setup(), &mut HashMap::new(), answers);
    let missing: Vec<_> = played.fell_back.iter().map(|fell_back| fell_back.unsupported).collect();
    assert_eq!(missing, [Some(UnsupportedFeature::References), None]);
    let thinks = |body: &Value| body["messages"].to_string().contains("thinking");
    assert_eq!(played.sent.iter().map(thinks).collect::<Vec<_>>(), [true, true, false]);
    assert!(played.text().contains("crm__find_customer"));
}

#[test]
fn a_feature_rejected_for_a_request_that_only_counts_tokens() {
    let refused = refusal("tools.0.custom.defer_loading", "Extra inputs are not permitted");
    let counted = UpstreamAnswer::Whole(200, r#"{"input_tokens": 7}"#.to_owned());
    let target = "/v1/messages/count_tokens";
    let mut store = HashMap::new();
    let played =
        play_at(target, &first_request(false), setup(), &mut store, vec![refused, counted]);
    assert_eq!((played.fell_back.len(), played.status), (1, Some(200)));
    assert_eq!(played.text(), r#"{"input_tokens": 7}"#);
    assert!(!played.sent[1].to_string().contains("defer_loading") && store.is_empty());
}

#[test]
fn any_other_error_is_forwarded_to_the_client() {
    for status in [400, 401, 429, 500] {
        for stream in [false, true] {
            let body = r#"{"type":"error","error":{"type":"x","message":"max_tokens: too large"}}"#;
            let answer = UpstreamAnswer::Whole(status, body.to_owned());
            let played = play(&first_request(stream), setup(), &mut HashMap::new(), vec![answer]);
            assert_eq!((played.status, played.text()), (Some(status), body.to_owned()));
            assert_eq!(played.done.unwrap().status, status);
        }
    }
}
