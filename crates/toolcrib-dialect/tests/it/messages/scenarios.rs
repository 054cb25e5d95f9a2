//! Tests of whole turns through the bridge, each streamed and not streamed: without a search, with one search, with
//! several hidden rounds and so on. The tests of the other APIs have the same scenarios.

use serde_json::{Value, json};
use toolcrib_dialect::Mode;

use super::{
    BOTH, TARGET, answer, assert_extends_previous, assert_valid_history, call, new_conversation,
    play, request, result, search, text, user,
};

const DONE: &str = "end_turn";
const CALLS: &str = "tool_use";

/// Returns a call through the bridge.
fn bridge_call(id: &str, name: &str, arguments: Value) -> Value {
    call(id, "tool_call", json!({"name": name, "arguments": arguments}))
}

/// Returns the total usage of this number of rounds.
fn usage(rounds: u64) -> Value {
    json!({"input_tokens": 50 * rounds * (rounds + 1), "cache_creation_input_tokens": 7 * rounds,
        "cache_read_input_tokens": 20 * rounds, "output_tokens": 10 * rounds,
        "service_tier": "standard"})
}

#[test]
fn no_search() {
    for stream in BOTH {
        let mut conversation = new_conversation(Mode::Bridge);
        let upstream = answer(1, &(vec![text("Hello there.")], DONE), stream);
        let body = request(&json!([user("hi")]), stream);
        let got = conversation.send(TARGET, &body, std::slice::from_ref(&upstream));
        assert_eq!(got.text, upstream, "the response is forwarded unchanged");
        assert!(got.done.records.is_empty());
        let tools = conversation.sent[0]["tools"].as_array().unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["tool_search", "tool_describe", "tool_call"]);
        for key in ["model", "max_tokens", "system", "messages", "metadata", "stream"] {
            assert_eq!(conversation.sent[0][key], body[key]);
        }
    }
}

#[test]
fn one_search() {
    for stream in BOTH {
        let mut conversation = new_conversation(Mode::Bridge);
        let client = play(
            &mut conversation,
            &request(&json!([user("Find Ada.")]), stream),
            &[
                (vec![text("Let me look."), search("toolu_search01", "find customer")], CALLS),
                (
                    vec![bridge_call("toolu_find0001", "crm__find_customer", json!({"q": "ada"}))],
                    CALLS,
                ),
            ],
        );
        assert_eq!(
            client,
            json!({"id": "msg_1", "content": [text("Let me look."),
                call("toolu_find0001", "crm__find_customer", json!({"q": "ada"}))],
                "stop_reason": "tool_use", "usage": usage(2)})
        );
        assert_extends_previous(&conversation, 1);
        let hidden = &conversation.sent[1]["messages"];
        assert_valid_history(hidden);
        assert_eq!(
            hidden[1],
            json!({"role": "assistant",
                "content": [text("Let me look."), search("toolu_search01", "find customer")]})
        );
        assert_eq!(hidden[2]["role"], "user");
        assert_eq!(hidden[2]["content"][0]["tool_use_id"], "toolu_search01");
        assert!(hidden[2].to_string().contains("crm__find_customer"));

        // The client sends a result for the call. The history sent upstream contains the bridge call again.
        let messages = json!([user("Find Ada."),
            {"role": "assistant", "content": client["content"]},
            {"role": "user", "content": [result("toolu_find0001", "Ada, 7")]}]);
        let client =
            play(&mut conversation, &request(&messages, stream), &[(vec![text("Found.")], DONE)]);
        assert_eq!(client["content"], json!([text("Found.")]));
        assert_extends_previous(&conversation, 2);
        let sent = &conversation.sent[2]["messages"];
        assert_valid_history(sent);
        assert_eq!(
            sent[3]["content"],
            json!([bridge_call("toolu_find0001", "crm__find_customer", json!({"q": "ada"}))])
        );
        assert_eq!(sent[4], messages[2]);
    }
}

