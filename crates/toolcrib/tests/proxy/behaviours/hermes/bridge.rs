//! Tests of the three bridge tools, and of calls through them.

use serde_json::{Value, json};

use super::{BRIDGE, Proxy, call, done, first_exchange, on, search, session, strings, tool};
use crate::behaviours::{call_with_text, replies, search_json};

#[test]
fn the_bridge_is_three_plain_functions_and_no_code_runs() {
    let exchange = first_exchange(&on(), &session());
    let parameters = BRIDGE.map(|name| {
        let schema = exchange.schema(0, name);
        let properties: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        json!([properties, schema["required"]])
    });
    let expected = [
        json!([["query", "limit"], ["query"]]),
        json!([["name"], ["name"]]),
        json!([["name", "arguments"], ["name", "arguments"]]),
    ];
    assert_eq!(parameters, expected);
}

#[test]
fn the_source_of_a_match_is_read_from_its_name() {
    let named = |name: &str| tool(name, "File it.", &["title"], 1);
    let tools = ["mcp__github__open", "mcp_jira_open", "open_window", "mcp_open"].map(named);
    let answer = &search_json(&on(), &tools, &["open"])[0];
    let mut sources: Vec<&Value> = answer["matches"].as_array().unwrap().iter().collect();
    sources.sort_by_key(|found| found["name"].to_string());
    let sources: Vec<Value> =
        sources.iter().map(|found| json!([found["source"], found["source_name"]])).collect();
    assert_eq!(
        sources,
        [
            json!(["mcp", "github"]),
            json!(["mcp", "jira"]),
            json!(["plugin", null]),
            json!(["plugin", null])
        ]
    );
}

#[test]
fn search_answers_with_matches_and_without_schemas() {
    let input = json!({"query": "create a github issue", "limit": 2});
    let answers = replies(&on(), &session(), &[("tool_search", input)]);
    let of_github = |name: &str, description: &str| json!({"name": name, "source": "mcp", "source_name": "github", "description": description});
    assert_eq!(
        serde_json::from_str::<Value>(&answers[0]).unwrap(),
        json!({
            "query": "create a github issue",
            "total_available": 5,
            "matches": [
                of_github("mcp_github_create_issue", "Create an issue in a repository."),
                of_github("mcp_github_list_issues", "List what is open."),
            ]
        })
    );
}

#[test]
fn a_match_has_four_hundred_characters_of_its_description() {
    let tools = [tool("mcp_acme_long", &"word ".repeat(200), &[], 0)];
    let answers = search_json(&on(), &tools, &["word"]);
    let shown = answers[0]["matches"][0]["description"].as_str().unwrap();
    assert!((390..=400).contains(&shown.chars().count()), "{}", shown.len());
}

#[test]
fn describe_answers_with_one_tool_and_its_parameters() {
    let input = json!({"name": "mcp_github_create_issue"});
    let answers = replies(&on(), &session(), &[("tool_describe", input)]);
    assert_eq!(
        serde_json::from_str::<Value>(&answers[0]).unwrap(),
        json!({
            "name": "mcp_github_create_issue",
            "description": "Create an issue in a repository.",
            "parameters": strings(&["title", "body"], 1)
        })
    );
}

#[test]
fn the_client_gets_the_real_tool_with_its_arguments_as_written() {
    let arguments = r#"{"title":"Crash","body":"On  start."}"#;
    let input = format!(r#"{{"name":"mcp_github_create_issue","arguments":{arguments}}}"#);
    let exchange = Proxy::start(&on(), [call_with_text("tool_call", &input)]).ask(&session());
    assert_eq!(exchange.calls(), [("mcp_github_create_issue".to_owned(), arguments.to_owned())]);
}

#[test]
fn the_bridge_does_not_call_itself() {
    let input = json!({"name": "tool_call", "arguments": {"name": "terminal", "arguments": {}}});
    let answers = replies(&on(), &session(), &[("tool_call", input)]);
    assert!(answers[0].contains("`tool_call` is not called through tool_call"), "{}", answers[0]);
}

#[test]
fn a_cold_tool_takes_two_more_steps_and_a_known_one_none() {
    let run =
        || call("tool_call", &json!({"name": "mcp_calendar_add", "arguments": {"day": "Monday"}}));
    let describe = call("tool_describe", &json!({"name": "mcp_calendar_add"}));
    let mut proxy = Proxy::start(&on(), [search("plan a meeting"), describe, run(), run()]);
    let exchange = proxy.ask(&session());
    assert_eq!((exchange.sent.len(), exchange.calls().len()), (3, 1));
    let exchange = proxy.continue_with(&session());
    assert_eq!((exchange.sent.len(), exchange.calls().len()), (1, 1));
}

#[test]
fn a_blind_call_without_what_is_required_is_answered_with_the_schema() {
    let input = json!({"name": "mcp_slack_post", "arguments": {"text": "Hello"}});
    let exchange = Proxy::start(&on(), [call("tool_call", &input), done()]).ask(&session());
    assert_eq!(exchange.calls(), []);
    for expected in
        [r#"\"channel\" is a required property"#, &strings(&["channel", "text"], 2).to_string()]
    {
        assert!(exchange.reply(1).contains(expected), "{}", exchange.reply(1));
    }
}
