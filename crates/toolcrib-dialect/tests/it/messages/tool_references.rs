//! Tests of Toolcrib's own search in the mode in which its results are tool references. Only what differs from the
//! bridge is tested.

use serde_json::{Value, json};
use toolcrib_core::Preset;
use toolcrib_dialect::Mode;
use toolcrib_dialect::mode::ReferenceKind;

use super::{
    BOTH, TARGET, answer, assert_extends_previous, assert_valid_history, call, forty,
    new_conversation, play, request, result, search, text, thinking, user,
};

const MODE: Mode = Mode::Reference(ReferenceKind::ToolReference);

fn references(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| json!({"type": "tool_reference", "tool_name": name})).collect()
}

fn find(id: &str) -> Value {
    call(id, "crm__find_customer", json!({"q": "ada"}))
}

/// Plays a search by name and then a call to the tool that was found. Returns the conversation and the client's
/// history, including the client's result for the call.
fn found(stream: bool) -> (crate::conversation::TestConversation, Value) {
    let mut conversation = new_conversation(MODE);
    let client = play(
        &mut conversation,
        &request(&json!([user("Find Ada.")]), stream),
        &[
            (vec![search("toolu_search01", "select:crm__find_customer")], "tool_use"),
            (vec![text("Now."), find("toolu_find0001")], "tool_use"),
        ],
    );
    assert_eq!(client["content"], json!([text("Now."), find("toolu_find0001")]));
    let messages = json!([user("Find Ada."),
        {"role": "assistant", "content": client["content"]},
        {"role": "user", "content": [result("toolu_find0001", "Ada, 7")]}]);
    (conversation, messages)
}

