//! The `everruns` preset at an MCP client: docs/presets/everruns.md names these tests.

use serde_json::{Value, json};

use super::{CHANGED, Setup, numbered, plain, tool};
use crate::support::client::{Client, Era};

/// Fifteen tools: just enough to be deferred.
fn agent() -> Vec<Value> {
    let tools = [
        ("read_file", "Read a file from the workspace.", "path"),
        ("write_file", "Write a file to the workspace.", "path"),
        ("edit_file", "Replace text in a file.", "path"),
        ("list_directory", "List what a folder holds.", "path"),
        ("grep_files", "Look for a pattern in many files.", "pattern"),
        ("bash", "Run a shell command.", "command"),
        ("web_fetch", "Get a page from the web.", "url"),
        ("write_todos", "Keep the plan as a list of steps.", "steps"),
        ("get_time", "Tell date and time.", "zone"),
        ("kv_get", "Read a stored value.", "key"),
        ("kv_set", "Store a value.", "key"),
        ("spawn_agent", "Start another agent on a task.", "task"),
        ("list_sessions", "List sessions that are running.", "state"),
        ("stop_session", "End a session.", "id"),
        ("forecast", "Forecast for a place.", "place"),
    ];
    tools.map(|(name, words, argument)| tool(name, words, &[argument, "note"], 1)).to_vec()
}

fn with(tools: &[Value]) -> Setup {
    Setup::preset("everruns", &[("dev", tools)])
}

/// A definition under the name that the gateway's clients use.
fn prefixed(tool: &Value) -> Value {
    let mut tool = tool.clone();
    tool["name"] = format!("dev__{}", tool["name"].as_str().unwrap()).into();
    tool
}

// When it defers.

#[test]
fn deferral_sets_in_at_fifteen_tools_and_not_at_fourteen() {
    let mut session = with(&agent()).start();
    assert_eq!(session.stubs().len(), 15);
    assert_eq!(with(&agent()[..14]).start().stubs(), [""; 0]);
}

#[test]
fn below_the_threshold_the_tools_are_listed_unchanged_and_nothing_is_added() {
    let tools = &agent()[..14];
    let mut session = with(tools).start().again();
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
fn every_list_is_decided_anew() {
    let mut session = with(&agent()).start();
    assert_eq!(session.stubs().len(), 15);
    session.define("dev", &agent()[..14]);
    session.client.await_message(CHANGED);
    assert_eq!(session.stubs(), [""; 0]);
}

// What is listed in a schema's place.

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
    for name in session.stubs() {
        assert_eq!(session.found(&name), [&*name]);
    }
    assert_eq!(session.stubs(), [""; 0]);
}

#[test]
fn the_search_tool_is_added_and_is_never_deferred() {
    let mut session = with(&agent()).start();
    let names = session.names();
    assert_eq!(names[15..], ["tool_search"], "and no other tool of ours");
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
    assert!(session.instructions().unwrap().starts_with(expected), "in the first session ever");
    assert!(session.again().instructions().unwrap().starts_with(expected));
}

#[test]
fn every_client_is_served_alike() {
    let [first, second] =
        ["gemini-cli", "some-agent"].map(|client| with(&agent()).start_as(client, Era::Old).list());
    assert_eq!(first, second);
}

/// Eighteen tools and the search: what the list and its schemas lose in bytes.
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
    // What the search tool answers is declared for MCP alone.
    listed[18].as_object_mut().unwrap().remove("outputSchema");
    let mut full: Vec<Value> = tools.iter().map(prefixed).collect();
    full.push(listed[18].clone());
    let saved = |of: &dyn Fn(&Value) -> usize| 100 - 100 * size(of, &listed) / size(of, &full);
    let (list, schemas) = (saved(&whole), saved(&schema));
    assert!(list >= 39 && schemas >= 55, "list {list} %, schemas {schemas} %");
}

// Policies.

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

// Searching.

#[test]
fn a_name_hit_counts_three_and_one_in_the_description_one() {
    let mut tools = plain(&[
        ("mail_send", "Send mail."),
        ("mail_list", "What was sent."),
        ("fax_send", "Send a page."),
        ("post_letter", "For those without mail."),
        ("send_mail_now", "Three words in the name."),
        ("mail_box", "Five: to send now or later."),
    ]);
    tools
        .extend(plain(&[("bash", "Run a command; can also read a file."), ("view_file", "Show.")]));
    tools.extend(numbered(8, "gauge_", "Reads."));
    let mut session = with(&tools).start();
    assert_eq!(session.found("without"), ["dev__post_letter"], "one in the description is enough");
    assert_eq!(session.found("file"), ["dev__view_file"], "three are more than twice one");
    let two = session.found("mail  send");
    assert_eq!(two[..2], ["dev__mail_send", "dev__send_mail_now"], "six");
    assert_eq!(two[2], "dev__mail_box", "four");
    assert!(!two.contains(&"dev__post_letter".to_owned()), "less than half of the best: {two:?}");
    assert!(two.contains(&"dev__fax_send".to_owned()), "half is enough: {two:?}");
}

