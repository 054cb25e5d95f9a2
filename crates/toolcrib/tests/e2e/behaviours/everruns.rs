//! Tests of the `everruns` preset as an MCP client sees it. docs/presets/everruns.md names these tests.

mod config;
mod search;
mod session;

use serde_json::{Value, json};

use super::{CHANGED, Setup, numbered, tool};
use crate::support::client::Era;

/// Returns fifteen tools, which is just enough for deferral. The tests of the library, `mcp` and `serve` share this
/// sample.
fn agent() -> Vec<Value> {
    let tools: Vec<(&str, &str, &str)> =
        serde_json::from_str(include_str!("../../../../../tests/samples/everruns.json")).unwrap();
    let bare_name = |name: &'static str| name.rsplit("__").next().unwrap();
    let with = |(name, words, argument)| tool(bare_name(name), words, &[argument, "note"], 1);
    tools.into_iter().map(with).collect()
}

fn with(tools: &[Value]) -> Setup {
    Setup::preset("everruns", &[("dev", tools)])
}

/// Returns a definition with the name under which the gateway exposes the tool.
fn prefixed(tool: &Value) -> Value {
    let mut tool = tool.clone();
    tool["name"] = format!("dev__{}", tool["name"].as_str().unwrap()).into();
    tool
}

// Tests of activation: when tools are deferred at all.

#[test]
fn deferral_sets_in_at_fifteen_tools_and_not_at_fourteen() {
    let mut session = with(&agent()).start();
    assert_eq!(session.stubs().len(), 15);
    assert_eq!(with(&agent()[..14]).start().stubs(), [""; 0]);
}

#[test]
fn below_the_threshold_the_tools_are_listed_unchanged_and_nothing_is_added() {
    let tools = &agent()[..14];
    let mut session = with(tools).start().restart();
    assert_eq!(session.list(), tools.iter().map(prefixed).collect::<Vec<_>>());
    assert_eq!(session.instructions(), None);
}

#[test]
fn tools_that_are_never_deferred_count_towards_the_threshold() {
    let kept: Vec<Value> = agent()[1..].iter().map(|tool| tool["name"].clone()).collect();
    let server = format!("dev\nalways_load = {}\n", Value::from(kept));
    let mut session = Setup::preset("everruns", &[(&server, &agent())]).start();
    assert_eq!(session.stubs(), ["dev__read_file"]);
}

#[test]
fn only_the_count_decides_whatever_the_tools_cost() {
    let large = numbered(14, "t", &"A word or two more. ".repeat(500));
    let mut session = with(&large).flags(&["--context", "8000"]).start();
    assert_eq!(session.stubs(), [""; 0]);
    let tiny: Vec<Value> = (0..15).map(|at| tool(&format!("t{at}"), "", &[], 0)).collect();
    assert!(with(&tiny).start().names().contains(&"tool_search".to_owned()));
}

#[test]
fn every_list_is_decided_again() {
    let mut session = with(&agent()).start();
    assert_eq!(session.stubs().len(), 15);
    session.define("dev", &agent()[..14]);
    session.client.wait_for_message(CHANGED);
    assert_eq!(session.stubs(), [""; 0]);
}

// Tests of stubs: how deferred tools are listed.

#[test]
fn a_deferred_tool_keeps_name_and_description_and_its_stub_says_what_to_ask() {
    let stub = json!({
        "name": "dev__web_fetch",
        "description": "Get a page from the web.",
        "inputSchema": {
            "type": "object",
            "properties": {},
            "additionalProperties": true,
            "description": "Not loaded: call tool_search with the query dev__web_fetch first.",
        },
    });
    assert_eq!(with(&agent()).start().listed("dev__web_fetch"), stub);
}

#[test]
fn the_query_that_a_stub_names_loads_that_tool_alone() {
    let mut session = with(&agent()).start();
    assert_eq!(session.stubs().len(), 15);
    for name in session.stubs() {
        assert_eq!(session.found(&name), [&*name]);
    }
    assert_eq!(session.stubs(), [""; 0]);
}