#[test]
fn deferred_tools_keep_their_position_and_every_field() {
    let mut conversation = new_conversation(MODE);
    let mut body = request(&json!([user("hi")]), false);
    body["tools"][1]["strict"] = json!(true);
    body["tools"][1]["input_examples"] = json!([{"id": 7}]);
    body["tools"][39]["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
    play(&mut conversation, &body, &[(vec![text("Hello.")], "end_turn")]);
    let sent = conversation.sent[0]["tools"].as_array().unwrap();
    assert_eq!(sent.len(), 41);
    for (original, deferred) in body["tools"].as_array().unwrap().iter().zip(sent) {
        let mut expected = original.clone();
        expected.as_object_mut().unwrap().remove("cache_control");
        expected["defer_loading"] = json!(true);
        assert_eq!(*deferred, expected);
    }
    assert_eq!(sent[40]["name"], "tool_search");
    assert_eq!(sent[40]["cache_control"], json!({"type": "ephemeral", "ttl": "1h"}));
    assert_eq!(sent[40]["defer_loading"], Value::Null);
}

#[test]
fn a_found_tool_is_referenced_and_called_by_its_name() {
    for stream in BOTH {
        let (mut conversation, messages) = found(stream);
        let hidden = &conversation.sent[1]["messages"];
        assert_eq!(
            hidden[2],
            json!({"role": "user", "content": [{"type": "tool_result",
                "tool_use_id": "toolu_search01", "content": references(&["crm__find_customer"])}]})
        );
        play(
            &mut conversation,
            &request(&messages, stream),
            &[(vec![find("toolu_find0002")], "tool_use")],
        );
        (1..3).for_each(|n| assert_extends_previous(&conversation, n));
        assert_valid_history(&conversation.sent[2]["messages"]);
    }
}

#[test]
fn a_turn_without_hidden_rounds_is_forwarded_byte_for_byte() {
    for stream in BOTH {
        let (mut conversation, messages) = found(stream);
        let upstream = answer(3, &(vec![find("toolu_find0002")], "tool_use"), stream);
        let body = request(&messages, stream);
        let got = conversation.send(TARGET, &body, std::slice::from_ref(&upstream));
        assert_eq!(got.text, upstream);
        assert!(got.done.records.is_empty());
    }
}

#[test]
fn a_search_without_matches_is_answered_with_text() {
    for stream in BOTH {
        let mut conversation = new_conversation(MODE);
        conversation.settings = Preset::Words.settings();
        let rounds = [
            (vec![search("toolu_search01", "zzyzx qwrtplk")], "tool_use"),
            (vec![text("I cannot.")], "end_turn"),
        ];
        play(&mut conversation, &request(&json!([user("Fly.")]), stream), &rounds);
        let result = &conversation.sent[1]["messages"][2]["content"][0]["content"];
        assert!(result.as_str().is_some_and(|result| !result.is_empty()), "{result}");
    }
}

#[test]
fn one_result_loads_five_tools_and_says_so() {
    let mut conversation = new_conversation(MODE);
    let names: Vec<String> =
        forty().iter().take(7).map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    let rounds = [
        (vec![search("toolu_search01", &format!("select:{}", names.join(",")))], "tool_use"),
        (vec![search("toolu_search02", &format!("select:{}", names[6]))], "tool_use"),
        (vec![text("Good.")], "end_turn"),
    ];
    play(&mut conversation, &request(&json!([user("All.")]), true), &rounds);
    let first = conversation.sent[1]["messages"][2]["content"][0]["content"].as_array().unwrap();
    let known: Vec<&str> = names[..5].iter().map(String::as_str).collect();
    assert_eq!(first[..5], references(&known));
    assert_eq!(first[5]["type"], "text");
    assert!(first[5].to_string().contains("At most 5 tools"));
    assert_eq!(first.len(), 6);
    let second = &conversation.sent[2]["messages"][4]["content"][0]["content"];
    assert_eq!(
        *second,
        json!(references(&[&names[6]])),
        "a tool that did not fit does not count as loaded"
    );
}

#[test]
fn a_tool_called_without_a_search_is_forwarded_or_explained() {
    for stream in BOTH {
        let mut conversation = new_conversation(MODE);
        let bad = call("toolu_upd00001", "crm__update_customer", json!({"id": "seven"}));
        let good = call("toolu_upd00002", "crm__update_customer", json!({"id": 7}));
        let body = request(&json!([user("Change Ada.")]), stream);
        let rounds = [(vec![bad], "tool_use"), (vec![good.clone()], "tool_use")];
        let client = play(&mut conversation, &body, &rounds);
        assert_eq!(client["content"], json!([good]));
        assert_eq!(conversation.sent[1]["messages"][2]["content"][0]["is_error"], true);
        assert_valid_history(&conversation.sent[1]["messages"]);
    }
}

#[test]
fn a_reference_without_a_record_is_added_once_at_the_end() {
    for stream in BOTH {
        let (mut conversation, mut messages) = found(stream);
        conversation.records.clear();
        let body = request(&messages, stream);
        let client = play(&mut conversation, &body, &[(vec![text("Found.")], "end_turn")]);
        assert_eq!(client["content"], json!([text("Found.")]));
        let sent = conversation.sent[2]["messages"].as_array().unwrap();
        assert_valid_history(&conversation.sent[2]["messages"]);
        assert_eq!(sent[..3], messages.as_array().unwrap()[..], "the old entries are unchanged");
        let id = sent[3]["content"][0]["id"].as_str().unwrap().to_owned();
        assert_eq!(
            sent[3..],
            [
                json!({"role": "assistant", "content": [search(&id, "select:crm__find_customer")]}),
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id,
                    "content": references(&["crm__find_customer"])}]})
            ]
        );
        assert_eq!(conversation.sent[2]["tools"], conversation.sent[1]["tools"]);

        // From here on, the history that is sent upstream only grows.
        let list = messages.as_array_mut().unwrap();
        list.push(json!({"role": "assistant", "content": client["content"]}));
        list.push(user("Once more."));
        let call = find("toolu_find0002");
        let client =
            play(&mut conversation, &request(&messages, stream), &[(vec![call], "tool_use")]);
        assert_eq!(client["content"], json!([find("toolu_find0002")]));
        assert_extends_previous(&conversation, 3);
        assert_eq!(
            conversation.sent[3]["messages"].as_array().unwrap().len(),
            7,
            "the reference is not added twice"
        );
    }
}

