//! The client's cache breakpoints.

use serde_json::{Value, json};
use toolcrib_dialect::Mode;
use toolcrib_dialect::mode::ReferenceKind;

use super::{call, forty, play, request, result, search, talk, text, thinking, user};

const MODES: [Mode; 2] = [Mode::Bridge, Mode::Reference(ReferenceKind::ToolReference)];

fn mark() -> Value {
    json!({"type": "ephemeral"})
}

fn marks(value: &Value) -> usize {
    match value {
        Value::Object(map) => {
            usize::from(map.contains_key("cache_control")) + map.values().map(marks).sum::<usize>()
        }
        Value::Array(list) => list.iter().map(marks).sum(),
        _ => 0,
    }
}

#[test]
fn a_breakpoint_on_a_deferred_tool_moves_to_the_last_loaded_tool() {
    for mode in MODES {
        let mut talk = talk(mode);
        let mut body = request(&json!([user("hi")]), false);
        body["tools"][3]["cache_control"] = mark();
        body["tools"][39]["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
        play(&mut talk, &body, &[(vec![text("Hello.")], "end_turn")]);
        let tools = talk.sent[0]["tools"].as_array().unwrap();
        assert_eq!(marks(&talk.sent[0]), 1);
        let last = tools.last().unwrap();
        assert_eq!(last["cache_control"], json!({"type": "ephemeral", "ttl": "1h"}));
    }
}

#[test]
fn a_breakpoint_on_a_tool_sent_in_full_stays() {
    for mode in MODES {
        let mut talk = talk(mode);
        let mut body = request(&json!([user("hi")]), false);
        body["tools"][3]["cache_control"] = mark();
        let bash = json!({"type": "bash_20250124", "name": "bash", "cache_control": mark()});
        body["tools"].as_array_mut().unwrap().push(bash.clone());
        play(&mut talk, &body, &[(vec![text("Hello.")], "end_turn")]);
        assert_eq!(marks(&talk.sent[0]["tools"]), 1, "the later one covers the earlier");
        assert!(talk.sent[0]["tools"].as_array().unwrap().contains(&bash));
    }
}

#[test]
fn no_request_has_more_breakpoints_than_the_client_set() {
    for mode in MODES {
        let mut talk = talk(mode);
        let mut body = request(&json!([user("Find Ada.")]), true);
        body["system"] = json!([{"type": "text", "text": "Be brief.", "cache_control": mark()}]);
        body["tools"] = forty().into();
        body["tools"][39]["cache_control"] = mark();
        let rounds = [
            (vec![search("toolu_search01", "select:crm__find_customer")], "tool_use"),
            (vec![thinking("s"), text("Yes."), thinking("t")], "end_turn"),
        ];
        let client = play(&mut talk, &body, &rounds);
        let mut said = client["content"].clone();
        said[1]["cache_control"] = mark();
        let mut last = text("Go on.");
        last["cache_control"] = mark();
        body["messages"] = json!([user("Find Ada."),
            {"role": "assistant", "content": said}, {"role": "user", "content": [last]}]);
        assert_eq!(marks(&body), 4);
        play(&mut talk, &body, &[(vec![text("Yes.")], "end_turn")]);
        assert_eq!(marks(&talk.sent[2]), 4);
        let kept = &talk.sent[2]["messages"][3]["content"];
        assert_eq!(kept[1]["cache_control"], mark(), "thinking cannot bear one: {kept}");
    }
}

#[test]
fn a_breakpoint_on_a_sent_back_turn_moves_to_the_end_of_the_stored_turn() {
    let mut talk = talk(Mode::Bridge);
    let wrapped = call(
        "toolu_find0001",
        "tool_call",
        json!({"name": "crm__find_customer", "arguments": {"q": "a"}}),
    );
    let body = request(&json!([user("Find Ada.")]), false);
    let rounds = [
        (vec![text("Looking."), search("toolu_search01", "find customer")], "tool_use"),
        (vec![wrapped.clone()], "tool_use"),
    ];
    let client = play(&mut talk, &body, &rounds);
    let mut said = client["content"].clone();
    said[1]["cache_control"] = mark();
    let messages = json!([user("Find Ada."), {"role": "assistant", "content": said},
        {"role": "user", "content": [result("toolu_find0001", "Ada")]}]);
    play(&mut talk, &request(&messages, false), &[(vec![text("Yes.")], "end_turn")]);
    let mut expected = wrapped;
    expected["cache_control"] = mark();
    assert_eq!(talk.sent[2]["messages"][3]["content"], json!([expected]));
    assert_eq!(marks(&talk.sent[2]), 1);
}

#[test]
fn a_found_tool_has_no_breakpoint() {
    for mode in [Mode::Append, Mode::Reveal, Mode::Terse] {
        let mut talk = talk(mode);
        talk.settings.activation.mode = toolcrib_core::policy::ActivationMode::On;
        let mut body = request(&json!([user("Find Ada.")]), true);
        body["tools"][0]["cache_control"] = mark();
        let rounds = [
            (vec![search("toolu_search01", "select:crm__find_customer")], "tool_use"),
            (vec![call("toolu_find0001", "crm__find_customer", json!({"q": "ada"}))], "tool_use"),
        ];
        let client = play(&mut talk, &body, &rounds);
        assert_eq!(client["content"], json!([rounds[1].0[0]]));
        assert_eq!([marks(&talk.sent[0]), marks(&talk.sent[1])], [1, 1], "{mode}");
        let (first, second) = (&talk.sent[0]["tools"], &talk.sent[1]["tools"]);
        if mode == Mode::Append {
            let (first, second) = (first.as_array().unwrap(), second.as_array().unwrap());
            assert_eq!(second[..first.len()], first[..], "it stands last");
            assert_eq!(second[first.len()..], forty()[..1]);
        }
    }
}
