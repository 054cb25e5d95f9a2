//! Tests of calls. They are unwrapped and validated, and then run or refused. A refusal contains what the model needs
//! to correct the call.

use serde_json::{Value, json};
use toolcrib_core::call::{ArgumentFault, RefusalCode};
use toolcrib_core::{CallOutcome, Catalog, Crib, Settings};

use crate::support::{Chat, crib, crib_with, office, strings, tool};

fn ran(name: &str, arguments: &str) -> (String, String) {
    (name.to_owned(), arguments.to_owned())
}

#[test]
fn the_bridge_unwraps_to_the_real_tool_in_any_spelling() {
    let crib = crib(&office());
    let mut chat = Chat::new(&crib);
    for name in
        ["mail__send", "mail.send", "mail/send", "MAIL__SEND", "send", "`mail__send`", "mail-send"]
    {
        let input = json!({"name": name, "arguments": {"to": "a", "subject": "b"}}).to_string();
        assert_eq!(
            chat.runs("tool_call", &input),
            ran("mail__send", r#"{"to":"a","subject":"b"}"#),
            "{name}"
        );
    }
}

#[test]
fn arguments_run_as_they_were_written() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "number"}}});
    let crib = crib(&[tool("a__b", "", &schema)]);
    // The order of keys, the white space and the spelling of numbers must be preserved.
    let arguments = r#"{ "z":1.00, "n": 12345678901234567890123, "a":[ ] }"#;
    let input = format!(r#"{{"name":"a__b","arguments":{arguments}}}"#);
    assert_eq!(Chat::new(&crib).runs("tool_call", &input).1, arguments);
    assert_eq!(Chat::new(&crib).runs("a__b", arguments).1, arguments);
}

#[test]
fn wrapped_arguments_are_unwrapped_if_the_schema_fits_then() {
    let crib = crib(&office());
    let wanted = r#"{"to":"a","subject":"b"}"#;
    for input in [
        r#"{"name":"mail__send","arguments":{"to":"a","subject":"b"}}"#,
        r#"{"name":"mail__send","arguments":"{\"to\":\"a\",\"subject\":\"b\"}"}"#,
        r#"{"name":"mail__send","arguments":{"arguments":{"to":"a","subject":"b"}}}"#,
        r#"{"name":"mail__send","arguments":{"name":"mail__send","arguments":{"to":"a","subject":"b"}}}"#,
        r#"{"name":"mail__send","to":"a","subject":"b"}"#,
        r#"{"name":"mail__send","arguments":{},"to":"a","subject":"b"}"#,
        r#"{"tool_name":"mail__send","args":{"to":"a","subject":"b"}}"#,
        r#""{\"name\":\"mail__send\",\"arguments\":{\"to\":\"a\",\"subject\":\"b\"}}""#,
    ] {
        assert_eq!(Chat::new(&crib).runs("tool_call", input), ran("mail__send", wanted), "{input}");
    }
}

