//! Tests of the tool choice, and of requests that only count tokens.

use serde_json::{Value, json};
use toolcrib_dialect::Mode;
use toolcrib_dialect::mode::{HostedSearch, ReferenceKind};

use super::{
    BOTH, assert_extends_previous, call, forty, new_conversation, play, request, result, search,
    text, user,
};

#[test]
fn a_forced_tool_is_sent_in_full_from_then_on() {
    for (mode, stream) in [
        (Mode::Bridge, false),
        (Mode::Bridge, true),
        (Mode::Reference(ReferenceKind::ToolReference), true),
        (Mode::Hosted(HostedSearch::Bm25), true),
    ] {
        let mut conversation = new_conversation(mode);
        let mut body = request(&json!([user("Find Ada.")]), stream);
        body["tool_choice"] = json!({"type": "tool", "name": "crm__find_customer"});
        let find = call("toolu_find0001", "crm__find_customer", json!({"q": "ada"}));
        let client = play(&mut conversation, &body, &[(vec![find.clone()], "tool_use")]);
        assert_eq!(client["content"], json!([find]));
        assert_eq!(conversation.sent[0]["tools"][0], forty()[0]);
        assert_eq!(conversation.sent[0]["tool_choice"], body["tool_choice"]);

        let messages = json!([user("Find Ada."),
            {"role": "assistant", "content": client["content"]},
            {"role": "user", "content": [result("toolu_find0001", "Ada, 7")]}]);
        play(&mut conversation, &request(&messages, stream), &[(vec![text("Yes.")], "end_turn")]);
        assert_extends_previous(&conversation, 1);
    }
}

#[test]
fn none_and_any_do_not_change_the_tools() {
    for stream in BOTH {
        let mut sent: Vec<Value> = Vec::new();
        for kind in ["auto", "none", "any"] {
            let mut conversation = new_conversation(Mode::Bridge);
            let mut body = request(&json!([user("Find Ada.")]), stream);
            body["tool_choice"] = json!({"type": kind, "disable_parallel_tool_use": true});
            play(
                &mut conversation,
                &body,
                &[
                    (vec![search("toolu_search01", "find customer")], "tool_use"),
                    (vec![text("Yes.")], "end_turn"),
                ],
            );
            assert_eq!(conversation.sent[0]["tool_choice"], body["tool_choice"]);
            assert_eq!(conversation.sent[1]["tool_choice"], body["tool_choice"]);
            sent.push(conversation.sent[0]["tools"].clone());
        }
        assert!(sent.iter().all(|tools| *tools == sent[0]));
    }
}

#[test]
fn tokens_are_counted_for_the_rewritten_request_without_the_hosted_search() {
    let body = request(&json!([user("hi")]), false);
    let counted = |mode: Mode, body: &Value| -> Value {
        let turn =
            new_conversation(mode).turn("/v1/messages/count_tokens?beta=true", &body.to_string());
        serde_json::from_str(&turn.request()).unwrap()
    };
    let requested = |mode: Mode, body: &Value| -> Value {
        let turn = new_conversation(mode).turn("/v1/messages", &body.to_string());
        serde_json::from_str(&turn.request()).unwrap()
    };
    assert_eq!(counted(Mode::Bridge, &body), requested(Mode::Bridge, &body));
    let hosted = Mode::Hosted(HostedSearch::Regex);
    // All of the client's tools are deferred. The API rejects a request in which every tool is deferred, so a tool that
    // is not deferred is added.
    let tools = counted(hosted, &body)["tools"].as_array().unwrap().clone();
    assert_eq!(tools.len(), 41);
    assert!(tools.iter().all(|tool| tool.get("type").is_none()));
    assert_eq!(tools[40].get("defer_loading"), None);
    // If the client has a tool that is not deferred, nothing is added.
    let mut body = body;
    body["tools"].as_array_mut().unwrap().push(json!({"type": "bash_20250124", "name": "bash"}));
    assert_eq!(counted(hosted, &body)["tools"].as_array().unwrap().len(), 41);
    assert_eq!(
        requested(hosted, &body)["tools"][41],
        json!({"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"})
    );
    // The response is a token count instead of a message, so it is forwarded unchanged.
    let mut turn = new_conversation(hosted).turn("/v1/messages/count_tokens", &body.to_string());
    assert!(turn.complete_response(br#"{"input_tokens": 2095}"#).is_none());
}

#[test]
fn client_tools_with_our_names_keep_them() {
    for stream in BOTH {
        let mut conversation = new_conversation(Mode::Bridge);
        let mut body = request(&json!([user("Find Ada.")]), stream);
        let client_tool = json!({"name": "tool_call", "description": "Calls the keeper of the shed.",
            "input_schema": {"type": "object", "properties": {"shelf": {"type": "integer"}},
                "required": ["shelf"]}});
        body["tools"].as_array_mut().unwrap().push(client_tool);
        let own = call("toolu_own00001", "tool_call", json!({"shelf": 3}));
        let client = play(&mut conversation, &body, &[(vec![own.clone()], "tool_use")]);
        assert_eq!(client["content"], json!([own]));
        let names: Vec<&str> = conversation.sent[0]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names.len(), 3);
        assert!(!names.contains(&"tool_call"), "{names:?}");
    }
}
