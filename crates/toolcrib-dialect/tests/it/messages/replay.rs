//! Tests of the client's next request: with a record, without one, and with a shortened history.

use serde_json::{Value, json};
use toolcrib_dialect::Mode;

use super::{
    BOTH, assert_extends_previous, assert_valid_history, call, new_conversation, play, request,
    result, search, text, thinking, user,
};
use crate::conversation::TestConversation;

fn find(id: &str) -> Value {
    call(id, "crm__find_customer", json!({"q": "ada"}))
}

fn wrapped(id: &str) -> Value {
    call(id, "tool_call", json!({"name": "crm__find_customer", "arguments": {"q": "ada"}}))
}

/// Plays a turn with a thought, a search, another thought and a call. Returns the conversation and the client's history
/// after the turn.
fn begun(stream: bool) -> (TestConversation, Vec<Value>) {
    let mut conversation = new_conversation(Mode::Bridge);
    let client = play(
        &mut conversation,
        &request(&json!([user("Find Ada.")]), stream),
        &[
            (
                vec![thinking("s1"), text("Looking."), search("toolu_search01", "find customer")],
                "tool_use",
            ),
            (
                vec![
                    thinking("s2"),
                    json!({"type": "redacted_thinking", "data": "xyz"}),
                    wrapped("toolu_find0001"),
                ],
                "tool_use",
            ),
        ],
    );
    let messages = vec![
        user("Find Ada."),
        json!({"role": "assistant", "content": client["content"]}),
        json!({"role": "user", "content": [result("toolu_find0001", "Ada, 7")]}),
    ];
    (conversation, messages)
}

#[test]
fn a_merged_message_is_split_into_its_rounds_again() {
    for stream in BOTH {
        let (mut conversation, messages) = begun(stream);
        let redacted = json!({"type": "redacted_thinking", "data": "xyz"});
        assert_eq!(
            messages[1]["content"],
            json!([
                thinking("s1"),
                text("Looking."),
                thinking("s2"),
                redacted,
                find("toolu_find0001")
            ])
        );
        play(
            &mut conversation,
            &request(&json!(messages), stream),
            &[(vec![text("Yes.")], "end_turn")],
        );
        (1..3).for_each(|n| assert_extends_previous(&conversation, n));
        let sent = &conversation.sent[2]["messages"];
        assert_valid_history(sent);
        assert_eq!(
            sent[1]["content"],
            json!([thinking("s1"), text("Looking."), search("toolu_search01", "find customer")])
        );
        assert_eq!(
            sent[3]["content"],
            json!([thinking("s2"), redacted, wrapped("toolu_find0001")])
        );
    }
}

#[test]
fn unknown_fields_are_restored() {
    for stream in BOTH {
        let mut conversation = new_conversation(Mode::Bridge);
        let mut odd = search("toolu_search01", "find customer");
        odd["caller"] = json!({"type": "direct"});
        let new = json!({"type": "compaction", "content": "short", "x": [1.5]});
        let body = request(&json!([user("Find Ada.")]), stream);
        let rounds =
            [(vec![new.clone(), odd.clone()], "tool_use"), (vec![text("Yes.")], "end_turn")];
        let client = play(&mut conversation, &body, &rounds);
        assert_eq!(client["content"], json!([new, text("Yes.")]));
        assert_eq!(conversation.sent[1]["messages"][1]["content"], json!([new, odd]));
    }
}

#[test]
fn a_turn_without_a_record_is_valid_and_stable() {
    for stream in BOTH {
        let (mut conversation, mut messages) = begun(stream);
        conversation.records.clear();
        let body = request(&json!(messages), stream);
        let client =
            play(&mut conversation, &body, &[(vec![wrapped("toolu_find0002")], "tool_use")]);
        assert_eq!(client["content"], json!([find("toolu_find0002")]));
        let sent = &conversation.sent[2]["messages"];
        assert_valid_history(sent);
        assert_eq!(sent.as_array().unwrap().len(), 3);
        assert_eq!(
            sent[1]["content"][4],
            wrapped("toolu_find0001"),
            "the call is sent as a `tool_call`"
        );
        assert_eq!(conversation.sent[2]["tools"], conversation.sent[1]["tools"]);

        messages.push(json!({"role": "assistant", "content": client["content"]}));
        messages.push(json!({"role": "user", "content": [result("toolu_find0002", "Bob, 8")]}));
        play(
            &mut conversation,
            &request(&json!(messages), stream),
            &[(vec![text("Yes.")], "end_turn")],
        );
        assert_extends_previous(&conversation, 3);
        assert_valid_history(&conversation.sent[3]["messages"]);
    }
}

#[test]
fn records_of_a_shortened_history_are_found_by_call_ids() {
    for stream in BOTH {
        let (mut conversation, mut messages) = begun(stream);
        messages[0] = user("Summary: the user wants Ada found.");
        play(
            &mut conversation,
            &request(&json!(messages), stream),
            &[(vec![text("Yes.")], "end_turn")],
        );
        let (before, after) =
            (&conversation.sent[1]["messages"], &conversation.sent[2]["messages"]);
        assert_valid_history(after);
        assert_eq!(after[0], messages[0]);
        assert_eq!(after[1], before[1]);
        assert_eq!(after[2], before[2]);
        assert_eq!(after[3]["content"][2], wrapped("toolu_find0001"));
    }
}