#[test]
fn a_query_that_is_a_name_finds_that_tool_alone_behind_a_prefix_and_punctuation() {
    let mut tools = plain(&[("read_file_lines", "Like read_file."), ("read_file", "Show a file.")]);
    tools.extend(numbered(13, "gauge_", "Reads."));
    let mut session = with(&tools).start();
    for query in
        ["dev__read_file", "read_file", "READ_FILE", "`read_file`", "(read_file).", "\"read_file\""]
    {
        assert_eq!(session.found(query), ["dev__read_file"], "{query}");
    }
}

#[test]
fn at_most_eight_tools_are_returned_and_revealed_by_one_search() {
    let mut session = with(&numbered(20, "note_", "Takes it down.")).start();
    assert_eq!(session.stubs().len(), 20);
    let arguments = json!({"query": "note", "limit": 50});
    assert_eq!(session.found_with("tool_search", &arguments).len(), 8);
    assert_eq!(session.stubs().len(), 12);
}

#[test]
fn a_search_considers_only_the_tools_of_the_profile() {
    let config = "preset = \"everruns\"\n[activation]\ntools = 1\n[profiles.few]\n\
                  allow = [\"dev/read_file\", \"dev/bash\"]\n[profiles.none]\nallow = [\"dev/no_such_tool\"]\n";
    let setup = Setup::toml(config, &[("dev", &agent())]).flags(&["--profile", "few"]);
    let mut session = setup.start();
    assert_eq!(session.found("file"), ["dev__read_file"]);
    let miss = session.search("write_file");
    assert_eq!(miss["available_tools"], json!(["dev__bash", "dev__read_file"]));
    let setup = Setup::toml(config, &[("dev", &agent())]).flags(&["--profile", "none"]);
    let mut session = setup.start();
    assert_eq!(session.search("file")["available_tools"], json!([]));
    assert!(!session.names().iter().any(|name| name.starts_with("dev__")), "nothing is visible");
}

#[test]
fn an_answer_carries_the_full_schemas_of_the_matches() {
    let mut session = with(&agent()).start();
    let expected = json!({
        "query": "fetch",
        "tools": [{
            "name": "dev__web_fetch",
            "description": "Get a page from the web.",
            "parameters": agent()[6]["inputSchema"],
        }],
        "loaded": ["dev__web_fetch"],
        "message": "The tools are loaded: call them with their real parameters.",
    });
    assert_eq!(session.search("fetch"), expected);
}

#[test]
fn no_match_and_an_empty_query_list_the_names_and_reveal_nothing() {
    let mut session = with(&agent()).start();
    let miss = session.search("calendar");
    assert!(miss["message"].as_str().unwrap().starts_with("Nothing matches \"calendar\"."));
    for answer in [miss, session.search(""), session.search("...")] {
        assert_eq!(answer["available_tools"].as_array().unwrap().len(), 15, "{answer}");
        assert_eq!((&answer["tools"], &answer["loaded"]), (&json!([]), &json!([])));
    }
    assert_eq!(session.stubs().len(), 15);
}

#[test]
fn tools_of_every_server_are_deferred_and_found() {
    let servers = [("dev", &agent()[..14]), ("weather", &agent()[14..])];
    let mut session = Setup::preset("everruns", &servers).start();
    assert!(session.is_stub("weather__forecast"));
    assert_eq!(session.found("forecast"), ["weather__forecast"]);
    assert_eq!(session.found("shell"), ["dev__bash"]);
}

// A session.

#[test]
fn a_found_tool_has_its_full_schema_on_the_next_step_and_for_the_rest_of_the_session() {
    let mut session = with(&agent()).start();
    let before = session.names();
    session.found("web_fetch");
    assert_eq!(session.changes, 1);
    assert_eq!(session.listed("dev__web_fetch"), prefixed(&agent()[6]));
    session.runs("dev__web_fetch", &json!({"url": "https://example.org", "note": "é"}));
    session.found("bash");
    assert_eq!(session.stubs().len(), 13, "both, and no other");
    assert_eq!(session.names(), before, "each in its own place");
}

#[test]
fn a_session_keeps_its_last_sixty_four_reveals() {
    let mut session = with(&numbered(65, "t", "")).start();
    for at in 0..65 {
        session.found(&format!("dev__t{at}"));
    }
    assert_eq!(session.stubs(), ["dev__t0"]);
}

