//! Tests of searching with the `hermes` preset.

use serde_json::{Value, json};
use toolcrib_core::call::RefusalCode;

use super::{answered, crib, mcp, read, session, show};
use crate::support::{Chat, names, strings};

#[test]
fn a_search_returns_five_tools_by_default_and_at_most_twenty() {
    let tools: Vec<Value> =
        (0..30).map(|i| mcp("acme", &format!("job{i}"), "Runs a job.", &json!({}))).collect();
    let crib = crib(&tools);
    let found = |input: Value| answered(&mut Chat::new(&crib), "tool_search", &input).hits.len();
    assert_eq!(found(json!({"query": "job"})), 5);
    assert_eq!(found(json!({"query": "job", "limit": 12})), 12);
    assert_eq!(found(json!({"query": "job", "limit": 99})), 20);
    assert_eq!(found(json!({"query": "job", "limit": 0})), 1);
    assert_eq!(
        found(json!({"query": "job", "limit": "many"})),
        5,
        "a limit that is not a number is ignored"
    );
}

#[test]
fn search_covers_names_descriptions_and_parameter_names() {
    let crib = crib(&session());
    for (query, first) in [
        ("slack", "mcp_slack_post"),
        ("meeting", "mcp_calendar_add"),
        ("attendees", "mcp_calendar_add"),
    ] {
        assert_eq!(names(&Chat::new(&crib).search(query)), [first], "{query}");
    }
}

#[test]
fn a_rarer_word_counts_more_and_a_longer_text_less() {
    let crib = crib(&[
        mcp("acme", "one", "report report report", &json!({})),
        mcp("acme", "two", "report invoice", &json!({})),
        mcp("acme", "three", "report and a good many other words beside it", &json!({})),
    ]);
    let found = Chat::new(&crib).search("invoice report");
    assert_eq!(names(&found), ["mcp_acme_two", "mcp_acme_one", "mcp_acme_three"]);
}

/// The only tool contains the word three times, so its score must be ln(1 + 0.5 / 1.5) × 3 × 2.5 / (3 + 1.5).
#[test]
fn the_score_is_bm25_with_the_usual_constants() {
    let crib = crib(&[mcp("acme", "one", "report report report", &json!({}))]);
    let score = Chat::new(&crib).search("report").hits[0].score;
    assert!((score - 0.4795).abs() < 0.0001, "{score}");
}

#[test]
fn a_tool_that_was_described_keeps_its_rank() {
    let crib = crib(&session());
    let mut chat = Chat::new(&crib);
    let before = read(&chat.search("github issue"));
    answered(&mut chat, "tool_describe", &json!({"name": "mcp_github_create_issue"}));
    assert_eq!(read(&chat.search("github issue")), before);
}

#[test]
fn a_word_that_every_tool_has_still_finds_them_all() {
    let crib = crib(&session()[3..5]);
    let found = Chat::new(&crib).search("github");
    assert_eq!(names(&found), ["mcp_github_list_issues", "mcp_github_create_issue"]);
}

#[test]
fn a_query_without_hits_is_searched_inside_the_names() {
    let crib = crib(&session());
    let found = Chat::new(&crib).search("hub_cre");
    assert_eq!(names(&found), ["mcp_github_create_issue"]);
    let parts = Chat::new(&crib).search("GITH");
    assert_eq!(names(&parts), ["mcp_github_create_issue", "mcp_github_list_issues"]);
}

#[test]
fn the_substring_search_covers_names_only_and_comes_after_the_words() {
    let crib = crib(&session());
    assert!(
        Chat::new(&crib).search("eetin").hits.is_empty(),
        "part of a word in a description does not match"
    );
    let found = Chat::new(&crib).search("post hub");
    assert_eq!(names(&found), ["mcp_slack_post"], "no substring is searched if a word matches");
}

