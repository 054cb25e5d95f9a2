//! Tests of the three bridge tools of the `hermes` preset, and of calls through them.

use serde_json::{Value, json};
use toolcrib_core::CallOutcome;
use toolcrib_core::call::{ArgumentFault, RefusalCode};

use super::{answered, crib, mcp, read, session, show};
use crate::support::{Chat, names, strings};

#[test]
fn the_bridge_is_three_plain_functions_and_no_code_runs() {
    let shown = show(&mut Chat::new(&crib(&session())), None);
    let parameters: Vec<(&str, Vec<String>, Value)> = shown
        .own_tools
        .iter()
        .map(|own| {
            let schema: Value = serde_json::from_str(own.schema).unwrap();
            let properties = schema["properties"].as_object().unwrap().keys().cloned();
            (own.name, properties.collect(), schema["required"].clone())
        })
        .collect();
    let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        parameters,
        [
            ("tool_search", owned(&["query", "limit"]), json!(["query"])),
            ("tool_describe", owned(&["name"]), json!(["name"])),
            ("tool_call", owned(&["name", "arguments"]), json!(["name", "arguments"])),
        ]
    );
}

#[test]
fn the_source_of_a_match_is_read_from_its_name() {
    // In an LLM request, tools have no field for their server, so only their names show which server they belong to.
    let function = |name: &str| {
        let parameters = strings(&["title"], 1);
        let function = json!({"name": name, "description": "File it.", "parameters": parameters});
        json!({"type": "function", "function": function})
    };
    let tools = ["mcp__github__open", "mcp_jira_open", "open_window", "mcp_open"].map(function);
    let crib = crib(&tools);
    let reply =
        answered(&mut Chat::new(&crib), "tool_search", &json!({"query": "open", "limit": 9}));
    let reply = read(&reply);
    let mut sources: Vec<_> = reply["matches"].as_array().unwrap().iter().collect();
    sources.sort_by_key(|found| found["name"].as_str().unwrap().to_owned());
    let source = |found: &&Value| (found["source"].clone(), found["source_name"].clone());
    assert_eq!(
        sources.iter().map(source).collect::<Vec<_>>(),
        [
            (json!("mcp"), json!("github")),
            (json!("mcp"), json!("jira")),
            (json!("plugin"), Value::Null),
            (json!("plugin"), Value::Null),
        ],
        "{reply}"
    );
}

#[test]
fn search_answers_with_matches_and_without_schemas() {
    let crib = crib(&session());
    let reply = answered(
        &mut Chat::new(&crib),
        "tool_search",
        &json!({"query": "create a github issue", "limit": 2}),
    );
    assert_eq!(
        read(&reply),
        json!({
            "query": "create a github issue",
            "total_available": 5,
            "matches": [
                {
                    "name": "mcp_github_create_issue",
                    "source": "mcp",
                    "source_name": "github",
                    "description": "Create an issue in a repository."
                },
                {
                    "name": "mcp_github_list_issues",
                    "source": "mcp",
                    "source_name": "github",
                    "description": "List what is open."
                }
            ]
        })
    );
    let plugin = read(&Chat::new(&crib).search("weather"));
    assert_eq!(
        plugin["matches"],
        json!([{"name": "weather_now", "source": "plugin", "description": "The weather at a place."}])
    );
}

#[test]
fn a_match_has_four_hundred_characters_of_its_description() {
    let long = "word ".repeat(200);
    let crib = crib(&[mcp("acme", "long", &long, &json!({}))]);
    let reply = read(&Chat::new(&crib).search("word"));
    let shown = reply["matches"][0]["description"].as_str().unwrap();
    assert!((390..=400).contains(&shown.chars().count()), "{}", shown.len());
}