#[test]
fn the_search_tool_is_added_and_is_never_deferred() {
    let mut session = with(&agent()).start();
    let names = session.names();
    assert_eq!(names[15..], ["tool_search"], "Toolcrib adds no other tool");
    let search = session.listed("tool_search");
    let schema = &search["inputSchema"];
    assert_eq!(schema["properties"]["query"]["type"], "string", "{schema}");
    assert_eq!(schema["required"], json!(["query"]));
    session.search("web_fetch");
    assert_eq!(session.listed("tool_search"), search);
}

#[test]
fn instructions_ask_to_search_before_the_first_use() {
    let session = with(&agent()).start();
    let expected = "Some of your tools show only a stub of their schema. Load one with `tool_search` \
                    before its first use";
    let first = session.instructions();
    assert!(first.as_ref().unwrap().contains(expected), "the first session has the instructions");
    assert_eq!(session.restart().instructions(), first);
}

#[test]
fn every_client_gets_the_same_tools() {
    let [first, second] = ["gemini-cli", "some-agent"]
        .map(|client| with(&agent()).start_as(client, Era::Older).list());
    assert_eq!(first, second);
    assert_eq!(first[0]["inputSchema"]["properties"], json!({}));
}

/// Checks how much smaller the list and its schemas become in bytes, for eighteen tools and the search tool.
#[test]
fn a_list_of_nineteen_tools_shrinks_as_stated() {
    let text = include_str!("../../it/surfaces/agent.json").replace("input_schema", "inputSchema");
    let tools: Vec<Value> = serde_json::from_str(&text).unwrap();
    let size = |of: &dyn Fn(&Value) -> usize, tools: &[Value]| tools.iter().map(of).sum::<usize>();
    let (whole, schema) = (
        |tool: &Value| tool.to_string().len(),
        |tool: &Value| tool["inputSchema"].to_string().len(),
    );
    let mut listed = with(&tools).start().list();
    assert_eq!(listed.len(), 19);
    // The output schema of the search tool is not counted, because it exists only in MCP.
    listed[18].as_object_mut().unwrap().remove("outputSchema");
    let mut full: Vec<Value> = tools.iter().map(prefixed).collect();
    full.push(listed[18].clone());
    let saved = |of: &dyn Fn(&Value) -> usize| 100 - 100 * size(of, &listed) / size(of, &full);
    let (list, schemas) = (saved(&whole), saved(&schema));
    assert!(list >= 39 && schemas >= 55, "saved: list {list} %, schemas {schemas} %");
}

// Tests of policies: which tools are deferred.

#[test]
fn a_tool_that_is_never_deferred_keeps_its_full_schema_and_needs_no_search() {
    let by_rule = "preset = \"everruns\"\n[defer]\nnever = [\"bash\"]\n";
    for (config, server) in
        [(by_rule, "dev"), ("preset = \"everruns\"", "dev\nalways_load = [\"bash\"]\n")]
    {
        let mut session = Setup::toml(config, &[(server, &agent())]).start();
        assert_eq!(session.listed("dev__bash"), prefixed(&agent()[5]), "{server}");
        assert_eq!(session.stubs().len(), 14);
        session.runs("dev__bash", &json!({"command": "ls"}));
    }
}

#[test]
fn the_lists_of_settings_and_server_are_merged() {
    let config = "preset = \"everruns\"\n[defer]\nnever = [\"bash\"]\n";
    let server = "dev\nalways_load = [\"web_fetch\"]\n";
    let mut session = Setup::toml(config, &[(server, &agent())]).start();
    assert!(!session.is_stub("dev__bash") && !session.is_stub("dev__web_fetch"));
    assert_eq!(session.stubs().len(), 13);
}

#[test]
fn always_defers_when_tool_search_is_active_and_not_below_the_threshold() {
    let server = "dev\ndefer = \"always\"\n";
    let mut session = Setup::preset("everruns", &[(server, &agent())]).start();
    assert_eq!(session.stubs().len(), 15);
    let mut session = Setup::preset("everruns", &[(server, &agent()[..14])]).start();
    assert_eq!(session.stubs(), [""; 0]);
}