#[test]
fn arguments_that_belong_to_the_tool_are_not_unwrapped() {
    let schema = json!({"type": "object", "properties": {"arguments": {"type": "object"}}, "required": ["arguments"]});
    let crib = crib(&[tool("a__run", "Runs with arguments.", &schema)]);
    let input = r#"{"name":"a__run","arguments":{"arguments":{"x":1}}}"#;
    assert_eq!(Chat::new(&crib).runs("tool_call", input).1, r#"{"arguments":{"x":1}}"#);
}

#[test]
fn a_call_without_arguments_is_accepted_in_many_forms() {
    let crib = crib(&[tool("a__ping", "", &json!({"type": "object", "properties": {}}))]);
    for input in [
        r#"{"name":"a__ping"}"#,
        r#"{"name":"a__ping","arguments":""}"#,
        r#"{"name":"a__ping","arguments":null}"#,
    ] {
        assert_eq!(Chat::new(&crib).runs("tool_call", input).1, "{}", "{input}");
    }
    for input in ["", "  ", "null", "{}", "\"\""] {
        assert_eq!(Chat::new(&crib).runs("a__ping", input).1, "{}", "{input:?}");
    }
}

#[test]
fn an_invalid_call_is_refused_with_the_faults_and_once_with_the_schema() {
    let crib = crib(&office());
    let mut chat = Chat::new(&crib);
    let first = chat.refused("mail__send", r#"{"to":["a"],"subject":"b"}"#);
    assert_eq!(
        (first.code, first.tool.as_deref()),
        (RefusalCode::InvalidArguments, Some("mail__send"))
    );
    assert_eq!(
        first.faults,
        [ArgumentFault { path: "/to".into(), problem: r#"["a"] is not of type "string""#.into() }]
    );
    assert_eq!(first.input_schema.unwrap().get(), office()[5]["input_schema"].to_string());
    assert!(
        chat.conversation.ledger().has_name("mail__send"),
        "a tool whose schema was sent counts as revealed"
    );
    let second = chat.refused("mail__send", r#"{"to":"a"}"#);
    assert!(second.input_schema.is_none());
    assert_eq!(second.signature.as_deref(), Some("{to: string; subject: string; body?: string}"));
    assert_eq!(second.message, r#"invalid arguments: "subject" is a required property"#);
}

#[test]
fn a_misspelled_parameter_is_corrected_in_the_refusal() {
    let crib = crib(&office());
    let refusal = Chat::new(&crib).refused("github__create_issue", r#"{"repo":"r","titel":"t"}"#);
    assert_eq!(refusal.hint, r#""titel" should be "title""#);
}

#[test]
fn a_valid_direct_call_of_a_deferred_tool_runs() {
    let crib = crib(&office());
    assert_eq!(
        Chat::new(&crib).runs("mail__delete_message", r#"{"id":"7"}"#),
        ran("mail__delete_message", r#"{"id":"7"}"#)
    );
}

#[test]
fn repeating_the_same_mistake_changes_the_refusal() {
    let crib = crib(&office());
    let mut chat = Chat::new(&crib);
    let hints: Vec<String> = (0..4).map(|_| chat.refused("mail__send", "{}").hint).collect();
    assert_eq!(hints[1], "send arguments that fit the schema");
    assert!(hints[2].starts_with("this exact call has failed 3 times"), "{}", hints[2]);
    assert!(
        chat.refused("mail__send", "{}").input_schema.is_some(),
        "the schema is sent again after several failures"
    );
}

#[test]
fn an_unknown_and_an_out_of_scope_tool_get_the_same_answer() {
    let crib = crib(&office());
    let mut all = Chat::new(&crib);
    let mut some = Chat::within(&crib, &["mail__send", "mail__search_messages"]);
    let unknown = all.refused("nobody__knows", "{}");
    assert_eq!(
        (unknown.code, unknown.message.as_str()),
        (RefusalCode::UnknownTool, "there is no tool `nobody__knows`")
    );
    let hidden = some.refused(
        "tool_call",
        r#"{"name":"github__create_issue","arguments":{"repo":"r","title":"t"}}"#,
    );
    assert_eq!((hidden.code, hidden.nearest.len()), (RefusalCode::UnknownTool, 0));
    assert_eq!(hidden.message, "there is no tool `github__create_issue`");
    let near = some.refused("tool_describe", r#"{"name":"mail__sent"}"#);
    assert_eq!(near.nearest, ["mail__send"]);
}

#[test]
fn an_ambiguous_name_is_refused_with_the_candidates() {
    let crib = crib(&office());
    let refusal = Chat::new(&crib).refused("search_messages", r#"{"query":"x"}"#);
    assert_eq!(
        (refusal.code, refusal.nearest),
        (
            RefusalCode::AmbiguousName,
            vec!["mail__search_messages".into(), "slack__search_messages".into()]
        )
    );
    let mut mail = Chat::within(&crib, &["mail__search_messages"]);
    assert_eq!(
        mail.runs("search_messages", r#"{"query":"x"}"#).0,
        "mail__search_messages",
        "only one tool with this name is in scope"
    );
}

#[test]
fn the_bridge_does_not_call_itself() {
    let crib = crib(&office());
    for name in ["tool_call", "tool_search", "TOOL_DESCRIBE"] {
        let input = json!({"name": name, "arguments": {}}).to_string();
        let refusal = Chat::new(&crib).refused("tool_call", &input);
        assert_eq!(
            (refusal.code, refusal.hint),
            (RefusalCode::Recursion, format!("call `{name}` directly"))
        );
    }
    for input in ["{}", r#"{"arguments":{}}"#, r#"{"name":""}"#] {
        assert_eq!(
            Chat::new(&crib).refused("tool_call", input).code,
            RefusalCode::NoName,
            "{input}"
        );
    }
    for input in ["[]", "7", "{"] {
        assert_eq!(
            Chat::new(&crib).refused("tool_call", input).code,
            RefusalCode::InvalidInput,
            "{input}"
        );
    }
}

#[test]
fn describe_shows_one_schema_in_full_and_loads_it() {
    let crib = crib(&office());
    let mut chat = Chat::new(&crib);
    let CallOutcome::Answer(reply) = chat.call("tool_describe", r#"{"name":"create_issue"}"#)
    else {
        panic!()
    };
    assert_eq!(reply.loaded, ["github__create_issue"]);
    assert_eq!(
        reply.hits[0].input_schema.as_ref().unwrap().get(),
        office()[0]["input_schema"].to_string()
    );
    assert!(chat.conversation.ledger().has_name("github__create_issue"));
}

#[test]
fn search_accepts_the_input_forms_that_models_send() {
    let crib = crib(&office());
    for input in [
        r#"{"query":"select:mail__send"}"#,
        r#"{"query":["select:mail__send"]}"#,
        r#"{"queries":["select:mail__send"]}"#,
        r#"{"names":["mail__send"]}"#,
        r#""select:mail__send""#,
        r#"{"query":"select:mail__send","max_results":1,"other":true}"#,
        r#"{"arguments":{"query":"mail__send"}}"#,
    ] {
        let CallOutcome::Answer(reply) = Chat::new(&crib).call("tool_search", input) else {
            panic!("{input}")
        };
        assert_eq!(reply.loaded, ["mail__send"], "{input}");
    }
    assert_eq!(Chat::new(&crib).refused("tool_search", "[1]").code, RefusalCode::InvalidInput);
    assert_eq!(
        Chat::new(&crib).refused("tool_search_regex", "{}").code,
        RefusalCode::UnknownTool,
        "not offered"
    );
    let crib = crib_with(&office(), "[search]\nregex = true\n");
    assert_eq!(Chat::new(&crib).refused("tool_search_regex", "{}").code, RefusalCode::InvalidInput);
    let CallOutcome::Answer(reply) =
        Chat::new(&crib).call("tool_search_regex", r#"{"pattern":"^mail__(send|delete)"}"#)
    else {
        panic!()
    };
    assert_eq!(reply.loaded, ["mail__delete_message", "mail__send"]);
}

#[test]
fn with_an_unusable_schema_the_server_validates() {
    for schema in [
        json!({"type": 7}),
        json!({"$ref": "https://example.com/s.json"}),
        json!({"allOf": [{"$ref": "#"}]}),
    ] {
        let crib = crib(&[tool("a__b", "", &schema)]);
        assert_eq!(Chat::new(&crib).runs("a__b", r#"{"x":1}"#).1, r#"{"x":1}"#, "{schema}");
    }
}

#[test]
fn a_call_after_the_schema_changed_gets_the_new_schema() {
    let old = crib(&[tool("a__b", "Does.", &strings(&["x"], 1))]);
    let new = crib(&[tool("a__b", "Does.", &strings(&["y"], 1))]);
    let mut chat = Chat::new(&old);
    chat.search("select:a__b");
    let mut later = Chat { conversation: chat.conversation, ..Chat::new(&new) };
    let refusal = later.refused("a__b", r#"{"x":"1"}"#);
    assert!(refusal.input_schema.is_some_and(|schema| schema.get().contains("\"y\"")));
}

#[test]
fn an_untrusted_schema_is_validated_in_bounded_time() {
    let fan: serde_json::Map<String, Value> = (0..60)
        .map(|i| (format!("d{i}"), json!({"anyOf": [{"$ref": format!("#/$defs/d{}", i + 1)}, {"$ref": format!("#/$defs/d{}", i + 1)}]})))
        .collect();
    let schema = json!({"$ref": "#/$defs/d0", "$defs": fan});
    let crib = Crib::new(
        Catalog::from_json(json!([{"name": "a", "input_schema": schema}]).to_string().as_bytes())
            .unwrap(),
        Settings::default(),
    );
    Chat::new(&crib).runs("a", "{}");
}
