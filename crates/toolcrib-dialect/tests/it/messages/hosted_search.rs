//! Tests of the hosted search, which is hidden from the client and restored for the upstream.

use serde_json::{Value, json};
use toolcrib_dialect::Mode;
use toolcrib_dialect::mode::HostedSearch;

use super::{
    BOTH, assert_extends_previous, call, forty, new_conversation, play, request, result, text, user,
};
use crate::conversation::TestConversation;

fn hosted() -> TestConversation {
    new_conversation(Mode::Hosted(HostedSearch::Bm25))
}

fn asks(id: &str) -> Value {
    json!({"type": "server_tool_use", "id": id, "name": "tool_search_tool_bm25",
        "input": {"query": "find customer", "limit": 5}, "caller": {"type": "direct"}})
}

fn finds(id: &str, names: &[&str]) -> Value {
    let references: Vec<Value> =
        names.iter().map(|name| json!({"type": "tool_reference", "tool_name": name})).collect();
    json!({"type": "tool_search_tool_result", "tool_use_id": id,
        "content": {"type": "tool_search_tool_search_result", "tool_references": references}})
}

fn find(id: &str) -> Value {
    call(id, "crm__find_customer", json!({"q": "ada"}))
}

#[test]
fn the_search_is_hidden_from_the_client_and_restored_for_the_upstream() {
    for stream in BOTH {
        let mut conversation = hosted();
        let output = vec![
            text("Looking."),
            asks("srvtoolu_1"),
            finds("srvtoolu_1", &["crm__find_customer"]),
            text("Found."),
            find("toolu_find0001"),
        ];
        let body = request(&json!([user("Find Ada.")]), stream);
        let client = play(&mut conversation, &body, &[(output.clone(), "tool_use")]);
        assert_eq!(
            client["content"],
            json!([text("Looking."), text("Found."), find("toolu_find0001")])
        );
        assert_eq!(client["stop_reason"], "tool_use");
        let tools = conversation.sent[0]["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 41);
        let mut first = forty()[0].clone();
        first["defer_loading"] = json!(true);
        assert_eq!(tools[0], first);
        assert_eq!(
            tools[40],
            json!({"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"})
        );

        let messages = json!([user("Find Ada."),
            {"role": "assistant", "content": client["content"]},
            {"role": "user", "content": [result("toolu_find0001", "Ada, 7")]}]);
        play(&mut conversation, &request(&messages, stream), &[(vec![text("Yes.")], "end_turn")]);
        assert_extends_previous(&conversation, 1);
        assert_eq!(conversation.sent[1]["messages"][1]["content"], json!(output));
        assert_eq!(conversation.sent[1]["messages"][2], messages[2]);
    }
}

#[test]
fn a_search_result_in_the_next_turn_stays_there() {
    for stream in BOTH {
        let mut conversation = hosted();
        let first = vec![
            asks("srvtoolu_1"),
            finds("srvtoolu_1", &["crm__find_customer"]),
            find("toolu_find0001"),
            asks("srvtoolu_2"),
        ];
        let body = request(&json!([user("Find Ada.")]), stream);
        let client = play(&mut conversation, &body, &[(first.clone(), "tool_use")]);
        assert_eq!(client["content"], json!([find("toolu_find0001")]));

        let mut messages = vec![
            user("Find Ada."),
            json!({"role": "assistant", "content": client["content"]}),
            json!({"role": "user", "content": [result("toolu_find0001", "Ada, 7")]}),
        ];
        let second = vec![
            finds("srvtoolu_2", &["crm__update_customer"]),
            text("Now."),
            call("toolu_upd00001", "crm__update_customer", json!({"id": 7})),
        ];
        let client = play(
            &mut conversation,
            &request(&json!(messages), stream),
            &[(second.clone(), "tool_use")],
        );
        assert_eq!(client["content"], json!(second[1..]));
        assert_extends_previous(&conversation, 1);

        messages.push(json!({"role": "assistant", "content": client["content"]}));
        messages.push(json!({"role": "user", "content": [result("toolu_upd00001", "done")]}));
        play(
            &mut conversation,
            &request(&json!(messages), stream),
            &[(vec![text("Yes.")], "end_turn")],
        );
        assert_extends_previous(&conversation, 2);
        let sent = &conversation.sent[2]["messages"];
        assert_eq!(sent[1]["content"], json!(first));
        assert_eq!(sent[3]["content"], json!(second));
    }
}

#[test]
fn a_paused_turn_is_continued_without_the_client() {
    for stream in BOTH {
        let mut conversation = hosted();
        let paused = vec![text("Looking."), asks("srvtoolu_1"), finds("srvtoolu_1", &[])];
        let body = request(&json!([user("Find Ada.")]), stream);
        // A paused turn is continued even if nothing in it was hidden from the client.
        let again = vec![text("Still looking.")];
        let rounds = [
            (again.clone(), "pause_turn"),
            (paused.clone(), "pause_turn"),
            (vec![text("Nothing.")], "end_turn"),
        ];
        let client = play(&mut conversation, &body, &rounds);
        let expected = [text("Still looking."), text("Looking."), text("Nothing.")];
        assert_eq!(client["content"], json!(expected));
        assert_eq!(client["stop_reason"], "end_turn");
        assert_eq!(client["usage"]["output_tokens"], 30);
        assert_extends_previous(&conversation, 1);
        assert_extends_previous(&conversation, 2);
        let sent = conversation.sent[2]["messages"].as_array().unwrap();
        assert_eq!(sent.len(), 3);
        assert_eq!(sent[1]["content"], json!(again));
        assert_eq!(sent[2]["content"], json!(paused));
    }
}

#[test]
fn a_pause_without_content_is_left_to_the_client() {
    for stream in BOTH {
        let mut conversation = hosted();
        let body = request(&json!([user("Find Ada.")]), stream);
        let client = play(&mut conversation, &body, &[(vec![], "pause_turn")]);
        assert_eq!(client["content"], json!([]));
        assert_eq!(client["stop_reason"], "pause_turn");
        assert_eq!(conversation.sent.len(), 1, "an identical request is not sent again");
    }
}

#[test]
fn without_its_record_a_searched_tool_is_sent_in_full() {
    let mut conversation = hosted();
    let output = vec![
        asks("srvtoolu_1"),
        finds("srvtoolu_1", &["crm__find_customer"]),
        find("toolu_find0001"),
    ];
    let body = request(&json!([user("Find Ada.")]), true);
    let client = play(&mut conversation, &body, &[(output, "tool_use")]);
    conversation.records.clear();
    let mut messages = vec![
        user("Find Ada."),
        json!({"role": "assistant", "content": client["content"]}),
        json!({"role": "user", "content": [result("toolu_find0001", "Ada, 7")]}),
    ];
    let client = play(
        &mut conversation,
        &request(&json!(messages), true),
        &[(vec![text("Yes.")], "end_turn")],
    );
    assert_eq!(conversation.sent[1]["tools"][0], forty()[0]);
    messages.push(json!({"role": "assistant", "content": client["content"]}));
    messages.push(user("Thanks."));
    play(&mut conversation, &request(&json!(messages), true), &[(vec![text("Yes.")], "end_turn")]);
    assert_extends_previous(&conversation, 2);
}

#[test]
fn references_to_removed_tools_are_dropped() {
    let mut conversation = hosted();
    let output = vec![
        asks("srvtoolu_1"),
        finds("srvtoolu_1", &["crm__update_customer", "crm__find_customer"]),
        find("toolu_find0001"),
    ];
    let body = request(&json!([user("Find Ada.")]), true);
    let client = play(&mut conversation, &body, &[(output, "tool_use")]);
    let messages = json!([user("Find Ada."),
        {"role": "assistant", "content": client["content"]},
        {"role": "user", "content": [result("toolu_find0001", "Ada, 7")]}]);
    let mut body = request(&messages, true);
    body["tools"].as_array_mut().unwrap().remove(1);
    play(&mut conversation, &body, &[(vec![text("Yes.")], "end_turn")]);
    let kept = &conversation.sent[1]["messages"][1]["content"];
    assert_eq!(kept[1], finds("srvtoolu_1", &["crm__find_customer"]));
}
