//! Tests of the `opencode` preset as an MCP client sees it. docs/presets/opencode.md names these tests.

mod config;

use serde_json::{Value, json};
use toolcrib_core::TokenCounter as _;
use toolcrib_tokens::{Vocabulary, VocabularyCounter};

use super::{Session, Setup, numbered, plain, tool};

/// Returns the tools of a coding agent and of two servers. The tests of the library, `mcp` and `serve` share this
/// sample.
fn coding() -> Vec<Value> {
    let tools: Vec<(&str, &str, &str)> =
        serde_json::from_str(include_str!("../../../../../tests/samples/opencode.json")).unwrap();
    let with = |(name, words, argument)| tool(name, words, &[argument], 1);
    tools.into_iter().map(with).collect()
}

/// The name `dev` of a server, followed by a config line that removes the prefix, so that the server's tools have the
/// names that the plugin's README uses.
const BARE: &str = "dev\nprefix = \"\"\n";

fn opencode(tools: &[Value]) -> Session {
    Setup::preset("opencode", &[(BARE, tools)]).start()
}

const SEARCHES: [&str; 2] = ["tool_search", "tool_search_regex"];

// Tests of the list of tools.

#[test]
fn a_deferred_tool_keeps_its_slot_its_name_and_its_parameters_and_a_mark_for_a_description() {
    let listed = opencode(&coding()).list();
    let mut expected = coding();
    for tool in &mut expected {
        tool["description"] = "[d]".into();
    }
    assert_eq!(listed[..13], expected);
    assert_eq!(listed.len(), 15);
    let mut one = opencode(&coding()[..1]);
    assert_eq!(one.listed("read")["description"], "[d]", "a single tool is deferred, too");
}

#[test]
fn both_search_tools_are_always_there_and_never_find_themselves() {
    let mut session = opencode(&coding());
    let first = session.list();
    let own_tools: Vec<(&str, &str)> = first[13..]
        .iter()
        .map(|tool| (tool["name"].as_str().unwrap(), tool["description"].as_str().unwrap()))
        .collect();
    assert_eq!((own_tools[0].0, own_tools[1].0), (SEARCHES[0], SEARCHES[1]));
    assert!(
        own_tools[0].1.starts_with("Finds tools whose description is cut to a mark"),
        "{own_tools:?}"
    );
    assert_eq!(own_tools[1].1, "Finds deferred tools by a pattern.");
    assert!(session.found("tool_search").iter().all(|name| name != "tool_search"));
    let pattern = json!({"pattern": "^tool_search"});
    assert_eq!(session.found_with("tool_search_regex", &pattern), [""; 0]);
    assert_eq!((session.list(), session.changes), (first, 0), "found tools do not change the list");
}

/// The gateway does not know which model the client uses. So every model gets the stricter instructions, which are
/// meant for models that are not Anthropic's.
#[test]
fn instructions_send_the_model_to_tool_search_and_forbid_calls_before() {
    let instructions = opencode(&coding()).instructions().unwrap();
    for phrase in [
        "get them from `tool_search` before the first use",
        "Never call a tool described only by a mark",
    ] {
        assert!(instructions.contains(phrase), "{instructions}");
    }
    assert!(!instructions.contains(char::is_numeric), "no counts: they would break the cache");
}

fn surface() -> Vec<Value> {
    let text = include_str!("../../it/surfaces/coding.json").replace("input_schema", "inputSchema");
    serde_json::from_str(&text).unwrap()
}

fn tokens(value: &Value) -> usize {
    VocabularyCounter::exact(Vocabulary::O200k).count(&value.to_string())
}

#[test]
fn a_list_of_long_descriptions_shrinks_as_stated() {
    let (tools, total) = (surface(), |tools: &[Value]| tools.iter().map(tokens).sum::<usize>());
    let listed = opencode(&tools).list();
    assert_eq!(listed.len(), 34);
    let slot = total(&listed[..32]) / 32;
    assert!((30..=70).contains(&slot), "{slot} tokens per tool");
    let percent = 100 - 100 * total(&listed) / total(&tools);
    assert!(percent >= 85, "{percent} %");
    let always = ["read", "write", "edit", "bash", "glob", "grep", "list", "task"];
    let config = format!("preset = \"opencode\"\n[defer]\nnever = {}\n", json!(always));
    let mut listed = Setup::toml(&config, &[(BARE, &tools)]).start().list();
    let is_kept = |tool: &Value| always.contains(&tool["name"].as_str().unwrap());
    let mut before = tools.clone();
    listed.truncate(32);
    listed.retain(|tool| !is_kept(tool));
    before.retain(|tool| !is_kept(tool));
    let percent = 100 - 100 * total(&listed) / total(&before);
    assert!(listed.len() == 24 && percent >= 85, "{} tools, {percent} %", listed.len());
}

