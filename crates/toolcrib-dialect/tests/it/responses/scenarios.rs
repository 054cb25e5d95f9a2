//! Tests of whole turns, each streamed and not streamed: without a search, with one search, with several hidden rounds
//! and so on. The tests of the other APIs have the same scenarios.

use serde_json::{Value, json};

use super::{
    BOTH, ReceivedResponse, TARGET, answer, answers, bridge, call, client_tools, input_of, list,
    message, new_conversation, next_input, output, read_as_client, reasoning, request,
    response_with_status, search, user,
};
use crate::conversation::begins_with;

fn usage(input: u32, rounds: u32) -> Value {
    json!({"input_tokens": input, "input_tokens_details": {"cached_tokens": 5 * rounds},
        "output_tokens": 10 * rounds, "total_tokens": input + 10 * rounds})
}

fn find(id: &str, q: &str) -> Value {
    call(id, "crm__find_customer", &json!({"q": q}).to_string())
}

#[test]
fn no_search() {
    for stream in BOTH {
        let mut conversation = new_conversation();
        let upstream = answer(1, &[reasoning(1), message(1, "Hello there.")], stream);
        let got = conversation.send(
            TARGET,
            &request(&json!([user("hi")]), stream),
            std::slice::from_ref(&upstream),
        );
        let own = upstream.replace(
            r#"[{"type":"function","name":"sent_upstream"}]"#,
            &client_tools().to_string(),
        );
        assert_eq!(got.text, own, "only the tools are changed");
        assert!(got.done.records.is_empty());
        let names: Vec<&str> = conversation.sent[0]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["tool_search", "tool_describe", "tool_call"]);
        assert_eq!(conversation.sent[0]["tools"][2]["strict"], false);
        assert_eq!(conversation.sent[0]["include"], json!(["reasoning.encrypted_content"]));
    }
}

#[test]
fn one_search() {
    for stream in BOTH {
        let mut conversation = new_conversation();
        let first =
            [reasoning(1), message(1, "Let me look."), search("call_search00001", "find customer")];
        let second =
            [reasoning(2), bridge("call_find0000001", "crm__find_customer", &json!({"q": "ada"}))];
        let input = json!([user("Find Ada.")]);
        let got = conversation.send(
            TARGET,
            &request(&input, stream),
            &answers(&[&first, &second], stream),
        );
        let client = read_as_client(&got, stream);
        let id = if stream { "resp_1" } else { "resp_2" };
        assert_eq!(
            client,
            ReceivedResponse {
                id: id.into(),
                status: "completed".into(),
                output: vec![
                    reasoning(1),
                    message(1, "Let me look."),
                    reasoning(2),
                    find("call_find0000001", "ada"),
                ],
                usage: usage(300, 2),
            }
        );

        // The request of the hidden round contains the search and its result.
        let hidden = input_of(&conversation, 1);
        assert_eq!(hidden[..4], [&[user("Find Ada.")], &first[..]].concat());
        assert_eq!(hidden[4]["type"], "function_call_output");
        assert_eq!(hidden[4]["call_id"], "call_search00001");
        assert!(hidden[4]["output"].as_str().unwrap().contains("crm__find_customer"));
        assert_eq!(hidden.len(), 5);

        // The client sends back what it received. The history sent upstream starts with the history of the previous
        // request.
        let input = next_input(&input, &client, &[output("call_find0000001", "Ada, 7")]);
        conversation.send(
            TARGET,
            &request(&input, stream),
            &[answer(3, &[message(3, "Found.")], stream)],
        );
        assert!(begins_with(&conversation.sent[2]["input"], &conversation.sent[1]["input"]));
        assert_eq!(conversation.sent[2]["tools"], conversation.sent[0]["tools"]);
        let expected = [&second[..], &[output("call_find0000001", "Ada, 7")]].concat();
        assert_eq!(input_of(&conversation, 2)[5..], expected);
    }
}

#[test]
fn two_hidden_rounds() {
    for stream in BOTH {
        let mut conversation = new_conversation();
        let rounds: [&[Value]; 3] = [
            &[search("call_search00001", "find customer")],
            &[search("call_search00002", "update customer")],
            &[message(3, "There are two.")],
        ];
        let input = json!([user("Which tools?")]);
        let got = conversation.send(TARGET, &request(&input, stream), &answers(&rounds, stream));
        let client = read_as_client(&got, stream);
        assert_eq!(client.output, [message(3, "There are two.")]);
        assert_eq!(client.usage, usage(600, 3));
        assert_eq!(got.done.summary.rounds, 3);
        assert_eq!(got.done.summary.searches, 2);
        assert_eq!(got.done.summary.last.input, 300);

        let input = next_input(&input, &client, &[user("Thanks.")]);
        conversation.send(
            TARGET,
            &request(&input, stream),
            &[answer(4, &[message(4, "Bye.")], stream)],
        );
        assert!(begins_with(&conversation.sent[3]["input"], &conversation.sent[2]["input"]));
        assert_eq!(
            input_of(&conversation, 3)[5..],
            [message(3, "There are two."), user("Thanks.")]
        );
    }
}

