//! Tests of the client's next request: unchanged, shortened, or without records.

use serde_json::{Value, json};

use super::{
    BOTH, ReceivedResponse, TARGET, answer, answers, bridge, call, input_of, list, message,
    new_conversation, next_input, output, read_as_client, reasoning, request, search, user,
};
use crate::conversation::{TestConversation, begins_with};

/// Plays a turn with a hidden search and a call to the tool that was found. Returns what the client received.
fn searched(conversation: &mut TestConversation, input: &Value, stream: bool) -> ReceivedResponse {
    let rounds: [&[Value]; 2] = [
        &[reasoning(1), message(1, "Let me look."), search("call_search00001", "find customer")],
        &[reasoning(2), bridge("call_find0000001", "crm__find_customer", &json!({"q": "ada"}))],
    ];
    let got = conversation.send(TARGET, &request(input, stream), &answers(&rounds, stream));
    read_as_client(&got, stream)
}

fn plain(
    conversation: &mut TestConversation,
    input: &Value,
    n: u32,
    stream: bool,
) -> ReceivedResponse {
    let got = conversation.send(
        TARGET,
        &request(input, stream),
        &[answer(n, &[message(n, &format!("Answer {n}."))], stream)],
    );
    read_as_client(&got, stream)
}

#[test]
fn without_records_a_call_is_wrapped_again_and_stable() {
    for stream in BOTH {
        let mut conversation = new_conversation();
        let input = json!([user("Find Ada.")]);
        let client = searched(&mut conversation, &input, stream);
        conversation.records.clear();
        let input = next_input(&input, &client, &[output("call_find0000001", "Ada, 7")]);
        let client = plain(&mut conversation, &input, 3, stream);
        let mut wrapped = bridge("call_find0000001", "crm__find_customer", &json!({"q": "ada"}));
        wrapped["id"] = json!("fc_call_find0000001");
        assert_eq!(
            conversation.sent[2]["input"],
            list(&[
                user("Find Ada."),
                reasoning(1),
                message(1, "Let me look."),
                reasoning(2),
                wrapped,
                output("call_find0000001", "Ada, 7")
            ])
        );
        let input = next_input(&input, &client, &[user("Thanks.")]);
        plain(&mut conversation, &input, 4, stream);
        assert!(begins_with(&conversation.sent[3]["input"], &conversation.sent[2]["input"]));
        assert_eq!(conversation.sent[3]["tools"], conversation.sent[0]["tools"]);
    }
}

#[test]
fn records_of_a_shortened_history_are_found_by_call_ids() {
    for stream in BOTH {
        let mut conversation = new_conversation();
        let input = json!([user("Hello."), message(9, "Hi."), user("Find Ada.")]);
        let client = searched(&mut conversation, &input, stream);
        let mut short = vec![user("So far: a greeting, and a search for Ada.")];
        short.extend(client.output);
        short.push(output("call_find0000001", "Ada, 7"));
        plain(&mut conversation, &json!(short), 3, stream);
        let sent = input_of(&conversation, 2);
        assert_eq!(
            sent[1..4],
            [reasoning(1), message(1, "Let me look."), search("call_search00001", "find customer")]
        );
        assert_eq!(sent[4]["call_id"], "call_search00001");
        assert_eq!(sent[6]["name"], "tool_call");
        assert_eq!(sent.len(), 8);
    }
}

#[test]
fn a_turn_that_the_client_serialised_differently_is_recognised() {
    for stream in BOTH {
        let mut conversation = new_conversation();
        let input = json!([user("Find Ada.")]);
        searched(&mut conversation, &input, stream);
        // The client sends the short form of a message, a call without its id, and arguments that are serialised
        // differently.
        let echo = json!([
            {"role": "user", "content": "Find Ada."},
            reasoning(1),
            {"role": "assistant", "content": "Let me  look.\n"},
            reasoning(2),
            {"type": "function_call", "call_id": "call_find0000001", "name": "crm__find_customer",
                "arguments": "{ \"q\": \"ada\" }"},
            output("call_find0000001", "Ada, 7"),
        ]);
        plain(&mut conversation, &echo, 3, stream);
        assert_eq!(input_of(&conversation, 2)[1..5], input_of(&conversation, 1)[1..]);
        assert_eq!(input_of(&conversation, 2)[0], json!({"role": "user", "content": "Find Ada."}));
    }
}

#[test]
fn reasoning_that_the_client_removed_is_not_restored() {
    for stream in BOTH {
        let mut conversation = new_conversation();
        let input = json!([user("Find Ada.")]);
        let mut client = searched(&mut conversation, &input, stream);
        client.output.retain(|item| item["type"] != "reasoning");
        let input = next_input(&input, &client, &[output("call_find0000001", "Ada, 7")]);
        plain(&mut conversation, &input, 3, stream);
        let sent = input_of(&conversation, 2);
        let kinds: Vec<&str> = sent.iter().map(|item| item["type"].as_str().unwrap()).collect();
        assert_eq!(
            kinds,
            [
                "message",
                "message",
                "function_call",
                "function_call_output",
                "function_call",
                "function_call_output"
            ]
        );
        assert!(
            sent.iter().all(|item| item.get("id").is_none()),
            "items are sent without ids: {sent:?}"
        );
    }
}

