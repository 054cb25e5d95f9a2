//! Tests of search under `claude-code`: which queries it accepts, and what it finds and loads.

use serde_json::{Value, json};

use super::super::{Setup, numbered, plain};
use super::{session, slack, with};

#[test]
fn the_search_tool_takes_a_query_and_max_results() {
    let schema = session().listed("tool_search")["inputSchema"].take();
    let mut keys: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    keys.sort_unstable();
    assert_eq!(keys, ["max_results", "query"]);
    assert_eq!(schema["required"], json!(["query"]));
}

#[test]
fn five_results_unless_max_results_says_otherwise_and_twenty_at_most() {
    let tools = numbered(30, "job", "Runs a job.");
    let mut session = Setup::preset("claude-code", &[("acme", &tools)]).start();
    let mut found = |arguments: Value| session.found_with("tool_search", &arguments).len();
    assert_eq!(found(json!({"query": "job"})), 5);
    assert_eq!(found(json!({"query": "job", "max_results": 8})), 8);
    assert_eq!(found(json!({"query": "job", "max_results": 99})), 20);
}

#[test]
fn a_search_answers_with_schemas_in_a_functions_block_as_often_as_it_is_asked() {
    let mut session = session();
    let query = json!({"query": "select:slack__send_message"});
    let answer = session.text("tool_search", &query);
    let function = answer.strip_prefix("<functions>\n<function>").unwrap();
    let function = function.strip_suffix("</function>\n</functions>\n").unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(function).unwrap(),
        json!({
            "description": "Post to a channel.",
            "name": "slack__send_message",
            "parameters": slack()[0]["inputSchema"],
        })
    );
    assert_eq!(session.text("tool_search", &query), answer, "a repeated query has the same answer");
}

#[test]
fn keywords_find_by_what_a_tool_does_and_load_it() {
    let mut session = session();
    let found = session.found("something that sends slack messages");
    assert_eq!(found[0], "slack__send_message");
    assert_eq!(session.names()[1], "slack__send_message");
    session.runs("slack__send_message", &json!({"channel": "#ops", "text": "Deployed."}));
}

#[test]
fn select_loads_several_in_one_call_by_name_with_or_without_the_prefix() {
    let mut session = session();
    let wanted =
        ["github__create_pull_request", "slack__send_message", "figma__search_design_system"];
    assert_eq!(session.found(&format!("select:{}", wanted.join(","))), wanted);
    assert_eq!(session.names()[1..], wanted, "all three are callable now");
    let bare = session.found("select:create_pull_request,get_file_contents");
    assert_eq!(bare, ["github__create_pull_request", "github__get_file_contents"]);
}

#[test]
fn select_says_which_names_are_not_there_and_loads_the_others() {
    let mut session = session();
    let answer = session
        .text("tool_search", &json!({"query": "select:slack__send_message,github__serch_code"}));
    assert_eq!(super::super::names_in(&answer), ["slack__send_message"]);
    let missing = r#""missing":[{"name":"github__serch_code","nearest":["github__search_code""#;
    assert!(answer.contains(missing), "{answer}");
}

#[test]
fn a_plus_asks_for_a_word_in_the_name_and_a_pasted_name_finds_that_tool_alone() {
    let mut session = session();
    assert_eq!(session.found("slack").len(), 2, "another tool mentions Slack in its description");
    assert_eq!(session.found("+slack send"), ["slack__send_message"]);
    assert_eq!(session.found("+channel send"), [""; 0]);
    assert_eq!(session.found("github__search_code"), ["github__search_code"]);
}

#[test]
fn a_providers_own_search_is_one_more_tool_to_be_found() {
    let mut session = session();
    assert_eq!(session.found("search code")[0], "github__search_code");
    session.runs("github__search_code", &json!({"query": "fn main"}));
}

#[test]
fn a_plain_name_is_found_and_a_clever_one_is_not() {
    let tools = plain(&[("cpr", ""), ("create_pull_request", "")]);
    let mut session = Setup::preset("claude-code", &[("acme", &tools)]).start();
    assert_eq!(session.found("open a pull request"), ["acme__create_pull_request"]);
}

#[test]
fn patterns_are_offered_where_they_are_wanted() {
    let mut session = with("[search]\nregex = true\n");
    assert_eq!(session.names(), ["tool_search", "tool_search_regex"]);
    let found = session.found_with("tool_search_regex", &json!({"pattern": "search_\\w+$"}));
    assert_eq!(found, ["figma__search_design_system", "github__search_code"]);
}