#[test]
fn core_tools_are_not_searched() {
    let crib = crib(&session());
    let reply = Chat::new(&crib).search("terminal shell command");
    assert_eq!((reply.hits.len(), &read(&reply)["total_available"]), (0, &json!(5)));
}

#[test]
fn a_miss_names_the_sources_and_asks_for_other_words() {
    let crib = crib(&session());
    let reply = Chat::new(&crib).search("teleport");
    assert_eq!(
        read(&reply),
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
fn the_catalog_of_the_current_turn_is_searched() {
    let all = crib(&session());
    let mut chat = Chat::new(&all);
    assert_eq!(names(&chat.search("slack")), ["mcp_slack_post"]);
    let fewer = crib(&session()[..5]);
    let mut later = Chat { conversation: chat.conversation, ..Chat::new(&fewer) };
    assert!(later.search("slack").hits.is_empty());
    let input = r##"{"name":"mcp_slack_post","arguments":{"channel":"#a","text":"b"}}"##;
    let refusal = later.refused("tool_call", input);
    assert_eq!(refusal.code, RefusalCode::UnknownTool);
}

/// In a session that has only the terminal and the calendar, requests for a Slack tool must be answered as if that tool
/// did not exist.
#[test]
fn a_restricted_session_can_neither_find_nor_describe_nor_call_beyond_its_tools() {
    let crib = crib(&session());
    let granted = ["terminal", "mcp_calendar_add"];
    let mut chat = Chat::within(&crib, &granted);
    let reply = read(&chat.search("post slack message"));
    assert_eq!((&reply["matches"], &reply["total_available"]), (&json!([]), &json!(1)));
    let input = r##"{"name":"mcp_slack_post","arguments":{"channel":"#a","text":"b"}}"##;
    let described = chat.refused("tool_describe", input);
    let called = chat.refused("tool_call", input);
    assert_eq!(described.text(), called.text());
    let none = chat.refused("tool_call", &input.replace("mcp_slack_post", "mcp_skype_post"));
    assert_eq!(
        called.text().replace("slack", "skype"),
        none.text(),
        "a hidden tool is refused like an unknown one"
    );
    let shown = show(&mut chat, None);
    assert!(shown.own_tools[0].description.contains("1 tool on 1 server."));
}

#[test]
fn tools_out_of_scope_do_not_change_a_rank() {
    let crib = crib(&session());
    let granted = ["mcp_github_create_issue", "mcp_github_list_issues"];
    let scores = |mut chat: Chat<'_>| {
        let reply = chat.search("issue repository");
        reply.hits.iter().map(|hit| (hit.name.clone(), hit.score)).collect::<Vec<_>>()
    };
    let alone = self::crib(&session()[3..5]);
    assert_eq!(scores(Chat::within(&crib, &granted)), scores(Chat::new(&alone)));
}

#[test]
fn a_name_can_be_selected_and_an_empty_query_browses() {
    let crib = crib(&session());
    let selected = read(&Chat::new(&crib).search("select:mcp_calendar_add"));
    assert_eq!(selected["matches"][0]["parameters"], strings(&["day", "attendees"], 1));
    let browsed = read(&Chat::new(&crib).search(""));
    assert_eq!((&browsed["matches"], browsed.get("error")), (&json!([]), None));
    assert!(browsed["available_sources"].is_array());
}

#[test]
fn a_model_that_only_searches_is_handed_the_schema() {
    let crib = crib(&session());
    let mut chat = Chat::new(&crib);
    let replies: Vec<Value> = (0..5).map(|_| read(&chat.search("meeting"))).collect();
    assert_eq!(replies[1].get("hint"), None);
    assert_eq!(
        replies[2]["hint"],
        "3 searches without a call: \"meeting\", \"meeting\", \"meeting\". Call \
         \"mcp_calendar_add\" if it serves, or say what is missing."
    );
    assert_eq!(replies[4]["matches"][0]["parameters"], strings(&["day", "attendees"], 1));
}