#[test]
fn thinking_that_the_client_removed_is_not_restored() {
    let (mut conversation, mut messages) = begun(true);
    let content = messages[1]["content"].as_array_mut().unwrap();
    content.retain(|block| !block["type"].as_str().unwrap().contains("thinking"));
    play(&mut conversation, &request(&json!(messages), true), &[(vec![text("Yes.")], "end_turn")]);
    let sent = &conversation.sent[2]["messages"];
    assert_valid_history(sent);
    assert_eq!(sent.as_array().unwrap().len(), 5, "the search was restored");
    assert!(!conversation.sent_bodies[2].contains("thinking"), "{sent:#}");
}

#[test]
fn a_turn_that_the_client_serialised_differently_is_recognised() {
    let (mut conversation, mut messages) = begun(true);
    // The client changed whitespace in the texts, and sends a string as a list of blocks.
    messages[0] = json!({"role": "user", "content": [text("Find  Ada.\n")]});
    messages[1]["content"][1]["text"] = json!(" Looking.\n");
    play(&mut conversation, &request(&json!(messages), true), &[(vec![text("Yes.")], "end_turn")]);
    assert_eq!(conversation.sent[2]["messages"].as_array().unwrap().len(), 5);
}

#[test]
fn hidden_results_get_their_own_message_if_the_client_sends_none() {
    let mut conversation = new_conversation(Mode::Bridge);
    conversation.rounds = 0;
    let rounds = [(vec![text("Hm."), search("toolu_search01", "find customer")], "tool_use")];
    let client = play(&mut conversation, &request(&json!([user("Find Ada.")]), false), &rounds);
    let reply = json!({"role": "assistant", "content": client["content"]});
    for next in [
        vec![],
        vec![json!({"role": "system", "content": "Now."})],
        vec![json!({"role": "user", "content": ""})],
    ] {
        let mut messages = vec![user("Find Ada."), reply.clone()];
        messages.extend(next.clone());
        play(
            &mut conversation,
            &request(&json!(messages), false),
            &[(vec![text("Yes.")], "end_turn")],
        );
        let sent = conversation.sent.last().unwrap()["messages"].as_array().unwrap();
        assert_eq!(sent[2]["role"], "user");
        assert_eq!(sent[2]["content"].as_array().unwrap().len(), 1);
        assert_eq!(sent[2]["content"][0]["tool_use_id"], "toolu_search01");
        let rest = usize::from(next.first().is_some_and(|next| next["role"] == "system"));
        assert_eq!(sent.len(), 3 + rest);
    }
}

#[test]
fn a_record_belongs_to_the_results_before_it() {
    let mut conversation = new_conversation(Mode::Bridge);
    let mut body = request(&json!([]), true);
    body["tools"].as_array_mut().unwrap().push(json!({"type": "bash_20250124", "name": "bash"}));
    let history = |id: &str, command: &str| {
        let bash = json!([call(id, "bash", json!({"command": command}))]);
        vec![
            user("Find Ada."),
            json!({"role": "assistant", "content": bash}),
            json!({"role": "user", "content": [result(id, "ada.txt")]}),
        ]
    };
    body["messages"] = json!(history("toolu_bash0001", "ls"));
    let rounds = [
        (vec![search("toolu_search01", "find customer")], "tool_use"),
        (vec![text("Done.")], "end_turn"),
    ];
    play(&mut conversation, &body, &rounds);
    // The record is used only if the call in the client's history has the same id as when the record was made. A
    // history with a different id belongs to another conversation.
    for (id, command, entries) in
        [("toolu_bash0001", "ls", 7), ("toolu_other001", "ls", 5), ("toolu_other001", "pwd", 5)]
    {
        let mut messages = history(id, command);
        messages.push(json!({"role": "assistant", "content": "Done."}));
        messages.push(user("And?"));
        body["messages"] = json!(messages);
        play(&mut conversation, &body, &[(vec![text("Yes.")], "end_turn")]);
        let sent = conversation.sent.last().unwrap()["messages"].as_array().unwrap();
        assert_eq!(sent.len(), entries, "{id} {command}");
    }
}

#[test]
fn a_client_may_change_call_ids() {
    let mut conversation = new_conversation(Mode::Bridge);
    let bridged = |id: &str, q: &str| {
        call(id, "tool_call", json!({"name": "crm__find_customer", "arguments": {"q": q}}))
    };
    let rounds = [
        (vec![search("toolu_search01", "find customer")], "tool_use"),
        (vec![bridged("toolu_find000001", "ada"), bridged("toolu_find000002", "eve")], "tool_use"),
    ];
    play(&mut conversation, &request(&json!([user("Find Ada.")]), true), &rounds);
    let sent = conversation.sent.last().unwrap()["messages"].clone();
    let real = |id: &str, q: &str| call(id, "crm__find_customer", json!({"q": q}));
    let messages = json!([
        user("Find Ada."),
        {"role": "assistant", "content": [real("000000001", "ada"), real("000000002", "eve")]},
        {"role": "user", "content": [result("000000002", "Eve, 8"), result("000000001", "Ada, 7")]},
    ]);
    play(&mut conversation, &request(&messages, true), &[(vec![text("Found.")], "end_turn")]);
    let next = conversation.sent.last().unwrap()["messages"].as_array().unwrap();
    assert!(crate::conversation::begins_with(&json!(next), &sent), "the search was restored");
    assert_eq!(
        next.last().unwrap()["content"],
        json!([result("toolu_find000002", "Eve, 8"), result("toolu_find000001", "Ada, 7")])
    );
    assert_valid_history(&json!(next));
}
