//! Tests of what the two search tools find under `opencode`.

use serde_json::{Value, json};

use super::{Setup, coding, opencode, tool};
use crate::behaviours::{replies, search_replies};

/// Returns the tool names in a reply in Markdown.
fn headings(answer: &str) -> Vec<&str> {
    let headings = answer.lines().filter_map(|line| line.strip_prefix("### `"));
    headings.map(|line| line.trim_end_matches('`')).collect()
}

/// Searches with each pattern, and returns the replies.
fn matches(patterns: &[&str]) -> Vec<String> {
    let calls: Vec<_> =
        patterns.iter().map(|pattern| ("tool_search_regex", json!({"pattern": pattern}))).collect();
    replies(&opencode(), &coding(), &calls)
}

#[test]
fn an_answer_has_full_descriptions_and_parameter_schemas() {
    let expected = "### `ast_grep_search`\n\n> Match the syntax tree of code.\n\n```json\n\
         {\"type\":\"object\",\"properties\":{\"rule\":{\"type\":\"string\"}},\"required\":[\"rule\"]}\n\
         ```\n\n";
    assert_eq!(search_replies(&opencode(), &coding(), &["syntax"]), [expected]);
}

#[test]
fn words_find_the_tools_that_have_them() {
    let queries = ["file", "search code", "github issues", "git"];
    let expected: [&[&str]; 4] = [
        &["read", "write", "edit", "glob"],
        &["grep", "ast_grep_search"],
        &["github_list_issues", "github_create_issue"],
        &[],
    ];
    for (answer, expected) in search_replies(&opencode(), &coding(), &queries).iter().zip(expected)
    {
        assert_eq!(headings(answer), expected, "part of a word is no match");
    }
}

#[test]
fn a_bare_text_is_a_query() {
    let calls = [("tool_search", json!("file operations"))];
    let answers = replies(&opencode(), &coding(), &calls);
    assert_eq!(headings(&answers[0]), ["read", "write", "edit", "glob"]);
}

#[test]
fn one_word_of_a_vague_query_is_enough() {
    let answers = search_replies(&opencode(), &coding(), &["report a bug"]);
    let found = headings(&answers[0]);
    assert_eq!(
        (found[0], found.len()),
        ("github_create_issue", 5),
        "tools match by the word `a` alone"
    );
}

#[test]
fn a_pattern_finds_names_and_descriptions_in_any_case() {
    let expected: [&[&str]; 4] = [
        &["github_create_issue", "github_list_issues"],
        &["lsp_hover", "lsp_rename"],
        &["jenkins_start", "ci_status"],
        &[],
    ];
    let answers = matches(&["GitHub.*Issue", "^lsp_", "jenkins|build", "^tool_search"]);
    for (answer, expected) in answers.iter().zip(expected) {
        assert_eq!(headings(answer), expected);
    }
}

#[test]
fn the_search_tools_never_find_themselves() {
    let answers = search_replies(&opencode(), &coding(), &["tool_search"]);
    assert!(!headings(&answers[0]).contains(&"tool_search"), "{}", answers[0]);
}

#[test]
fn five_tools_are_returned_at_most_unless_the_limit_is_raised() {
    let tools: Vec<Value> =
        (0..12).map(|i| tool(&format!("note_{i:02}"), "Note it.", &[], 0)).collect();
    let calls = [
        ("tool_search", json!({"query": "note"})),
        ("tool_search", json!({"query": "note", "limit": 9})),
        ("tool_search_regex", json!({"pattern": "note"})),
        ("tool_search_regex", json!({"pattern": "note", "limit": 9})),
    ];
    for answer in replies(&opencode(), &tools, &calls) {
        assert_eq!(headings(&answer).len(), 5);
    }
    let raised = r#"{"plugin": [["opencode-tool-search", {"searchLimit": 10}]]}"#;
    let answers = replies(&Setup::file("opencode.json", raised), &tools, &calls[..1]);
    assert_eq!(headings(&answers[0]).len(), 10);
}

/// A search by words covers only names and descriptions. `k1` decides how much the repetition of one query word weighs
/// in comparison with a match of several query words.
#[test]
fn words_rank_by_bm25_and_a_higher_k1_lets_repeated_words_count_for_more() {
    let tools = [
        tool("a", "log log log log log log", &["fax"], 0),
        tool("b", "log disk", &[], 0),
        tool("c", "tape disk", &[], 0),
        tool("d", "tape", &[], 0),
    ];
    let order = |settings: &str| {
        let answers =
            search_replies(&Setup::preset("opencode", settings), &tools, &["log disk", "fax"]);
        assert_eq!(headings(&answers[1]).len(), 0, "parameters are not searched");
        headings(&answers[0]).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(order(""), ["b", "a", "c"]);
    assert_eq!(
        order("[rank.bm25]\nk1 = 2.0\nb = 0.0"),
        ["a", "b", "c"],
        "repeated words count for more"
    );
}
