//! Tests of tools that are sent without their descriptions. The model can call such a tool at once. Until the model has
//! been shown the tool's description, the arguments of each call are checked before the call is forwarded.

use serde_json::json;
use toolcrib_dialect::{Api, Mode};

use super::{ModelOutput, TARGET, answer, read_as_client, request};
use crate::conversation::TestConversation;

const FIND: &str = "crm__find_customer";

fn new_conversation() -> TestConversation {
    let mut conversation = TestConversation::new(Api::Chat, Mode::Terse);
    conversation.settings.activation.mode = toolcrib_core::policy::ActivationMode::On;
    conversation
}

#[test]
fn a_call_with_invalid_arguments_is_answered_with_the_schema() {
    for stream in [false, true] {
        for wrong in ["", "{}", r#"{"q":5}"#] {
            let mut conversation = new_conversation();
            let messages = json!([{"role": "user", "content": "Find Ada."}]);
            let call = |id, arguments| answer(1, &says(&[(id, FIND, arguments)]), stream);
            let rounds =
                [call("call_wrong000001", wrong), call("call_right000001", r#"{"q":"Ada"}"#)];
            let got = conversation.send(TARGET, &request(&messages, stream), &rounds);
            let received = read_as_client(&got, stream);
            let calls = received.message["tool_calls"].as_array().unwrap();
            assert_eq!(calls.len(), 1, "{received:?}");
            assert_eq!(calls[0]["function"]["arguments"], r#"{"q":"Ada"}"#);
            let refusal = conversation.sent[1]["messages"][2]["content"].as_str().unwrap();
            assert!(refusal.contains(r#""required":["q"]"#), "{refusal}");
        }
    }
}

fn says<'a>(calls: &'a [(&'a str, &'a str, &'a str)]) -> ModelOutput<'a> {
    ModelOutput { text: "", calls, finish: "tool_calls" }
}

/// Calls to tools whose description was shown are streamed. All other calls are held back until they are complete.
#[test]
fn calls_are_streamed_once_the_description_was_shown() {
    let pieces = |rounds: &[String]| {
        let messages = json!([{"role": "user", "content": "Find Ada."}]);
        let got = new_conversation().send(TARGET, &request(&messages, true), rounds);
        let events = got.events();
        let arguments = events.iter().filter_map(|event| {
            event["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].as_str()
        });
        arguments.filter(|part| !part.is_empty()).count()
    };
    let search = [("call_search00001", "tool_search", r#"{"query":"find customer"}"#)];
    let find = [("call_find0000001", FIND, r#"{"q":"Ada"}"#)];
    let (search, find) = (answer(1, &says(&search), true), answer(2, &says(&find), true));
    assert_eq!(pieces(&[search, find.clone()]), 2, "the arguments are streamed in two pieces");
    assert_eq!(pieces(&[find]), 1, "the arguments are held back and sent in one piece");
}
