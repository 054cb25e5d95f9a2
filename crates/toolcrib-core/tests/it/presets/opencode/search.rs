//! Tests of the two search tools of the `opencode` preset.

use serde_json::{Value, json};
use toolcrib_core::disclosure::{SEARCH, SEARCH_REGEX};
use toolcrib_core::{Crib, Preset, Scope, SearchRequest, WordQuery};

use super::{answer, coding, found, opencode};
use crate::presets::{configured, crib};
use crate::support::{Chat, catalog, names, strings, tool};

#[test]
fn an_answer_has_full_descriptions_and_parameter_schemas() {
    let crib = opencode();
    let mut chat = Chat::new(&crib);
    let reply = answer(chat.call(SEARCH, r#"{"query": "syntax"}"#));
    assert_eq!(
        reply.for_model(),
        "### `ast_grep_search`\n\n> Match the syntax tree of code.\n\n```json\n\
         {\"type\":\"object\",\"properties\":{\"rule\":{\"type\":\"string\"}},\"required\":[\"rule\"]}\n\
         ```\n\n"
    );
}

#[test]
fn words_find_the_tools_that_have_them() {
    let crib = opencode();
    let file = found(&crib, SEARCH, r#"{"query": "file"}"#);
    assert_eq!(file, ["read", "write", "edit", "glob"]);
    assert_eq!(found(&crib, SEARCH, r#""file operations""#), file);
    let code = found(&crib, SEARCH, r#"{"query": "search code"}"#);
    assert_eq!(code, ["grep", "ast_grep_search"]);
    let issues = found(&crib, SEARCH, r#"{"query": "github issues"}"#);
    assert_eq!(issues, ["github_list_issues", "github_create_issue"]);
}

#[test]
fn a_pattern_finds_names_and_descriptions_in_any_case() {
    let crib = opencode();
    let github = found(&crib, SEARCH_REGEX, r#"{"pattern": "GitHub.*Issue"}"#);
    assert_eq!(github, ["github_create_issue", "github_list_issues"]);
    let lsp = found(&crib, SEARCH_REGEX, r#"{"pattern": "^lsp_"}"#);
    assert_eq!(lsp, ["lsp_hover", "lsp_rename"]);
    let builds = found(&crib, SEARCH_REGEX, r#"{"pattern": "jenkins|build"}"#);
    assert_eq!(builds, ["jenkins_start", "ci_status"]);
}

#[test]
fn a_pattern_reads_parameters_too_after_names_and_descriptions() {
    let crib = opencode();
    let patterns = found(&crib, SEARCH_REGEX, r#"{"pattern": "pattern"}"#);
    assert_eq!(patterns, ["glob", "grep"], "glob by its description, grep by its parameter");
}

#[test]
fn a_bad_pattern_and_one_without_a_match_are_answered() {
    let crib = opencode();
    let mut chat = Chat::new(&crib);
    let bad = answer(chat.call(SEARCH_REGEX, r#"{"pattern": "("}"#));
    assert_eq!(
        bad.notes,
        ["The pattern cannot be used: unclosed group. \
             Use plain words with tool_search instead."]
    );
    let none = answer(chat.call(SEARCH_REGEX, r#"{"pattern": "^zzz"}"#));
    assert_eq!(none.notes, ["No tool matches the pattern."]);
}

#[test]
fn five_tools_are_returned_at_most() {
    let tools: Vec<Value> =
        (0..9).map(|i| tool(&format!("note_{i}"), "Note it.", &strings(&[], 0))).collect();
    let crib = crib(Preset::Opencode, &tools);
    for (tool, input) in [
        (SEARCH, r#"{"query": "note"}"#),
        (SEARCH, r#"{"query": "note", "limit": 9}"#),
        (SEARCH_REGEX, r#"{"pattern": "note"}"#),
        (SEARCH_REGEX, r#"{"pattern": "note", "limit": 9}"#),
    ] {
        let found = found(&crib, tool, input);
        assert_eq!(found, ["note_0", "note_1", "note_2", "note_3", "note_4"], "{tool} {input}");
    }
}

#[test]
fn the_score_is_bm25_with_k1_0_9_and_b_0_4_over_name_and_description() {
    // The two tools have four words and two words, so three on average. `mail` occurs twice, only in the first tool.
    let crib = crib(
        Preset::Opencode,
        &[
            tool("mail_send", "Sends mail.", &strings(&["mail"], 0)),
            tool("fax", "Faxes.", &strings(&["mail"], 0)),
        ],
    );
    let rarity = (1.0_f32 + (2.0 - 1.0 + 0.5) / (1.0 + 0.5)).ln();
    let (k1, b) = (0.9_f32, 0.4);
    let expected = rarity * 2.0 * (k1 + 1.0) / (2.0 + k1 * (1.0 - b + b * 4.0 / 3.0));
    let reply = Chat::new(&crib).search("Mail!");
    assert_eq!(names(&reply), ["mail_send"], "the parameters are not searched");
    assert!((reply.hits[0].score - expected).abs() < 1e-6, "{} {expected}", reply.hits[0].score);
}

#[test]
fn a_weak_match_is_returned_and_part_of_a_word_does_not_match() {
    let crib = opencode();
    let reply = Chat::new(&crib).search("report a bug");
    assert_eq!(names(&reply)[0], "github_create_issue");
    let weakest = reply.hits.last().unwrap().score / reply.hits[0].score;
    assert!(
        reply.hits.len() == 5 && weakest < 0.2,
        "a tool matches by the word `a` alone: {weakest}"
    );
    assert!(found(&crib, SEARCH, r#"{"query": "git"}"#).is_empty());
}

#[test]
fn a_higher_k1_lets_repeated_words_count_for_more() {
    let tools = catalog(&[
        tool("a", "log log log log", &json!({})),
        tool("b", "log one two three", &json!({})),
    ]);
    let lead = |config: &Value| {
        let crib = Crib::new(tools.clone(), configured(Preset::Opencode, config));
        let scope = Scope::all(crib.catalog());
        let hits = crib.rank(&WordQuery::plain("log", &crib.settings().limits), &scope, 2);
        hits[0].score / hits[1].score
    };
    let (vague, specific) = (json!({}), json!({"bm25": {"k1": 1.5}}));
    assert!(lead(&specific) > lead(&vague));
}

#[test]
fn an_empty_query_and_a_miss_list_the_names() {
    let crib = crib(Preset::Opencode, &coding()[..3]);
    let mut chat = Chat::new(&crib);
    let listed = "{\"available\":{\"names\":[\"edit\",\"read\",\"write\"]}}\n";
    assert_eq!(answer(chat.call(SEARCH, r#"{"query": ""}"#)).for_model(), listed);
    let miss = answer(chat.call(SEARCH, r#"{"query": "calendar"}"#)).for_model();
    let note = "Nothing matches \"calendar\". Try another word for it, or fewer words.\n";
    assert_eq!(miss, format!("{listed}{note}"));
}

#[test]
fn only_tools_in_scope_are_found() {
    let crib = opencode();
    let mut chat = Chat::within(&crib, &["read", "bash"]);
    assert_eq!(names(&chat.search("file")), ["read"]);
    let ask = SearchRequest::pattern(".");
    assert_eq!(names(&chat.ask(&ask)), ["bash", "read"]);
}

#[test]
fn a_removed_tool_is_not_found_and_a_changed_one_is_found_as_it_is_now() {
    let mut tools = coding();
    tools.remove(1);
    tools[0]["input_schema"] = strings(&["uri"], 1);
    let crib = crib(Preset::Opencode, &tools);
    let reply = Chat::new(&crib).search("disk");
    assert_eq!(names(&reply), ["read"]);
    assert!(reply.hits[0].input_schema.as_ref().unwrap().get().contains("uri"));
}

#[test]
fn select_loads_by_name() {
    let crib = opencode();
    let mut chat = Chat::new(&crib);
    assert_eq!(names(&chat.search("select:bash,read")), ["bash", "read"]);
}