#[test]
fn reasoning_that_is_not_stored_is_not_sent_back() {
    let bare = json!({"id": "rs_1", "type": "reasoning", "summary": []});
    for (store, back) in [(false, false), (true, true)] {
        for stream in BOTH {
            let mut conversation = new_conversation();
            let mut body = request(&json!([user("Which?")]), stream);
            body["store"] = json!(store);
            let rounds: [&[Value]; 2] = [
                &[bare.clone(), search("call_search00001", "find customer")],
                &[message(2, "One.")],
            ];
            let got = conversation.send(TARGET, &body, &answers(&rounds, stream));
            assert_eq!(read_as_client(&got, stream).output, [bare.clone(), message(2, "One.")]);
            assert_eq!(input_of(&conversation, 1).contains(&bare), back);
        }
    }
}

#[test]
fn provider_calls_and_item_references_keep_their_positions() {
    let mut conversation = new_conversation();
    let input = json!([
        {"role": "developer", "content": "Be short."},
        user("Look it up."),
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "item_reference", "id": "msg_1"},
        {"type": "custom_tool_call", "call_id": "call_custom00001", "name": "sql", "input": "select 1"},
        {"type": "custom_tool_call_output", "call_id": "call_custom00001", "output": "1"},
        {"id": "rs_9"},
        {"type": "something_new", "x": 1},
        user("And now?"),
    ]);
    let mut body = request(&input, false);
    body["tools"].as_array_mut().unwrap().push(json!({"type": "custom", "name": "sql"}));
    conversation.send(TARGET, &body, &[answer(1, &[message(1, "Yes.")], false)]);
    assert_eq!(conversation.sent[0]["input"], input);
}

#[test]
fn a_call_that_is_not_a_function_call_ends_the_turn() {
    for stream in BOTH {
        let mut conversation = new_conversation();
        let custom = json!({"id": "ctc_1", "type": "custom_tool_call", "status": "completed",
            "call_id": "call_custom00001", "name": "sql", "input": "select 1"});
        let items = [search("call_search00001", "find customer"), custom.clone()];
        let input = json!([user("Count.")]);
        let mut body = request(&input, stream);
        body["tools"].as_array_mut().unwrap().push(json!({"type": "custom", "name": "sql"}));
        let got = conversation.send(TARGET, &body, &[answer(1, &items, stream)]);
        let client = read_as_client(&got, stream);
        assert_eq!(client.output, [custom]);
        let answered = json!({"type": "custom_tool_call_output", "call_id": "call_custom00001", "output": "1"});
        let input = next_input(&input, &client, std::slice::from_ref(&answered));
        plain(&mut conversation, &input, 2, stream);
        let sent = input_of(&conversation, 1);
        assert_eq!(sent[1..3], items);
        assert_eq!((&sent[3]["call_id"], &sent[4]), (&json!("call_search00001"), &answered));
    }
}

#[test]
fn a_call_of_an_undeclared_custom_tool_is_answered() {
    for stream in BOTH {
        let mut conversation = new_conversation();
        let custom = json!({"id": "ctc_1", "type": "custom_tool_call", "status": "completed",
            "call_id": "call_custom00001", "name": "sql", "input": "select 1"});
        let rounds: [&[Value]; 2] = [&[custom], &[message(2, "Oh.")]];
        let got = conversation.send(
            TARGET,
            &request(&json!([user("Go.")]), stream),
            &answers(&rounds, stream),
        );
        assert_eq!(read_as_client(&got, stream).output, [message(2, "Oh.")]);
        assert_eq!(input_of(&conversation, 1)[2]["type"], "custom_tool_call_output");
    }
}

#[test]
fn a_call_of_an_undeclared_tool_is_answered() {
    for stream in BOTH {
        let mut conversation = new_conversation();
        let rounds: [&[Value]; 2] =
            [&[call("call_made0000001", "crm__find_custmer", "{}")], &[message(2, "Oh.")]];
        let got = conversation.send(
            TARGET,
            &request(&json!([user("Go.")]), stream),
            &answers(&rounds, stream),
        );
        assert_eq!(read_as_client(&got, stream).output, [message(2, "Oh.")]);
        assert!(
            input_of(&conversation, 1)[2]["output"]
                .as_str()
                .unwrap()
                .contains("crm__find_customer")
        );
    }
}

#[test]
fn a_client_may_change_call_ids() {
    for stream in BOTH {
        let mut conversation = new_conversation();
        let input = json!([user("Find Ada.")]);
        let received = searched(&mut conversation, &input, stream);
        let mut echo = next_input(&input, &received, &[output("a1B2c3D4e", "Ada, 7")]);
        for item in
            echo.as_array_mut().unwrap().iter_mut().filter(|item| item["type"] == "function_call")
        {
            item["call_id"] = json!("a1B2c3D4e");
        }
        plain(&mut conversation, &echo, 3, stream);
        let (before, after) = (input_of(&conversation, 1), input_of(&conversation, 2));
        assert_eq!(after[..before.len()], before[..], "the search was restored");
        assert_eq!(after.last(), Some(&output("call_find0000001", "Ada, 7")));
    }
}