// Tests of calls.

#[test]
fn a_tool_that_is_called_directly_runs_if_its_arguments_are_right() {
    let mut session = opencode(&coding());
    let answer = session.client.call_with_text("bash", r#"{ "command": "ls  -l" }"#);
    assert_eq!(answer["result"]["structuredContent"], json!({"command": "ls  -l"}));
    for arguments in [json!({}), json!({"command": 5})] {
        let refusal = session.refused("bash", &arguments);
        assert_eq!(refusal["input_schema"], coding()[4]["inputSchema"], "{arguments}");
    }
}

// Tests of searches.

#[test]
fn an_answer_has_full_descriptions_and_parameter_schemas() {
    let mut session = opencode(&coding());
    assert_eq!(
        session.text("tool_search", &json!({"query": "syntax"})),
        format!(
            "### `ast_grep_search`\n\n> Match the syntax tree of code.\n\n```json\n{}\n```\n\n",
            coding()[6]["inputSchema"]
        )
    );
}

#[test]
fn words_find_the_tools_that_have_them() {
    let mut session = opencode(&coding());
    for (query, found) in [
        ("file", &["read", "write", "edit", "glob"][..]),
        ("file operations", &["read", "write", "edit", "glob"]),
        ("search code", &["grep", "ast_grep_search"]),
        ("github issues", &["github_list_issues", "github_create_issue"]),
        ("git", &[]),
    ] {
        assert_eq!(session.found(query), found, "{query}");
    }
    let vague = session.found("report a bug");
    assert_eq!(
        (&*vague[0], vague.len()),
        ("github_create_issue", 5),
        "tools match by the word `a` alone"
    );
}

#[test]
fn only_names_and_descriptions_are_searched_for_words() {
    let mut session = opencode(&[
        tool("mail_send", "Sends mail.", &["mail"], 0),
        tool("fax", "Faxes.", &["mail"], 0),
    ]);
    assert_eq!(session.found("Mail!"), ["mail_send"], "the parameters are not searched");
}

/// One tool contains a single query word ten times. It competes with a tool that contains two equally rare query words
/// once each.
#[test]
fn a_higher_k1_lets_repeated_words_count_for_more() {
    let often = "log ".repeat(10);
    let tools = plain(&[("often", &often), ("both", "log error"), ("other", "error")]);
    let first = |k1: f64| {
        let options = json!({"bm25": {"k1": k1, "b": 0}});
        config::with_options(&options, &tools).start().found("log error").remove(0)
    };
    assert_eq!((&*first(0.5), &*first(2.0)), ("dev__both", "dev__often"));
}

#[test]
fn a_pattern_finds_names_and_descriptions_in_any_case() {
    let mut session = opencode(&coding());
    for (pattern, found) in [
        ("GitHub.*Issue", &["github_create_issue", "github_list_issues"]),
        ("^lsp_", &["lsp_hover", "lsp_rename"]),
        ("jenkins|build", &["jenkins_start", "ci_status"]),
    ] {
        let arguments = json!({"pattern": pattern});
        assert_eq!(session.found_with("tool_search_regex", &arguments), found, "{pattern}");
    }
}

#[test]
fn five_tools_are_returned_at_most() {
    let mut session = opencode(&numbered(9, "note_", "Note it."));
    for (name, arguments) in [
        ("tool_search", json!({"query": "note"})),
        ("tool_search", json!({"query": "note", "limit": 9})),
        ("tool_search_regex", json!({"pattern": "note", "limit": 9})),
    ] {
        assert_eq!(session.found_with(name, &arguments).len(), 5, "{name} {arguments}");
    }
}
