//! Tests of what a search under `hermes` finds, and in which catalog it searches.

use serde_json::{Value, json};

use super::{Proxy, call, done, on, search, session, strings, tool};
use crate::behaviours::{names, replies, search_json};

/// Checks which names each query finds.
fn finds(tools: &[Value], expected: &[(&str, &[&str])]) {
    let queries: Vec<&str> = expected.iter().map(|(query, _)| *query).collect();
    for (answer, (query, expected)) in search_json(&on(), tools, &queries).iter().zip(expected) {
        assert_eq!(names(answer, "matches"), *expected, "{query}");
    }
}

#[test]
fn a_search_returns_five_unless_the_model_asks_and_twenty_at_most() {
    let tools: Vec<Value> =
        (0..30).map(|i| tool(&format!("mcp_acme_job{i}"), "Runs a job.", &[], 0)).collect();
    let limits = [json!(null), json!(12), json!(99), json!("many")];
    let calls: Vec<_> = limits
        .iter()
        .map(|limit| ("tool_search", json!({"query": "job", "limit": limit})))
        .collect();
    let counts: Vec<usize> = replies(&on(), &tools, &calls)
        .iter()
        .map(|text| names(&serde_json::from_str(text).unwrap(), "matches").len())
        .collect();
    assert_eq!(counts, [5, 12, 20, 5]);
}

#[test]
fn search_looks_at_names_descriptions_and_names_of_parameters() {
    finds(
        &session(),
        &[
            ("slack", &["mcp_slack_post"]),
            ("meeting", &["mcp_calendar_add"]),
            ("attendees", &["mcp_calendar_add"]),
        ],
    );
}

#[test]
fn a_rarer_word_counts_more_and_a_longer_text_less() {
    let tools = [
        tool("mcp_acme_one", "report report report", &[], 0),
        tool("mcp_acme_two", "report invoice", &[], 0),
        tool("mcp_acme_three", "report and a good many other words beside it", &[], 0),
    ];
    finds(&tools, &[("invoice report", &["mcp_acme_two", "mcp_acme_one", "mcp_acme_three"])]);
}

#[test]
fn a_word_that_every_tool_has_still_finds_them_all() {
    let both: &[&str] = &["mcp_github_list_issues", "mcp_github_create_issue"];
    finds(&session()[3..5], &[("github", both)]);
}

#[test]
fn a_tool_that_was_described_keeps_its_rank() {
    let describe = call("tool_describe", &json!({"name": "mcp_github_create_issue"}));
    let answers = [search("github issue"), describe, search("github issue"), done()];
    let exchange = Proxy::start(&on(), answers).ask(&session());
    assert_eq!(exchange.reply(3), exchange.reply(1));
}

#[test]
fn a_query_without_a_hit_is_looked_for_inside_the_names_only() {
    finds(
        &session(),
        &[
            ("hub_cre", &["mcp_github_create_issue"]),
            ("GITH", &["mcp_github_create_issue", "mcp_github_list_issues"]),
            ("eetin", &[]),
            ("post hub", &["mcp_slack_post"]),
        ],
    );
}

#[test]
fn core_tools_are_not_searched_and_a_miss_names_the_sources() {
    let answers = search_json(&on(), &session(), &["terminal shell command", "teleport"]);
    assert_eq!((&answers[0]["matches"], &answers[0]["total_available"]), (&json!([]), &json!(5)));
    assert_eq!(
        answers[1],
        json!({
            "query": "teleport",
            "total_available": 5,
            "matches": [],
            "available_sources": [
                {"name": "plugin", "tools": 1},
                {"name": "calendar", "tools": 1},
                {"name": "github", "tools": 2},
                {"name": "slack", "tools": 1}
            ],
            "hint": "Nothing matches \"teleport\". Try another word for it, or fewer words."
        })
    );
}

#[test]
fn the_catalog_is_that_of_the_request_and_none_is_kept() {
    let input = json!({"name": "mcp_slack_post", "arguments": {"channel": "a", "text": "b"}});
    let answers = [search("slack"), done(), search("slack"), call("tool_call", &input), done()];
    let mut proxy = Proxy::start(&on(), answers);
    assert!(proxy.ask(&session()).reply(1).contains("mcp_slack_post"));
    let later = proxy.continue_with(&session()[..5]);
    let answer: Value = serde_json::from_str(later.reply(1)).unwrap();
    assert_eq!((&answer["matches"], later.calls()), (&json!([]), vec![]));
    assert!(later.reply(2).contains("unknown_tool"), "{}", later.reply(2));
}

#[test]
fn a_caller_can_neither_find_nor_describe_nor_call_beyond_its_tools() {
    let setup = on().header("x-toolcrib-tools: terminal, mcp_calendar_add\r\n");
    let input = |name: &str| json!({"name": name, "arguments": {"channel": "#a", "text": "b"}});
    let calls = [
        ("tool_search", json!({"query": "post slack message"})),
        ("tool_describe", input("mcp_slack_post")),
        ("tool_call", input("mcp_slack_post")),
        ("tool_call", input("mcp_skype_post")),
    ];
    let answers = replies(&setup, &session(), &calls);
    let answer: Value = serde_json::from_str(&answers[0]).unwrap();
    assert_eq!((&answer["matches"], &answer["total_available"]), (&json!([]), &json!(1)));
    assert_eq!(answers[1], answers[2]);
    assert_eq!(
        answers[2].replace("slack", "skype"),
        answers[3],
        "a hidden tool is refused like an unknown one"
    );
    let exchange = super::first_exchange(&setup, &session());
    assert!(exchange.description(0, "tool_search").contains("1 tool on 1 server."));
}

#[test]
fn tools_that_the_caller_may_not_see_do_not_move_a_rank() {
    let narrowed = on().header("x-toolcrib-tools: mcp_github_*\r\n");
    let queries = ["issue repository", "open issue title"];
    assert_eq!(
        search_json(&narrowed, &session(), &queries),
        search_json(&on(), &session()[3..5], &queries)
    );
}

/// One turn may contain at most five rounds of searching.
#[test]
fn a_model_that_only_searches_is_told_so_and_handed_the_schema() {
    let answers = (0..5).map(|_| search("meeting")).chain([done()]);
    let exchange = Proxy::start(&on(), answers).ask(&session());
    let answer = |round: usize| serde_json::from_str::<Value>(exchange.reply(round)).unwrap();
    assert_eq!(answer(2).get("hint"), None);
    let hint = "3 searches without a call: \"meeting\", \"meeting\", \"meeting\". Call \
                \"mcp_calendar_add\" if it serves, or say what is missing.";
    assert_eq!(answer(3)["hint"], hint);
    let last = exchange.reply(5);
    assert!(last.contains(&strings(&["day", "attendees"], 1).to_string()), "{last}");
}