#[test]
fn two_hidden_rounds() {
    for stream in BOTH {
        let mut conversation = new_conversation(Mode::Bridge);
        let client = play(
            &mut conversation,
            &request(&json!([user("Find Ada.")]), stream),
            &[
                (vec![text("Looking."), search("toolu_search01", "find customer")], CALLS),
                (vec![text("More."), search("toolu_search02", "archive ticket")], CALLS),
                (vec![text("I have both.")], DONE),
            ],
        );
        assert_eq!(
            client,
            json!({"id": "msg_1",
                "content": [text("Looking."), text("More."), text("I have both.")],
                "stop_reason": "end_turn", "usage": usage(3)})
        );
        let messages = json!([user("Find Ada."),
            {"role": "assistant", "content": client["content"]}, user("Thanks.")]);
        play(&mut conversation, &request(&messages, stream), &[(vec![text("Yes?")], DONE)]);
        (1..4).for_each(|n| assert_extends_previous(&conversation, n));
        assert_valid_history(&conversation.sent[3]["messages"]);
        assert_eq!(conversation.sent[3]["messages"].as_array().unwrap().len(), 7);
    }
}

#[test]
fn the_limit_of_hidden_rounds_is_reached() {
    for stream in BOTH {
        let mut conversation = new_conversation(Mode::Bridge);
        conversation.rounds = 1;
        let client = play(
            &mut conversation,
            &request(&json!([user("Find Ada.")]), stream),
            &[
                (vec![search("toolu_search01", "find customer")], CALLS),
                (vec![text("Again."), search("toolu_search02", "archive ticket")], CALLS),
            ],
        );
        assert_eq!(client["content"], json!([text("Again.")]));
        assert_eq!(client["stop_reason"], "end_turn", "a hidden call is not the stop reason");

        // The result of the last search was held back until this request. It is put before the client's new message.
        let messages = json!([user("Find Ada."),
            {"role": "assistant", "content": client["content"]}, user("Go on.")]);
        play(&mut conversation, &request(&messages, stream), &[(vec![text("Yes?")], DONE)]);
        (1..3).for_each(|n| assert_extends_previous(&conversation, n));
        let sent = &conversation.sent[2]["messages"];
        assert_valid_history(sent);
        assert_eq!(sent[4]["content"][0]["tool_use_id"], "toolu_search02");
        let is_last = |answer: &Value| {
            answer["content"][0]["content"].as_str().unwrap().contains("last search")
        };
        // The result of the first search says that this was the last search of the turn. The result of the second does
        // not, because it is sent in the next turn, in which the model may search again.
        assert!(is_last(&conversation.sent[1]["messages"][2]) && !is_last(&sent[4]));
        assert_eq!(sent[4]["content"][1], text("Go on."));
    }
}

#[test]
fn no_match() {
    for stream in BOTH {
        let mut conversation = new_conversation(Mode::Bridge);
        let client = play(
            &mut conversation,
            &request(&json!([user("Fly me to the moon.")]), stream),
            &[
                (vec![search("toolu_search01", "zzyzx qwrtplk")], CALLS),
                (vec![text("I cannot.")], DONE),
            ],
        );
        assert_eq!(client["content"], json!([text("I cannot.")]));
        let result = &conversation.sent[1]["messages"][2]["content"][0];
        assert_eq!(result["type"], "tool_result");
        assert!(!result["content"].as_str().unwrap().is_empty());
    }
}

#[test]
fn a_search_and_a_real_call_in_one_turn() {
    for stream in BOTH {
        let mut conversation = new_conversation(Mode::Bridge);
        let output = vec![
            search("toolu_search01", "archive ticket"),
            bridge_call("toolu_find0001", "crm__find_customer", json!({"q": "ada"})),
        ];
        let client = play(
            &mut conversation,
            &request(&json!([user("Find Ada.")]), stream),
            &[(output.clone(), CALLS)],
        );
        let mut once = usage(1);
        once["input_tokens"] = json!(100);
        assert_eq!(
            client,
            json!({"id": "msg_1",
                "content": [call("toolu_find0001", "crm__find_customer", json!({"q": "ada"}))],
                "stop_reason": "tool_use", "usage": once})
        );
        let messages = json!([user("Find Ada."),
            {"role": "assistant", "content": client["content"]},
            {"role": "user", "content": [result("toolu_find0001", "Ada, 7"), text("and?")]}]);
        play(&mut conversation, &request(&messages, stream), &[(vec![text("Found.")], DONE)]);
        assert_extends_previous(&conversation, 1);
        let sent = &conversation.sent[1]["messages"];
        assert_valid_history(sent);
        assert_eq!(sent[1]["content"], json!(output));
        let blocks = sent[2]["content"].as_array().unwrap();
        assert_eq!(blocks.len(), 3);
        assert_eq!(blocks[0]["tool_use_id"], "toolu_search01");
        assert_eq!(blocks[1..], [result("toolu_find0001", "Ada, 7"), text("and?")]);
    }
}