#[test]
fn what_one_session_found_another_does_not_see() {
    let setup = with(&agent());
    let served = setup.home.serve();
    let mut sessions = [(); 2].map(|()| Client::at(&served.url, Era::Old));
    let schema = |client: &mut Client| {
        let tools = client.tools();
        tools.into_iter().find(|tool| tool["name"] == "dev__bash").map(|t| t["inputSchema"].clone())
    };
    crate::support::eventually("the tools", || schema(&mut sessions[0]));
    let query = json!({"name": "tool_search", "arguments": {"query": "bash"}});
    sessions[0].result("tools/call", &query);
    assert_eq!(schema(&mut sessions[0]).unwrap(), agent()[5]["inputSchema"]);
    assert_eq!(schema(&mut sessions[1]).unwrap()["properties"], json!({}));
}

#[test]
fn a_session_that_is_over_is_forgotten_and_the_next_one_searches_again() {
    let mut session = with(&agent()).start();
    session.found("bash");
    assert!(!session.is_stub("dev__bash"));
    let mut session = session.again();
    assert!(session.is_stub("dev__bash"));
    session.found("bash");
    assert!(!session.is_stub("dev__bash"));
}

#[test]
fn tools_are_called_by_their_own_names_with_their_own_arguments() {
    let mut session = with(&agent()).start();
    session.found("bash");
    let arguments = r#"{"command":  "ls", "note": "1.00"}"#;
    let answer = session.client.call_with_text("dev__bash", arguments);
    let expected: Value = serde_json::from_str(arguments).unwrap();
    assert_eq!(answer["result"]["structuredContent"], expected);
}

#[test]
fn a_first_use_costs_one_search_or_a_right_guess() {
    let mut session = with(&agent()).start();
    let refusal = session.refused("dev__web_fetch", &json!({"address": "https://example.org"}));
    assert_eq!(refusal["input_schema"], agent()[6]["inputSchema"]);
    assert!(!session.is_stub("dev__web_fetch"), "a wrong guess loads it as a search does");
    session.runs("dev__bash", &json!({"command": "ls"}));
}

#[test]
fn without_reveals_the_schema_is_in_the_answer_and_nowhere_else() {
    let config = "preset = \"everruns\"\nreveals = false\n";
    let mut session = Setup::toml(config, &[("dev", &agent())]).start();
    let first = session.list();
    let answer = session.search("bash");
    assert_eq!(answer["tools"][0]["parameters"], agent()[5]["inputSchema"]);
    assert_eq!(session.list(), first, "a stub it was and a stub it stays");
    session.runs("dev__bash", &json!({"command": "ls"}));
    let note = session.again().instructions().unwrap();
    assert!(note.contains("Its real parameters are in the answer."), "{note}");
}

// everruns' own file.

fn configured(capabilities: Value, tools: &[Value]) -> Setup {
    Setup::json("everruns.json", json!({"capabilities": capabilities}), &[("dev", tools)])
}

#[test]
fn the_capability_alone_means_the_defaults() {
    for capabilities in [
        json!(["tool_search"]),
        json!(["auto_tool_search"]),
        json!({"auto_tool_search": {"threshold": 15}}),
    ] {
        assert_eq!(configured(capabilities.clone(), &agent()).start().stubs().len(), 15);
        assert_eq!(configured(capabilities, &agent()[..14]).start().stubs(), [""; 0]);
    }
}

#[test]
fn threshold_and_allowlist_can_be_configured() {
    let own = json!({"tool_search": {"threshold": 3, "never_defer": ["read_file", "bash"]}});
    let mut session = configured(own.clone(), &agent()[..6]).start();
    assert_eq!(session.stubs().len(), 4);
    assert!(!session.is_stub("dev__read_file") && !session.is_stub("dev__bash"));
    assert_eq!(configured(own, &agent()[..2]).start().stubs(), [""; 0]);
    let zero = json!({"tool_search": {"threshold": 0}});
    assert_eq!(configured(zero, &agent()[..1]).start().stubs(), ["dev__read_file"]);
}

#[test]
fn what_cannot_be_used_falls_back_to_the_default_and_is_logged() {
    for (own, logged) in [
        (
            json!({"threshold": "20"}),
            "`capabilities.tool_search.threshold`: \"20\" is not a whole number",
        ),
        (
            json!({"never_defer": [7]}),
            "`capabilities.tool_search.never_defer.0`: 7 is no name, left out",
        ),
        (json!({"treshold": 1}), "`capabilities.tool_search.treshold`: not known, left out"),
    ] {
        let mut session = configured(json!({"tool_search": own}), &agent()).start();
        session.logs(logged);
        assert_eq!(session.stubs().len(), 15);
    }
}

#[test]
fn without_the_capability_tool_search_is_off() {
    let mut session = configured(json!(["web"]), &agent()).start();
    session.logs("`capabilities`: `tool_search` is not among them: tool search is off");
    assert_eq!(session.list(), agent().iter().map(prefixed).collect::<Vec<_>>());
}
