//! Tests of truncated rounds: incomplete calls that the proxy holds back are dropped.

use serde_json::json;

use super::{ModelOutput, TARGET, answer, new_conversation, read_as_client, request};

const SEARCH: (&str, &str, &str) =
    ("call_search00001", "tool_search", r#"{"query":"find customer"}"#);
const HALF: (&str, &str, &str) = ("call_find0000001", "tool_call", r#"{"name":"crm__fi"#);

#[test]
fn the_client_does_not_get_an_incomplete_call() {
    for stream in [false, true] {
        for call in [SEARCH, HALF] {
            let says = ModelOutput { text: "Let me", calls: &[call], finish: "length" };
            let body = request(&json!([{"role": "user", "content": "Find Ada."}]), stream);
            let got = new_conversation().send(TARGET, &body, &[answer(1, &says, stream)]);
            let received = read_as_client(&got, stream);
            assert_eq!(received.message["content"], "Let me");
            assert_eq!(received.message.get("tool_calls"), None, "{}", got.text);
            assert_eq!(received.finish, "length");
        }
    }
}

#[test]
fn an_incomplete_call_is_not_sent_back_to_the_upstream() {
    for stream in [false, true] {
        for text in ["Let me", ""] {
            let mut conversation = new_conversation();
            let rounds = [
                ModelOutput { text: "", calls: &[SEARCH], finish: "tool_calls" },
                ModelOutput { text, calls: &[HALF], finish: "length" },
            ];
            let answers = [answer(1, &rounds[0], stream), answer(2, &rounds[1], stream)];
            let question = json!({"role": "user", "content": "Find Ada."});
            conversation.send(TARGET, &request(&json!([question]), stream), &answers);
            let more = json!({"role": "user", "content": "Go on."});
            let echo = json!({"role": "assistant", "content": text});
            let next = request(&json!([question, echo, more]), stream);
            let says = ModelOutput { text: "Nobody.", calls: &[], finish: "stop" };
            conversation.send(TARGET, &next, &[answer(3, &says, stream)]);
            let sent = conversation.sent[2]["messages"].as_array().unwrap();
            assert_eq!(sent.len(), 5, "{sent:?}");
            assert_eq!(sent[1]["tool_calls"][0]["id"], "call_search00001");
            assert_eq!(sent[3]["content"], text);
            assert_eq!(sent[3].get("tool_calls"), None);
        }
    }
}
