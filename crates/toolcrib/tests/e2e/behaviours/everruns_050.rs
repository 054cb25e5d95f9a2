//! Tests of the `everruns@0.50` preset as an MCP client sees it. docs/presets/everruns-0.50.md names these tests.

use serde_json::{Value, json};

use super::{CHANGED, Session, Setup, numbered, plain, tool};

fn gauges(count: usize) -> Vec<Value> {
    numbered(count, "gauge_", "Reads a gauge.")
}

fn with(tools: &[Value]) -> Setup {
    Setup::preset("everruns@0.50", &[("plant", tools)])
}

/// Writes a config file as everruns 0.50 expects it, with `config` as the configuration of the tool search.
fn configured(config: &Value, tools: &[Value]) -> Setup {
    let keys = json!({"capabilities": [{"ref": "tool_search", "config": config}]});
    Setup::json("everruns.json", keys, &[("plant", tools)])
}

fn bounded(more: &Value, tools: &[Value]) -> Session {
    let mut config = json!({"bounded": true});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    configured(&config, tools).start()
}

#[test]
fn a_stub_is_an_open_object_without_a_hint() {
    let mut session = with(&gauges(15)).start();
    let stub = json!({"type": "object", "properties": {}, "additionalProperties": true});
    assert_eq!(session.listed("plant__gauge_0")["inputSchema"], stub);
    assert!(
        session.instructions().unwrap().contains("tool_search"),
        "the hint is in the instructions"
    );
}

#[test]
fn it_defers_from_fifteen_tools_on() {
    assert_eq!(with(&gauges(15)).start().stubs().len(), 15);
    assert_eq!(with(&gauges(14)).start().stubs(), [""; 0]);
}

#[test]
fn a_session_that_deferred_goes_on_when_its_tools_become_fewer() {
    let mut session = with(&gauges(15)).start();
    assert_eq!(session.stubs().len(), 15);
    session.define("plant", &gauges(3));
    session.client.wait_for_message(CHANGED);
    assert_eq!(session.stubs().len(), 3);
    assert_eq!(session.restart().stubs(), [""; 0], "another session never deferred");
}

#[test]
fn a_tool_whose_call_failed_has_its_schema_from_then_on() {
    let mut session = with(&gauges(15)).start();
    session.list();
    let refusal = session.refused("plant__gauge_7", &json!({"unit": 5}));
    assert_eq!(refusal["input_schema"], gauges(15)[7]["inputSchema"]);
    assert_eq!(session.changes, 1);
    assert_eq!(session.stubs().len(), 14);
    assert!(!session.is_stub("plant__gauge_7"));
}

#[test]
fn found_tools_get_their_schemas_unless_reveal_says_otherwise() {
    let mut redefine = configured(&json!({"reveal": "redefine"}), &gauges(15)).start();
    redefine.found("plant__gauge_7");
    assert!(!redefine.is_stub("plant__gauge_7"));
    let mut in_result = configured(&json!({"reveal": "in_result"}), &gauges(15)).start();
    let before = in_result.list();
    let answer = in_result.search("plant__gauge_7");
    assert_eq!(answer["tools"][0]["parameters"], gauges(15)[7]["inputSchema"]);
    assert_eq!((in_result.list(), in_result.changes), (before, 0), "the list is unchanged");
}

#[test]
fn invalid_values_are_logged() {
    for (config, logged) in [
        (
            json!({"reveal": "in_result", "bounded": true}),
            "`in_result` cannot be combined with `bounded`",
        ),
        (json!({"reveal": "never"}), "\"never\" is neither `redefine` nor `in_result`"),
        (
            json!({"bounded": true, "max_active_tools": 500}),
            "500 is not within 1 to 128; using 128",
        ),
        (json!({"bounded": true, "max_result_bytes": 1}), "1 is not within 1024 to 65536"),
    ] {
        configured(&config, &gauges(15)).start().logs(logged);
    }
}

#[test]
fn bounded_shows_no_deferred_tool_before_it_was_found() {
    let mut session = bounded(&json!({}), &gauges(2));
    assert_eq!(session.names(), ["tool_search"], "even a few tools are deferred");
    let search = session.listed("tool_search");
    assert!(
        !search["description"].as_str().unwrap().contains("gauge"),
        "no listing names a hidden tool"
    );
    session.found("gauge_1");
    assert_eq!(session.names(), ["tool_search", "plant__gauge_1"]);
}