#[test]
fn describe_answers_with_one_tool_and_its_parameters() {
    let crib = crib(&session());
    let input = json!({"name": "mcp_github_create_issue"});
    let reply = answered(&mut Chat::new(&crib), "tool_describe", &input);
    assert_eq!(
        read(&reply),
        json!({
            "name": "mcp_github_create_issue",
            "description": "Create an issue in a repository.",
            "parameters": strings(&["title", "body"], 1)
        })
    );
}

#[test]
fn call_is_unwrapped_so_that_hooks_and_approvals_see_the_real_tool() {
    let crib = crib(&session());
    let arguments = r#"{"title":"Crash","body":"On start."}"#;
    let input = format!(r#"{{"name":"mcp_github_create_issue","arguments":{arguments}}}"#);
    let CallOutcome::Run(call) = Chat::new(&crib).call("tool_call", &input) else { panic!() };
    assert_eq!(call.name, "mcp_github_create_issue");
    assert_eq!(call.arguments.get(), arguments);
    assert_eq!(crib.catalog().tool(call.id).server(), Some("github"));
}

#[test]
fn the_bridge_does_not_call_itself() {
    let crib = crib(&session());
    let input = r#"{"name":"tool_call","arguments":{"name":"terminal","arguments":{}}}"#;
    let refusal = Chat::new(&crib).refused("tool_call", input);
    assert_eq!(refusal.code, RefusalCode::Recursion);
    assert_eq!(refusal.message, "`tool_call` is not called through tool_call");
}

#[test]
fn a_new_tool_takes_two_more_steps_and_a_known_one_none() {
    let crib = crib(&session());
    let mut chat = Chat::new(&crib);
    let found = chat.search("plan a meeting");
    let name = names(&found)[0].to_owned();
    let described = answered(&mut chat, "tool_describe", &json!({"name": name}));
    assert!(described.hits[0].input_schema.is_some());
    let input = json!({"name": name, "arguments": {"day": "Monday"}}).to_string();
    let ran = (name, r#"{"day":"Monday"}"#.to_owned());
    assert_eq!(chat.runs("tool_call", &input), ran);
    assert_eq!(Chat::new(&crib).runs("tool_call", &input), ran, "a known tool needs no search");
}

#[test]
fn a_blind_call_without_required_arguments_is_answered_with_the_schema() {
    let crib = crib(&session());
    let input = r#"{"name":"mcp_slack_post","arguments":{"text":"Hello"}}"#;
    let refusal = Chat::new(&crib).refused("tool_call", input);
    assert_eq!(refusal.message, r#"invalid arguments: "channel" is a required property"#);
    assert_eq!(refusal.input_schema.unwrap().get(), strings(&["channel", "text"], 2).to_string());
}

#[test]
fn arguments_are_checked_against_the_whole_schema() {
    let crib = crib(&session());
    let input = r#"{"name":"mcp_slack_post","arguments":{"channel":7,"text":"Hello"}}"#;
    let refusal = Chat::new(&crib).refused("tool_call", input);
    let fault =
        ArgumentFault { path: "/channel".into(), problem: r#"7 is not of type "string""#.into() };
    assert_eq!(refusal.faults, [fault]);
}

#[test]
fn a_core_tool_through_the_bridge_is_run_and_described() {
    let crib = crib(&session());
    let mut chat = Chat::new(&crib);
    let input = r#"{"name":"terminal","arguments":{"command":"ls"}}"#;
    assert_eq!(chat.runs("tool_call", input).0, "terminal");
    let described = answered(&mut chat, "tool_describe", &json!({"name": "terminal"}));
    assert_eq!(read(&described)["parameters"], strings(&["command"], 1));
}

#[test]
fn a_deferred_tool_called_by_its_own_name_is_run() {
    let crib = crib(&session());
    let ran = Chat::new(&crib).runs("mcp_calendar_add", r#"{"day":"Monday"}"#);
    assert_eq!(ran, ("mcp_calendar_add".to_owned(), r#"{"day":"Monday"}"#.to_owned()));
}
