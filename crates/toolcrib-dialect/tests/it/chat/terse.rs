//! Tools whose descriptions are withheld: they are callable, but a call is checked until the description was
//! shown.

use serde_json::json;
use toolcrib_dialect::{Api, Mode};

use super::{Says, TARGET, answer, request, seen};
use crate::support::Talk;

const FIND: &str = "crm__find_customer";

fn talk() -> Talk {
    let mut talk = Talk::new(Api::Chat, Mode::Terse);
    talk.settings.activation.mode = toolcrib_core::policy::ActivationMode::On;
    talk
}

#[test]
fn a_call_that_does_not_fit_is_answered_with_the_schema() {
    for stream in [false, true] {
        for wrong in ["", "{}", r#"{"q":5}"#] {
            let mut talk = talk();
            let messages = json!([{"role": "user", "content": "Find Ada."}]);
            let call = |id, arguments| answer(1, &says(&[(id, FIND, arguments)]), stream);
            let rounds =
                [call("call_wrong000001", wrong), call("call_right000001", r#"{"q":"Ada"}"#)];
            let got = talk.ask(TARGET, &request(&messages, stream), &rounds);
            let seen = seen(&got, stream);
            let calls = seen.message["tool_calls"].as_array().unwrap();
            assert_eq!(calls.len(), 1, "{seen:?}");
            assert_eq!(calls[0]["function"]["arguments"], r#"{"q":"Ada"}"#);
            let refusal = talk.sent[1]["messages"][2]["content"].as_str().unwrap();
            assert!(refusal.contains(r#""required":["q"]"#), "{refusal}");
        }
    }
}

fn says<'a>(calls: &'a [(&'a str, &'a str, &'a str)]) -> Says<'a> {
    Says { text: "", calls, finish: "tool_calls" }
}

/// What was shown streams as it comes, and what was not is held until it is complete.
#[test]
fn a_tool_whose_description_was_shown_streams_its_arguments() {
    let pieces = |rounds: &[String]| {
        let messages = json!([{"role": "user", "content": "Find Ada."}]);
        let got = talk().ask(TARGET, &request(&messages, true), rounds);
        let events = got.events();
        let arguments = events.iter().filter_map(|event| {
            event["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].as_str()
        });
        arguments.filter(|part| !part.is_empty()).count()
    };
    let search = [("call_search00001", "tool_search", r#"{"query":"find customer"}"#)];
    let find = [("call_find0000001", FIND, r#"{"q":"Ada"}"#)];
    let (search, find) = (answer(1, &says(&search), true), answer(2, &says(&find), true));
    assert_eq!(pieces(&[search, find.clone()]), 2, "in the pieces it came in");
    assert_eq!(pieces(&[find]), 1, "in one piece");
}
