//! Tests of searching with the `claude-code` preset.

use serde_json::{Value, json};
use toolcrib_core::call::RefusalCode;
use toolcrib_core::reply::MissingTool;

use super::{answered, array, crib, mcp, session, show};
use crate::support::{Chat, names, strings};

#[test]
fn the_search_tool_takes_a_query_and_max_results() {
    let shown = show(&mut Chat::new(&crib(&session())));
    let schema: Value = serde_json::from_str(shown.own_tools[0].schema).unwrap();
    let keys: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["query", "max_results"]);
    assert_eq!(schema["required"], json!(["query"]));
}

#[test]
fn five_results_unless_max_results_says_otherwise_and_twenty_at_most() {
    let tools: Vec<Value> =
        (0..30).map(|i| mcp("acme", &format!("job{i}"), "Runs a job.", &json!({}))).collect();
    let crib = crib(&tools);
    let found = |input: Value| answered(&mut Chat::new(&crib), &input).hits.len();
    assert_eq!(found(json!({"query": "job"})), 5);
    assert_eq!(found(json!({"query": "job", "max_results": 8})), 8);
    assert_eq!(found(json!({"query": "job", "max_results": 99})), 20);
}

#[test]
fn a_search_answers_with_schemas_in_a_functions_block() {
    let crib = crib(&session());
    let reply = Chat::new(&crib).search("select:mcp__slack__send_message");
    let function = json!({
        "description": "Post to a channel.",
        "name": "mcp__slack__send_message",
        "parameters": strings(&["channel", "text"], 2)
    });
    assert_eq!(
        reply.for_model(),
        format!("<functions>\n<function>{function}</function>\n</functions>\n")
    );
}

#[test]
fn keywords_find_by_what_a_tool_does() {
    let crib = crib(&session());
    let reply = Chat::new(&crib).search("something that sends slack messages");
    assert_eq!(names(&reply)[0], "mcp__slack__send_message");
    assert!(reply.hits[0].input_schema.is_some(), "a keyword search loads as well");
}

#[test]
fn select_loads_by_exact_name_and_several_in_one_call() {
    let crib = crib(&session());
    let mut chat = Chat::new(&crib);
    let wanted = ["mcp__github__create_pull_request", "WebFetch", "Monitor"];
    let reply = chat.search(&format!("select:{}", wanted.join(",")));
    assert_eq!(names(&reply), wanted);
    assert!(reply.hits.iter().all(|hit| hit.input_schema.is_some()));
    assert_eq!(array(&show(&mut chat))[1..], wanted, "all three are callable now");
}

#[test]
fn select_understands_a_name_without_its_prefix() {
    let crib = crib(&session());
    let reply = Chat::new(&crib).search("select:create_pull_request,get_file_contents");
    assert_eq!(
        names(&reply),
        ["mcp__github__create_pull_request", "mcp__github__get_file_contents"]
    );
}

#[test]
fn select_reports_missing_names_and_loads_the_others() {
    let crib = crib(&session());
    let reply = Chat::new(&crib).search("select:Monitor,WebFech");
    assert_eq!(names(&reply), ["Monitor"]);
    let missing = MissingTool { name: "WebFech".into(), nearest: vec!["WebFetch".into()] };
    assert_eq!(reply.missing, [missing]);
}

#[test]
fn a_plus_requires_a_word_in_the_name() {
    let crib = crib(&session());
    let with = names(&Chat::new(&crib).search("slack")).len();
    assert_eq!(with, 2, "another tool mentions Slack in its description");
    let reply = Chat::new(&crib).search("+slack send");
    assert_eq!(names(&reply), ["mcp__slack__send_message"]);
    assert!(Chat::new(&crib).search("+channel send").hits.is_empty());
}

#[test]
fn a_pasted_name_finds_that_tool_alone() {
    let crib = crib(&session());
    let reply = Chat::new(&crib).search("mcp__github__search_code");
    assert_eq!(names(&reply), ["mcp__github__search_code"]);
}

#[test]
fn a_call_before_the_schema_was_fetched_fails_with_the_schema() {
    let crib = crib(&session());
    let mut chat = Chat::new(&crib);
    let refusal = chat.refused("WebFetch", r#"{"page":"https://example.com"}"#);
    assert_eq!(refusal.code, RefusalCode::InvalidArguments);
    let message = r#"InputValidationError: invalid arguments: "url" is a required property"#;
    assert_eq!(refusal.message, message);
    assert!(refusal.text().contains("InputValidationError"));
    assert_eq!(refusal.input_schema.unwrap().get(), strings(&["url"], 1).to_string());
    assert_eq!(array(&show(&mut chat)), ["tool_search", "WebFetch"], "the refused tool is loaded");
}

#[test]
fn a_valid_blind_call_is_run() {
    let crib = crib(&session());
    let input = r#"{"url":"https://example.com"}"#;
    let ran = Chat::new(&crib).runs("WebFetch", input);
    assert_eq!(ran, ("WebFetch".to_owned(), input.to_owned()));
}

#[test]
fn a_found_tool_is_called_by_its_own_name() {
    let crib = crib(&session());
    let mut chat = Chat::new(&crib);
    chat.search("select:mcp__slack__send_message");
    let input = r##"{"channel":"#ops","text":"Deployed."}"##;
    let ran = chat.runs("mcp__slack__send_message", input);
    assert_eq!(ran, ("mcp__slack__send_message".to_owned(), input.to_owned()));
}
