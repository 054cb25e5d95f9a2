//! Tests of input that is valid but extreme.

use serde_json::{Value, json};
use toolcrib_dialect::DeferralEmulation;

use super::{
    EventBuilder, TARGET, answer, bridge, call, message, new_conversation, read_as_client, request,
    response, search, user,
};

#[test]
fn items_that_end_in_reverse_need_no_extra_stack() {
    let count = 1000;
    let items: Vec<Value> =
        (0..count).map(|at| search(&format!("call_search_{at}"), "customer")).collect();
    let mut events = EventBuilder::default();
    let begun = response(1, "in_progress", &[], &Value::Null);
    events.add("response.created", &json!({"response": begun}));
    for (at, item) in items.iter().enumerate() {
        events.add("response.output_item.added", &json!({"output_index": at, "item": item}));
    }
    for (at, item) in items.iter().enumerate().rev() {
        events.add("response.output_item.done", &json!({"output_index": at, "item": item}));
    }
    let whole = response(1, "incomplete", &[], &Value::Null);
    events.add("response.incomplete", &json!({"response": whole}));
    let got =
        new_conversation().send(TARGET, &request(&json!([user("Hi.")]), true), &[events.text]);
    assert_eq!(read_as_client(&got, true).output, [] as [Value; 0]);
    assert_eq!(got.done.summary.searches, count);
}

#[test]
fn an_item_on_several_lines_is_written_correctly() {
    let spread = message(1, "Let me look.").to_string().replacen(',', ",\n", 2);
    let rounds = [
        answer(1, &[message(1, "Let me look."), search("call_search00001", "customer")], true)
            .replace(&message(1, "Let me look.").to_string(), &spread.replace('\n', "\ndata: ")),
        answer(2, &[message(2, "Nobody.")], true),
    ];
    let got = new_conversation().send(TARGET, &request(&json!([user("Find Ada.")]), true), &rounds);
    let last = got.text.rsplit("event: ").next().unwrap();
    assert!(
        last.lines().skip(1).all(|line| line.is_empty() || line.starts_with("data: ")),
        "{last}"
    );
    let data: Vec<&str> = last.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    let response_with_status: Value = serde_json::from_str(&data.join("\n")).unwrap();
    let output = [message(1, "Let me look."), message(2, "Nobody.")];
    assert_eq!(response_with_status["response"]["output"], json!(output));
}

#[test]
fn deeply_nested_choices_are_left_unchanged() {
    let deep = 100_000;
    let choice = r#"{"tools":["#.repeat(deep) + &"]}".repeat(deep);
    let tools = r#"[{"type":"tool_search"}]"#;
    let text = format!(r#"{{"model":"m","input":"hi","tools":{tools},"tool_choice":{choice}}}"#);
    assert!(DeferralEmulation::read(&text).unwrap().request().contains(&choice));
}

#[test]
fn items_with_the_same_index_are_distinguished() {
    let found = bridge("call_find0000001", "crm__find_customer", &json!({"q": "ada"}));
    let items = [message(1, "Let me look."), found];
    let mut events = EventBuilder::default();
    let begun = response(1, "in_progress", &[], &Value::Null);
    events.add("response.created", &json!({"response": begun}));
    for item in &items {
        events.add("response.output_item.added", &json!({"output_index": 0, "item": item}));
        events.add("response.output_item.done", &json!({"output_index": 0, "item": item}));
    }
    let whole = response(1, "completed", &items, &Value::Null);
    events.add("response.completed", &json!({"response": whole}));
    let got = new_conversation().send(
        TARGET,
        &request(&json!([user("Find Ada.")]), true),
        &[events.text],
    );
    let called = call("call_find0000001", "crm__find_customer", r#"{"q":"ada"}"#);
    assert_eq!(read_as_client(&got, true).output, [message(1, "Let me look."), called]);
}

#[test]
fn a_search_that_only_the_last_event_contains_stays_hidden() {
    let mut events = EventBuilder::default();
    let begun = response(1, "in_progress", &[], &Value::Null);
    events.add("response.created", &json!({"response": begun}));
    events.item(0, &message(1, "Nobody."));
    let whole = response(1, "completed", &[search("call_search00001", "customer")], &Value::Null);
    events.add("response.completed", &json!({"response": whole}));
    let got = new_conversation().send(
        TARGET,
        &request(&json!([user("Find Ada.")]), true),
        &[events.text],
    );
    assert_eq!(read_as_client(&got, true).output, [message(1, "Nobody.")]);
}
