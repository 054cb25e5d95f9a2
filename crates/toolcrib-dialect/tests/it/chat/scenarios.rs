//! Tests of whole turns, each streamed and not streamed: without a search, with one search, with several hidden rounds
//! and so on. The tests of the other APIs have the same scenarios.

use serde_json::{Value, json};

use super::{
    ChatConversation, ModelOutput, TARGET, answer, new_conversation, read_as_client, request,
};
use crate::conversation::begins_with;

const BOTH: [bool; 2] = [false, true];

#[test]
fn no_search() {
    for stream in BOTH {
        let mut conversation = new_conversation();
        let says = ModelOutput { text: "Hello there.", calls: &[], finish: "stop" };
        let upstream = answer(1, &says, stream);
        let got = conversation.send(
            TARGET,
            &request(&json!([{"role": "user", "content": "hi"}]), stream),
            std::slice::from_ref(&upstream),
        );
        assert_eq!(got.text, upstream, "the response is forwarded unchanged");
        assert!(got.done.records.is_empty());
        let names: Vec<&str> = conversation.sent[0]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["function"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["tool_search", "tool_describe", "tool_call"]);
        assert_eq!(conversation.sent[0]["metadata"], json!({"trace": "t-1"}));
    }
}

#[test]
fn one_search() {
    for stream in BOTH {
        let mut conversation = new_conversation();
        let rounds = [
            ModelOutput {
                text: "Let me look.",
                calls: &[("call_search00001", "tool_search", r#"{"query":"find customer"}"#)],
                finish: "tool_calls",
            },
            ModelOutput {
                text: "",
                calls: &[(
                    "call_find0000001",
                    "tool_call",
                    r#"{"name":"crm__find_customer","arguments":{"q":"ada"}}"#,
                )],
                finish: "tool_calls",
            },
        ];
        let answers: Vec<String> =
            rounds.iter().zip(1..).map(|(says, n)| answer(n, says, stream)).collect();
        let mut messages = json!([{"role": "user", "content": "Find Ada."}]);
        let got = conversation.send(TARGET, &request(&messages, stream), &answers);
        let client = read_as_client(&got, stream);
        assert_eq!(client.id, "chatcmpl-1");
        assert_eq!(client.finish, "tool_calls");
        assert_eq!(client.message["content"], "Let me look.");
        assert_eq!(
            client.message["tool_calls"],
            json!([{"id": "call_find0000001", "type": "function",
            "function": {"name": "crm__find_customer", "arguments": r#"{"q":"ada"}"#}}])
        );
        assert_eq!(client.usage["prompt_tokens"], 300);
        assert_eq!(client.usage["prompt_tokens_details"]["cached_tokens"], 10);

        // The request of the hidden round contains the search and its result.
        let hidden = &conversation.sent[1]["messages"];
        assert_eq!(hidden.as_array().unwrap().len(), 3);
        assert_eq!(hidden[1]["tool_calls"][0]["function"]["name"], "tool_search");
        assert_eq!(hidden[2]["tool_call_id"], "call_search00001");
        assert!(hidden[2]["content"].as_str().unwrap().contains("crm__find_customer"));

        // The client sends back what it received. The history sent upstream begins with the history of the previous
        // request.
        messages.as_array_mut().unwrap().push(client.message.clone());
        messages
            .as_array_mut()
            .unwrap()
            .push(json!({"role": "tool", "tool_call_id": "call_find0000001", "content": "Ada, 7"}));
        let says = ModelOutput { text: "Found.", calls: &[], finish: "stop" };
        conversation.send(TARGET, &request(&messages, stream), &[answer(3, &says, stream)]);
        assert!(begins_with(&conversation.sent[2]["messages"], &conversation.sent[1]["messages"]));
        assert_eq!(conversation.sent[2]["tools"], conversation.sent[0]["tools"]);
        let next: Vec<&Value> =
            conversation.sent[2]["messages"].as_array().unwrap().iter().skip(3).collect();
        assert_eq!(next.len(), 2);
        assert_eq!(next[0]["tool_calls"][0]["function"]["name"], "tool_call");
        assert_eq!(next[1]["content"], "Ada, 7");
    }
}

const SEARCH: (&str, &str, &str) =
    ("call_search00001", "tool_search", r#"{"query":"find customer"}"#);
const OTHER: (&str, &str, &str) =
    ("call_search00002", "tool_search", r#"{"query":"list invoice"}"#);
const BRIDGED: (&str, &str, &str) =
    ("call_find0000001", "tool_call", r#"{"name":"crm__find_customer","arguments":{"q":"ada"}}"#);
const REAL: (&str, &str, &str) = ("call_find0000001", "crm__find_customer", r#"{"q":"ada"}"#);

fn calls(
    text: &'static str,
    calls: &'static [(&'static str, &'static str, &'static str)],
) -> ModelOutput<'static> {
    ModelOutput { text, calls, finish: "tool_calls" }
}

fn text(text: &'static str) -> ModelOutput<'static> {
    ModelOutput { text, calls: &[], finish: "stop" }
}

/// Returns the client's result for the call [`REAL`].
fn found() -> Value {
    json!({"role": "tool", "tool_call_id": "call_find0000001", "content": "Ada, 7"})
}

fn bridged() -> Value {
    json!([{"id": BRIDGED.0, "type": "function", "function": {"name": BRIDGED.1, "arguments": BRIDGED.2}}])
}

#[test]
fn two_hidden_rounds() {
    for stream in BOTH {
        let mut conversation = ChatConversation::new(stream);
        let other =
            calls("Once more.", &[("call_search00002", "tool_search", r#"{"query":"update"}"#)]);
        let received =
            conversation.send(&[calls("Let me look.", &[SEARCH]), other, text("Nobody.")]);
        received.assert_is("Let me look.\n\nOnce more.\n\nNobody.", &[], "stop", 3);
        let tail = conversation.reply(&received, &[json!({"role": "user", "content": "A pity."})]);
        assert_eq!((tail.len(), &tail[0]["content"]), (2, &json!("Nobody.")));
    }
}

#[test]
fn the_limit_of_hidden_rounds_is_reached() {
    for stream in BOTH {
        let mut conversation = ChatConversation::new(stream);
        conversation.inner.rounds = 2;
        let look = || calls("Looking.", &[SEARCH]);
        let received = conversation.send(&[look(), look(), look()]);
        received.assert_is("Looking.\n\nLooking.\n\nLooking.", &[], "stop", 3);
        let tail = conversation.reply(&received, &[json!({"role": "user", "content": "Go on."})]);
        assert_eq!(tail[0]["tool_calls"][0]["id"], SEARCH.0);
        assert_eq!(tail[1]["tool_call_id"], SEARCH.0);
        let is_last = |answer: &Value| {
            answer["content"].as_str().unwrap().contains("last search of this turn")
        };
        // The result of the second search says that this was the last search of the turn. The result of the third does
        // not, because it is sent in the next turn, in which the model may search again.
        assert!(is_last(&conversation.inner.sent[2]["messages"][4]) && !is_last(&tail[1]));
        assert_eq!(tail[2..], [json!({"role": "user", "content": "Go on."})]);
    }
}

#[test]
fn no_match() {
    for stream in BOTH {
        let mut conversation = ChatConversation::new(stream);
        let nothing =
            calls("", &[("call_search00001", "tool_search", r#"{"query":"zzyzx qqqq"}"#)]);
        let received = conversation.send(&[nothing, text("There is none.")]);
        received.assert_is("There is none.", &[], "stop", 2);
        assert_eq!(
            conversation.reply(&received, &[json!({"role": "user", "content": "A pity."})]).len(),
            2
        );
    }
}

#[test]
fn a_search_and_a_real_call_in_one_turn() {
    for stream in BOTH {
        for both in [&[SEARCH, BRIDGED], &[BRIDGED, SEARCH]] {
            let mut conversation = ChatConversation::new(stream);
            let received = conversation.send(&[calls("", both)]);
            received.assert_is("", &[REAL], "tool_calls", 1);
            let tail = conversation.reply(&received, &[found()]);
            let names: Vec<&Value> = (0..2).map(|at| &tail[0]["tool_calls"][at]["id"]).collect();
            assert_eq!(names, [both[0].0, both[1].0]);
            assert_eq!(tail[1]["tool_call_id"], SEARCH.0);
            assert_eq!(tail[2..], [found()]);
        }
    }
}

/// A call to a tool that is never deferred is forwarded while it arrives, unless an earlier call is still held back.
#[test]
fn calls_keep_their_order() {
    const READ: (&str, &str, &str) = ("call_read0000001", "read_file", r#"{"path":"a"}"#);
    const MORE: (&str, &str, &str) = ("call_read0000002", "read_file", r#"{"path":"b"}"#);
    let (order, visible) = (&[READ, BRIDGED, SEARCH, MORE], [READ, REAL, MORE]);
    for stream in BOTH {
        let mut conversation = new_conversation();
        let mut body = request(&json!([{"role": "user", "content": "Find Ada."}]), stream);
        let read = json!({"type": "function", "function": {"name": "read_file",
            "description": "Reads a file.", "parameters": {"type": "object",
                "properties": {"path": {"type": "string"}}}}});
        body["tools"].as_array_mut().unwrap().push(read);
        let got = conversation.send(TARGET, &body, &[answer(1, &calls("", order), stream)]);
        read_as_client(&got, stream).assert_is("", &visible, "tool_calls", 1);
    }
}

#[test]
fn two_searches_in_one_turn() {
    for stream in BOTH {
        let mut conversation = ChatConversation::new(stream);
        let received = conversation.send(&[calls("", &[SEARCH, OTHER]), calls("", &[BRIDGED])]);
        received.assert_is("", &[REAL], "tool_calls", 2);
        let hidden = &conversation.inner.sent[1]["messages"];
        assert_eq!(hidden[2]["tool_call_id"], SEARCH.0);
        assert!(hidden[2]["content"].as_str().unwrap().contains("crm__find_customer"));
        assert_eq!(hidden[3]["tool_call_id"], OTHER.0);
        assert!(hidden[3]["content"].as_str().unwrap().contains("list_invoice"));
        assert_eq!(conversation.reply(&received, &[found()])[1..], [found()]);
    }
}

#[test]
fn a_deferred_tool_called_without_a_search_with_valid_arguments() {
    for stream in BOTH {
        for blind in [&[REAL], &[BRIDGED]] {
            let mut conversation = ChatConversation::new(stream);
            let received = conversation.send(&[calls("", blind)]);
            received.assert_is("", &[REAL], "tool_calls", 1);
            let tail = conversation.reply(&received, &[found()]);
            assert_eq!(tail[0]["tool_calls"][0]["function"]["name"], blind[0].1);
        }
    }
}

#[test]
fn a_deferred_tool_called_without_a_search_with_invalid_arguments() {
    for stream in BOTH {
        let mut conversation = ChatConversation::new(stream);
        let bad = calls("", &[("call_bad00000001", "crm__find_customer", r#"{"name":"ada"}"#)]);
        let received = conversation.send(&[bad, calls("", &[BRIDGED])]);
        received.assert_is("", &[REAL], "tool_calls", 2);
        let hidden = &conversation.inner.sent[1]["messages"];
        assert_eq!(hidden[2]["tool_call_id"], "call_bad00000001");
        assert!(hidden[2]["content"].as_str().unwrap().contains("\"q\""));
        assert_eq!(conversation.reply(&received, &[found()])[1..], [found()]);
    }
}

#[test]
fn a_call_in_a_truncated_round_is_dropped() {
    for stream in BOTH {
        let mut conversation = ChatConversation::new(stream);
        let cut = ModelOutput {
            text: "I will",
            calls: &[("call_cut00000001", "tool_call", r#"{"name":"crm__fi"#)],
            finish: "length",
        };
        let received = conversation.send(&[calls("", &[SEARCH]), cut]);
        received.assert_is("I will", &[], "length", 2);
        // The truncated call is not sent upstream, because it has no result.
        let tail = conversation.reply(&received, &[json!({"role": "user", "content": "Go on."})]);
        assert_eq!((tail.len(), &tail[0]["content"]), (2, &json!("I will")));
        assert_eq!(tail[0].get("tool_calls"), None);
    }
}

#[test]
fn without_its_record_a_turn_loses_only_the_search() {
    for stream in BOTH {
        let mut conversation = ChatConversation::new(stream);
        let received =
            conversation.send(&[calls("Let me look.", &[SEARCH]), calls("", &[BRIDGED])]);
        conversation.inner.records.clear();
        conversation.messages.extend([received.message.clone(), found()]);
        let received = conversation.send(&[text("Found.")]);
        let sent = &conversation.inner.sent[2]["messages"];
        assert_eq!(sent[1]["tool_calls"], bridged());
        assert_eq!(sent[2], found());
        let tail = conversation.reply(&received, &[json!({"role": "user", "content": "Thanks."})]);
        assert_eq!(tail.len(), 2);
    }
}

#[test]
fn records_of_a_shortened_history_are_found_by_call_ids() {
    for stream in BOTH {
        let mut conversation = ChatConversation::new(stream);
        let received =
            conversation.send(&[calls("Let me look.", &[SEARCH]), calls("", &[BRIDGED])]);
        conversation.messages.extend([received.message.clone(), found()]);
        conversation.send(&[text("Found.")]);
        conversation.messages[0] = json!({"role": "user", "content": "Summary: we look for Ada."});
        conversation.send(&[text("Found.")]);
        let [before, after] =
            [2, 3].map(|at| conversation.inner.sent[at]["messages"].as_array().unwrap().clone());
        assert_eq!(after[1..], before[1..], "the search was restored");
    }
}

/// Another conversation of the same caller may have begun with the same text and the same call, so the call's id
/// decides which records are used.
#[test]
fn a_call_with_another_id_belongs_to_another_conversation() {
    for stream in BOTH {
        let mut conversation = ChatConversation::new(stream);
        let received =
            conversation.send(&[calls("Let me look.", &[SEARCH]), calls("", &[BRIDGED])]);
        let (mut message, mut result) = (received.message.clone(), found());
        let id = message["tool_calls"][0]["id"].as_str().unwrap().to_owned();
        let other = format!("{}Z", &id[..id.len() - 1]);
        message["tool_calls"][0]["id"] = json!(other);
        result["tool_call_id"] = json!(other);
        conversation.messages.extend([message, result]);
        conversation.send(&[text("Found.")]);
        let sent = conversation.inner.sent[2]["messages"].to_string();
        assert!(!sent.contains("call_search"), "{sent}");
    }
}

#[test]
fn a_client_may_change_call_ids() {
    for stream in BOTH {
        let mut conversation = ChatConversation::new(stream);
        let received =
            conversation.send(&[calls("Let me look.", &[SEARCH]), calls("", &[BRIDGED])]);
        let before = conversation.inner.sent[1]["messages"].clone();
        let (mut message, mut result) = (received.message.clone(), found());
        message["tool_calls"][0]["id"] = json!("a1B2c3D4e");
        result["tool_call_id"] = json!("a1B2c3D4e");
        conversation.messages.extend([message, result]);
        conversation.send(&[text("Found.")]);
        let sent = &conversation.inner.sent[2]["messages"];
        assert!(crate::conversation::begins_with(sent, &before), "the search was restored");
        assert_eq!(
            sent.as_array().unwrap().last(),
            Some(&found()),
            "the result has the upstream's call id"
        );
    }
}