#[test]
fn two_searches_in_one_turn() {
    for stream in BOTH {
        let mut conversation = new_conversation(Mode::Bridge);
        let client = play(
            &mut conversation,
            &request(&json!([user("Find Ada.")]), stream),
            &[
                (
                    vec![
                        search("toolu_search01", "find customer"),
                        search("toolu_search02", "archive ticket"),
                    ],
                    CALLS,
                ),
                (vec![text("Both.")], DONE),
            ],
        );
        assert_eq!(client["content"], json!([text("Both.")]));
        let results = conversation.sent[1]["messages"][2]["content"].as_array().unwrap();
        let ids: Vec<&Value> = results.iter().map(|result| &result["tool_use_id"]).collect();
        assert_eq!(ids, ["toolu_search01", "toolu_search02"]);
        assert_valid_history(&conversation.sent[1]["messages"]);
    }
}

#[test]
fn a_deferred_tool_called_without_a_search_with_valid_arguments() {
    for stream in BOTH {
        let mut conversation = new_conversation(Mode::Bridge);
        let good = call("toolu_find0001", "crm__find_customer", json!({"q": "ada"}));
        let body = request(&json!([user("Find Ada.")]), stream);
        let client = play(&mut conversation, &body, &[(vec![text("So."), good.clone()], CALLS)]);
        assert_eq!(client["content"], json!([text("So."), good]));
        assert_eq!(client["stop_reason"], "tool_use");
    }
}

#[test]
fn a_deferred_tool_called_without_a_search_with_invalid_arguments() {
    for stream in BOTH {
        let mut conversation = new_conversation(Mode::Bridge);
        let bad = call("toolu_upd00001", "crm__update_customer", json!({"id": "seven"}));
        let good = call("toolu_upd00002", "crm__update_customer", json!({"id": 7}));
        let body = request(&json!([user("Change Ada.")]), stream);
        let rounds = [(vec![bad.clone()], CALLS), (vec![good.clone()], CALLS)];
        let client = play(&mut conversation, &body, &rounds);
        assert_eq!(client["content"], json!([good]));
        let hidden = &conversation.sent[1]["messages"];
        assert_valid_history(hidden);
        assert_eq!(hidden[1]["content"], json!([bad]));
        assert_eq!(hidden[2]["content"][0]["is_error"], true);
        assert!(
            hidden[2].to_string().contains("integer"),
            "the result contains the schema: {hidden}"
        );
    }
}

#[test]
fn a_call_of_a_tool_sent_in_full_is_forwarded_unchanged() {
    for stream in BOTH {
        let mut conversation = new_conversation(Mode::Bridge);
        let mut body = request(&json!([user("Search the web.")]), stream);
        let web = json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 3});
        body["tools"].as_array_mut().unwrap().insert(0, web.clone());
        let output = vec![
            json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
                "input": {"query": "ada"}}),
            json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}),
            text("Here."),
        ];
        let upstream = answer(1, &(output, "pause_turn"), stream);
        let got = conversation.send(TARGET, &body, std::slice::from_ref(&upstream));
        assert_eq!(got.text, upstream, "a pause is forwarded unchanged");
        assert_eq!(conversation.sent[0]["tools"][0], web);
    }
}

#[test]
fn calls_of_a_truncated_round_are_dropped() {
    for stream in BOTH {
        let mut conversation = new_conversation(Mode::Bridge);
        let rounds = [
            (vec![search("toolu_search01", "find customer")], CALLS),
            (
                vec![
                    text("I will"),
                    bridge_call("toolu_find0001", "crm__find_customer", json!({"q": "ada"})),
                ],
                "max_tokens",
            ),
        ];
        let body = request(&json!([user("Find Ada.")]), stream);
        let client = play(&mut conversation, &body, &rounds);
        assert_eq!(client["content"], json!([text("I will")]));
        assert_eq!(client["stop_reason"], "max_tokens");
        let messages = json!([user("Find Ada."),
            {"role": "assistant", "content": client["content"]}, user("Go on.")]);
        play(&mut conversation, &request(&messages, stream), &[(vec![text("Yes?")], DONE)]);
        assert_valid_history(&conversation.sent[2]["messages"]);
        (1..3).for_each(|n| assert_extends_previous(&conversation, n));

        // The truncated round is now the first one, so nothing was hidden before it.
        let mut conversation = super::new_conversation(Mode::Bridge);
        let client = play(&mut conversation, &body, &rounds[1..]);
        assert_eq!(client["content"], json!([text("I will")]));
    }
}