#[test]
fn the_limit_of_hidden_rounds_is_reached() {
    for stream in BOTH {
        let mut conversation = new_conversation();
        conversation.rounds = 1;
        let rounds: [&[Value]; 2] = [
            &[search("call_search00001", "find customer")],
            &[message(2, "Still looking."), search("call_search00002", "update customer")],
        ];
        let input = json!([user("Find Ada.")]);
        let got = conversation.send(TARGET, &request(&input, stream), &answers(&rounds, stream));
        let client = read_as_client(&got, stream);
        assert_eq!(client.output, [message(2, "Still looking.")]);
        // The second search was not answered in its turn. Its result is sent with the client's next request.
        let input = next_input(&input, &client, &[user("Go on.")]);
        conversation.send(
            TARGET,
            &request(&input, stream),
            &[answer(3, &[message(3, "Done.")], stream)],
        );
        let sent = input_of(&conversation, 2);
        assert_eq!(sent[4], search("call_search00002", "update customer"));
        assert_eq!(
            (&sent[5]["type"], &sent[5]["call_id"]),
            (&json!("function_call_output"), &json!("call_search00002"))
        );
        let is_last =
            |answer: &Value| answer["output"].as_str().unwrap().contains("the last search");
        // The result of the first search says that this was the last search of the turn. The result of the second does
        // not, because it is sent in the next turn, in which the model may search again.
        assert!(is_last(&input_of(&conversation, 1)[2]) && !is_last(&sent[5]));
        assert_eq!(sent[6], user("Go on."));
    }
}

#[test]
fn no_match() {
    for stream in BOTH {
        let mut conversation = new_conversation();
        let rounds: [&[Value]; 2] =
            [&[search("call_search00001", "zebra xylophone")], &[message(2, "There is none.")]];
        let got = conversation.send(
            TARGET,
            &request(&json!([user("Zebra?")]), stream),
            &answers(&rounds, stream),
        );
        assert_eq!(read_as_client(&got, stream).output, [message(2, "There is none.")]);
        assert!(!input_of(&conversation, 1)[2]["output"].as_str().unwrap().is_empty());
    }
}

#[test]
fn a_search_and_a_real_call_in_one_turn() {
    for stream in BOTH {
        let mut conversation = new_conversation();
        let items = [
            search("call_search00001", "update customer"),
            bridge("call_find0000001", "crm__find_customer", &json!({"q": "ada"})),
            message(1, "One moment."),
        ];
        let input = json!([user("Find Ada.")]);
        let got = conversation.send(TARGET, &request(&input, stream), &[answer(1, &items, stream)]);
        let client = read_as_client(&got, stream);
        assert_eq!(client.output, [find("call_find0000001", "ada"), message(1, "One moment.")]);
        let input = next_input(&input, &client, &[output("call_find0000001", "Ada, 7")]);
        conversation.send(
            TARGET,
            &request(&input, stream),
            &[answer(2, &[message(2, "Found.")], stream)],
        );
        let sent = input_of(&conversation, 1);
        assert_eq!(sent[1..4], items);
        assert_eq!(sent[4]["call_id"], "call_search00001");
        assert_eq!(sent[5], output("call_find0000001", "Ada, 7"));
        assert_eq!(sent.len(), 6);
    }
}

#[test]
fn two_searches_in_one_turn() {
    for stream in BOTH {
        let mut conversation = new_conversation();
        let first = [
            search("call_search00001", "find customer"),
            search("call_search00002", "list invoice"),
        ];
        let got = conversation.send(
            TARGET,
            &request(&json!("Which tools?"), stream),
            &answers(&[&first, &[message(2, "Two.")]], stream),
        );
        assert_eq!(read_as_client(&got, stream).output, [message(2, "Two.")]);
        let sent = input_of(&conversation, 1);
        assert_eq!(sent[0], json!({"type": "message", "role": "user", "content": "Which tools?"}));
        assert_eq!(sent[1..3], first);
        assert_eq!(sent[3]["call_id"], "call_search00001");
        assert_eq!(sent[4]["call_id"], "call_search00002");
    }
}

#[test]
fn a_deferred_tool_called_without_a_search() {
    for stream in BOTH {
        let mut conversation = new_conversation();
        let good = find("call_find0000001", "ada");
        let input = json!([user("Find Ada.")]);
        let got = conversation.send(
            TARGET,
            &request(&input, stream),
            &[answer(1, std::slice::from_ref(&good), stream)],
        );
        assert_eq!(read_as_client(&got, stream).output, [good]);

        let bad = call("call_find0000002", "crm__find_customer", r#"{"name":7}"#);
        let rounds: [&[Value]; 2] =
            [std::slice::from_ref(&bad), &[find("call_find0000003", "ada")]];
        let got = conversation.send(TARGET, &request(&input, stream), &answers(&rounds, stream));
        assert_eq!(read_as_client(&got, stream).output, [find("call_find0000003", "ada")]);
        let sent = input_of(&conversation, 2);
        assert_eq!(sent[1], bad);
        assert!(sent[2]["output"].as_str().unwrap().contains("\"q\""), "the schema: {}", sent[2]);
    }
}

#[test]
fn calls_of_a_truncated_round_are_dropped() {
    for stream in BOTH {
        let mut conversation = new_conversation();
        let mut half = search("call_search00001", "find");
        half["status"] = json!("incomplete");
        half["arguments"] = json!(r#"{"que"#);
        let upstream = response_with_status(1, &[message(1, "I"), half], "incomplete", stream);
        let input = json!([user("Find Ada.")]);
        let got = conversation.send(TARGET, &request(&input, stream), &[upstream]);
        let client = read_as_client(&got, stream);
        assert_eq!(
            (client.status.as_str(), &client.output),
            ("incomplete", &vec![message(1, "I")])
        );
        let input = next_input(&input, &client, &[user("Go on.")]);
        conversation.send(
            TARGET,
            &request(&input, stream),
            &[answer(2, &[message(2, "Yes.")], stream)],
        );
        assert_eq!(
            conversation.sent[1]["input"],
            list(&[user("Find Ada."), message(1, "I"), user("Go on.")])
        );
    }
}