#[test]
fn bounded_keeps_the_tools_that_were_loaded_last() {
    let mut session = bounded(&json!({"max_active_tools": 2}), &gauges(20));
    for at in 1..=3 {
        session.found(&format!("select:plant__gauge_{at}"));
    }
    assert_eq!(session.names()[1..], ["plant__gauge_2", "plant__gauge_3"]);
    session.found("select:plant__gauge_1");
    let names = session.names();
    assert_eq!(names[1..], ["plant__gauge_3", "plant__gauge_1"], "the oldest tool is evicted");
    session.found("select:plant__gauge_5,plant__gauge_6,plant__gauge_7");
    let names = session.names();
    assert_eq!(names[1..], ["plant__gauge_6", "plant__gauge_5"], "the first hits are kept");
}

#[test]
fn bounded_counts_the_bytes_of_what_is_shown() {
    let mut tools = vec![tool("wide", &"x".repeat(800), &["unit"], 1)];
    tools.extend(gauges(3));
    let mut session = bounded(&json!({"max_active_bytes": 1024}), &tools);
    session.found("select:plant__gauge_0");
    session.found("select:plant__wide");
    assert_eq!(session.names()[1..], ["plant__wide"], "only the newest tool fits into the limit");
    session.found("select:plant__gauge_1,plant__gauge_2");
    let names = session.names();
    assert_eq!(
        names[1..],
        ["plant__gauge_0", "plant__gauge_2", "plant__gauge_1"],
        "`wide` is skipped"
    );
}

#[test]
fn bounded_searches_parameters_and_a_miss_names_sources() {
    let mut tools = gauges(20);
    tools.push(tool("valve", "Turns.", &["angle"], 1));
    let mut session = bounded(&json!({}), &tools);
    assert_eq!(session.found("angle"), ["plant__valve"]);
    let miss = session.search("submarine");
    assert_eq!(miss["available_sources"], json!([{"name": "plant", "tools": 21}]), "{miss}");
    assert_eq!(miss["available_tools"], Value::Null);
}

#[test]
fn ranking_is_that_of_the_earlier_editions() {
    let mut tools = plain(&[
        ("read_file", "Show."),
        ("read_file_lines", "In part."),
        ("bash", "Can also read a file."),
    ]);
    tools.extend(gauges(12));
    let mut session = with(&tools).start();
    assert_eq!(session.found("`read_file`"), ["plant__read_file"]);
    assert_eq!(session.found("file"), ["plant__read_file", "plant__read_file_lines"]);
    assert_eq!(session.found("gauge").len(), 8);
}

#[test]
fn threshold_and_allowlist_are_read_as_before() {
    let config = json!({"threshold": 3, "never_defer": ["gauge_1"], "reveal": "redefine"});
    assert_eq!(
        configured(&config, &gauges(3)).start().stubs(),
        ["plant__gauge_0", "plant__gauge_2"]
    );
    assert_eq!(configured(&config, &gauges(2)).start().stubs(), [""; 0]);
}

#[test]
fn the_configuration_of_the_release_is_known_by_its_keys() {
    let mut session = configured(&json!({"reveal": "redefine"}), &gauges(15)).start();
    let stub = session.listed("plant__gauge_0")["inputSchema"].take();
    assert_eq!(stub["properties"], json!({}));
    assert_eq!(stub.get("description"), None, "the stub has no hint, as in everruns 0.50: {stub}");
}

/// With MCP there is no provider that could run a hosted search, so the bridge is used instead.
#[test]
fn hosted_capabilities_are_the_bridge_and_the_automatic_one_is_this_search() {
    let setup = |id: &str| {
        let keys = json!({"capabilities": [id]});
        Setup::json("everruns.json", keys, &[("plant", &gauges(15))])
    };
    for id in ["openai_tool_search", "claude_tool_search"] {
        let mut session = setup(id).start();
        assert_eq!(session.names(), ["tool_search", "tool_describe", "tool_call"], "{id}");
        session.logs("`disclosure = \"hosted\"` requires a provider's API");
    }
    let auto = setup("auto_tool_search").flags(&["--preset", "everruns@0.50"]);
    assert_eq!(auto.start().stubs().len(), 15);
}