#[test]
fn with_thinking_a_tool_without_a_record_is_sent_in_full() {
    let (mut conversation, messages) = found(false);
    conversation.records.clear();
    let mut body = request(&messages, false);
    body["thinking"] = json!({"type": "enabled", "budget_tokens": 2000});
    let client = play(
        &mut conversation,
        &body,
        &[(vec![thinking("s"), find("toolu_find0002")], "tool_use")],
    );
    assert_eq!(client["content"][1], find("toolu_find0002"));
    assert_eq!(conversation.sent[2]["messages"], messages);
    assert_eq!(conversation.sent[2]["tools"][0], forty()[0]);
    assert_eq!(conversation.sent[2]["tools"][1]["defer_loading"], true);
}

#[test]
fn after_a_prefilled_assistant_message_a_tool_without_a_record_is_sent_in_full() {
    let (mut conversation, messages) = found(false);
    conversation.records.clear();
    let mut begun = messages.clone();
    let prefill = json!({"role": "assistant", "content": "The customer is"});
    begun.as_array_mut().unwrap().push(prefill);
    play(&mut conversation, &request(&begun, false), &[(vec![text(" Ada.")], "end_turn")]);
    assert_eq!(conversation.sent[2]["messages"], begun);
    assert_eq!(conversation.sent[2]["tools"][0], forty()[0]);
}

#[test]
fn references_to_removed_tools_are_dropped() {
    let mut conversation = new_conversation(MODE);
    let tools = forty();
    let by_name = |id: &str, at: usize| {
        search(id, &format!("select:{}", tools[at]["name"].as_str().unwrap()))
    };
    let both = search("toolu_search01", "select:crm__find_customer,crm__update_customer");
    let client = play(
        &mut conversation,
        &request(&json!([user("Find Ada.")]), true),
        &[
            (vec![both, by_name("toolu_search02", 2)], "tool_use"),
            (vec![by_name("toolu_search03", 3), find("toolu_find0001")], "tool_use"),
        ],
    );
    let messages = json!([user("Find Ada."),
        {"role": "assistant", "content": client["content"]},
        {"role": "user", "content": [result("toolu_find0001", "Ada, 7")]}]);
    let mut body = request(&messages, true);
    body["tools"].as_array_mut().unwrap().drain(1..4);
    play(&mut conversation, &body, &[(vec![text("Found.")], "end_turn")]);
    let sent = &conversation.sent[2]["messages"];
    assert_valid_history(sent);
    let gone = "The tools that were found are no longer available.";
    assert_eq!(sent[2]["content"][0]["content"], json!(references(&["crm__find_customer"])));
    assert_eq!(sent[2]["content"][1]["content"], json!([text(gone)]));
    assert_eq!(sent[4]["content"][0], result("toolu_search03", gone));
}

#[test]
fn a_tool_called_without_a_search_does_not_change_the_prefix() {
    let hosted = Mode::Hosted(toolcrib_dialect::mode::HostedSearch::Bm25);
    for (mode, thinks, stream) in
        [MODE, hosted].into_iter().flat_map(|mode| [(mode, false, false), (mode, true, true)])
    {
        let body = |messages: &Value| {
            let mut body = request(messages, stream);
            if thinks {
                body["thinking"] = json!({"type": "adaptive"});
            }
            body
        };
        let mut conversation = new_conversation(mode);
        let first = json!([user("Find Ada.")]);
        let blind =
            play(&mut conversation, &body(&first), &[(vec![find("toolu_find0001")], "tool_use")]);
        assert_eq!(blind["content"], json!([find("toolu_find0001")]));
        let messages = json!([user("Find Ada."),
            {"role": "assistant", "content": blind["content"]},
            {"role": "user", "content": [result("toolu_find0001", "Ada, 7")]}]);
        play(&mut conversation, &body(&messages), &[(vec![text("Found.")], "end_turn")]);
        // In reference mode without thinking, a search that finds the tool is appended to the history, so that the tool
        // is loaded. Otherwise, nothing is appended. `tools` never changes.
        let sent = conversation.sent[1]["messages"].as_array().unwrap();
        assert_eq!(sent[..3], messages.as_array().unwrap()[..], "{mode:?} {thinks}");
        let shown = mode == MODE && !thinks;
        assert_eq!(sent.len(), if shown { 5 } else { 3 }, "{mode:?} {thinks}");
        assert_eq!(
            conversation.sent[1]["tools"], conversation.sent[0]["tools"],
            "{mode:?} {thinks}"
        );
    }
}
