//! Tests of the cache breakpoints that a client sets.

use serde_json::{Value, json};
use toolcrib_dialect::Mode;
use toolcrib_dialect::mode::ReferenceKind;

use super::{call, forty, new_conversation, play, request, result, search, text, thinking, user};

const MODES: [Mode; 2] = [Mode::Bridge, Mode::Reference(ReferenceKind::ToolReference)];

fn breakpoint() -> Value {
    json!({"type": "ephemeral"})
}

fn breakpoints(value: &Value) -> usize {
    match value {
        Value::Object(map) => {
            usize::from(map.contains_key("cache_control"))
                + map.values().map(breakpoints).sum::<usize>()
        }
        Value::Array(list) => list.iter().map(breakpoints).sum(),
        _ => 0,
    }
}

#[test]
fn a_breakpoint_on_a_deferred_tool_moves_to_the_last_loaded_tool() {
    for mode in MODES {
        let mut conversation = new_conversation(mode);
        let mut body = request(&json!([user("hi")]), false);
        body["tools"][3]["cache_control"] = breakpoint();
        body["tools"][39]["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
        play(&mut conversation, &body, &[(vec![text("Hello.")], "end_turn")]);
        let tools = conversation.sent[0]["tools"].as_array().unwrap();
        assert_eq!(breakpoints(&conversation.sent[0]), 1);
        let last = tools.last().unwrap();
        assert_eq!(last["cache_control"], json!({"type": "ephemeral", "ttl": "1h"}));
    }
}

#[test]
fn a_breakpoint_on_a_tool_sent_in_full_stays() {
    for mode in MODES {
        let mut conversation = new_conversation(mode);
        let mut body = request(&json!([user("hi")]), false);
        body["tools"][3]["cache_control"] = breakpoint();
        let bash = json!({"type": "bash_20250124", "name": "bash", "cache_control": breakpoint()});
        body["tools"].as_array_mut().unwrap().push(bash.clone());
        play(&mut conversation, &body, &[(vec![text("Hello.")], "end_turn")]);
        assert_eq!(
            breakpoints(&conversation.sent[0]["tools"]),
            1,
            "the later breakpoint covers the earlier one"
        );
        assert!(conversation.sent[0]["tools"].as_array().unwrap().contains(&bash));
    }
}

#[test]
fn no_request_has_more_breakpoints_than_the_client_set() {
    for mode in MODES {
        let mut conversation = new_conversation(mode);
        let mut body = request(&json!([user("Find Ada.")]), true);
        body["system"] =
            json!([{"type": "text", "text": "Be brief.", "cache_control": breakpoint()}]);
        body["tools"] = forty().into();
        body["tools"][39]["cache_control"] = breakpoint();
        let rounds = [
            (vec![search("toolu_search01", "select:crm__find_customer")], "tool_use"),
            (vec![thinking("s"), text("Yes."), thinking("t")], "end_turn"),
        ];
        let client = play(&mut conversation, &body, &rounds);
        let mut content = client["content"].clone();
        content[1]["cache_control"] = breakpoint();
        let mut last = text("Go on.");
        last["cache_control"] = breakpoint();
        body["messages"] = json!([user("Find Ada."),
            {"role": "assistant", "content": content}, {"role": "user", "content": [last]}]);
        assert_eq!(breakpoints(&body), 4);
        play(&mut conversation, &body, &[(vec![text("Yes.")], "end_turn")]);
        assert_eq!(breakpoints(&conversation.sent[2]), 4);
        let kept = &conversation.sent[2]["messages"][3]["content"];
        assert_eq!(
            kept[1]["cache_control"],
            breakpoint(),
            "the breakpoint stays on the text: {kept}"
        );
    }
}

#[test]
fn a_breakpoint_on_a_sent_back_turn_moves_to_the_end_of_the_stored_turn() {
    let mut conversation = new_conversation(Mode::Bridge);
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
    let client = play(&mut conversation, &body, &rounds);
    let mut content = client["content"].clone();
    content[1]["cache_control"] = breakpoint();
    let messages = json!([user("Find Ada."), {"role": "assistant", "content": content},
        {"role": "user", "content": [result("toolu_find0001", "Ada")]}]);
    play(&mut conversation, &request(&messages, false), &[(vec![text("Yes.")], "end_turn")]);
    let mut expected = wrapped;
    expected["cache_control"] = breakpoint();
    assert_eq!(conversation.sent[2]["messages"][3]["content"], json!([expected]));
    assert_eq!(breakpoints(&conversation.sent[2]), 1);
}

#[test]
fn a_found_tool_has_no_breakpoint() {
    for mode in [Mode::Append, Mode::Reveal, Mode::Terse] {
        let mut conversation = new_conversation(mode);
        conversation.settings.activation.mode = toolcrib_core::policy::ActivationMode::On;
        let mut body = request(&json!([user("Find Ada.")]), true);
        body["tools"][0]["cache_control"] = breakpoint();
        let rounds = [
            (vec![search("toolu_search01", "select:crm__find_customer")], "tool_use"),
            (vec![call("toolu_find0001", "crm__find_customer", json!({"q": "ada"}))], "tool_use"),
        ];
        let client = play(&mut conversation, &body, &rounds);
        assert_eq!(client["content"], json!([rounds[1].0[0]]));
        assert_eq!(
            [breakpoints(&conversation.sent[0]), breakpoints(&conversation.sent[1])],
            [1, 1],
            "{mode}"
        );
        let (first, second) = (&conversation.sent[0]["tools"], &conversation.sent[1]["tools"]);
        if mode == Mode::Append {
            let (first, second) = (first.as_array().unwrap(), second.as_array().unwrap());
            assert_eq!(second[..first.len()], first[..], "the found tool is last");
            assert_eq!(second[first.len()..], forty()[..1]);
        }
    }
}
