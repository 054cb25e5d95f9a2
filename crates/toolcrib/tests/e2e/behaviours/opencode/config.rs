//! Tests of opencode's own config file, with the keys of the tool search plugin, and with those of a fork of opencode
//! that has its own tool search.

use serde_json::{Value, json};

use super::super::{Setup, numbered, tool};
use super::SEARCHES;

fn files() -> Vec<Value> {
    vec![
        tool("read_file", "Read a file.", &["path"], 1),
        tool("write_file", "Write a file.", &["path"], 1),
        tool("bash", "Run a shell command.", &["command"], 1),
    ]
}

/// Writes a config file with these keys, and with the servers in opencode's format.
fn configured(mut keys: Value, servers: &[(&str, &[Value])]) -> Setup {
    Setup::file("opencode.jsonc", servers, |commands| {
        for (name, command) in commands {
            keys["mcp"][name]["type"] = "local".into();
            keys["mcp"][name]["command"] = command[..].into();
        }
        format!("// A comment, as opencode allows.\n{keys}")
    })
}

pub(super) fn with_options(options: &Value, tools: &[Value]) -> Setup {
    configured(json!({"plugin": [["opencode-tool-search", options]]}), &[("dev", tools)])
}

/// Returns the listed descriptions of the server's tools, without those of the search tools.
fn descriptions(setup: Setup) -> Vec<String> {
    let listed = setup.start().list();
    let server_tools =
        listed.iter().filter(|tool| tool["name"].as_str().unwrap().starts_with("dev"));
    server_tools.map(|tool| tool["description"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_plugin_alone_means_the_defaults() {
    let local = "file:///path/to/opencode-tool-search/dist/index.js";
    for plugin in [
        json!(["opencode-tool-search"]),
        json!(["other", ["opencode-tool-search@0.4.3", {}]]),
        json!([local]),
    ] {
        let servers: [(&str, &[Value]); 1] = [("dev", &numbered(9, "note_", "Note it."))];
        let mut session = configured(json!({"plugin": plugin}), &servers).start();
        let listed = session.list();
        assert!(listed[..9].iter().all(|tool| tool["description"] == "[d]"), "{listed:?}");
        assert_eq!(session.found("note").len(), 5);
    }
}

#[test]
fn every_option_is_read_and_always_load_knows_opencodes_own_names() {
    let options = json!({
        "alwaysLoad": ["dev_read_file", "bash"],
        "bm25": {"k1": 1.5, "b": 0.75},
        "searchLimit": 7,
        "deferDescription": "(search for me)",
    });
    assert_eq!(
        descriptions(with_options(&options, &files())),
        ["Read a file.", "(search for me)", "Run a shell command."]
    );
    let mut session = with_options(&options, &numbered(9, "note_", "Note it.")).start();
    assert_eq!(session.found("note").len(), 7);
}

#[test]
fn invalid_values_fall_back_and_are_logged() {
    for (options, logged) in [
        (json!({"bm25": {"k1": 3}}), "bm25.k1`: 3 is not within 0.5 to 2; using 2"),
        (json!({"bm25": {"b": -1}}), "bm25.b`: -1 is not within 0 to 1; using 0"),
        (json!({"searchLimit": 99}), "searchLimit`: 99 is not within 1 to 50; using 50"),
        (json!({"searchLimit": "many"}), "searchLimit`: \"many\" is not a number; using 5"),
        (json!({"deferDescription": 1}), "deferDescription`: 1 is not a string; using `[d]`"),
        (json!({"alwaysLoad": "read"}), "alwaysLoad`: \"read\" is not a list of names; ignored"),
    ] {
        let mut session = with_options(&options, &files()).start();
        session.logs(logged);
        assert_eq!(session.listed("dev__bash")["description"], "[d]", "{options}");
    }
}

#[test]
fn without_the_plugin_nothing_is_deferred() {
    let setup = configured(json!({"plugin": ["some-other-plugin"]}), &[("dev", &files())]);
    let mut session = setup.start();
    session.logs("`plugin`: `opencode-tool-search` is not listed, so tool search is off");
    assert_eq!(session.names(), ["dev__read_file", "dev__write_file", "dev__bash"]);
}

#[test]
fn in_the_fork_a_tool_is_hidden_until_it_is_found() {
    let keys = json!({
        "toolSearch": {"enabled": true, "alwaysLoad": ["dev_read_file"]},
        "mcp": {"logs": {"deferLoading": false}},
    });
    let logs = [tool("tail", "Show the last lines.", &["path"], 1)];
    let mut session = configured(keys, &[("dev", &files()), ("logs", &logs)]).start();
    let first = session.names();
    assert_eq!(first, [&["dev__read_file", "logs__tail"], &SEARCHES[..]].concat());
    let search = session.listed("tool_search")["description"].as_str().unwrap().to_owned();
    assert!(!search.contains("bash"), "no listing names a hidden tool: {search}");
    session.found("shell");
    assert_eq!(session.names(), [&first[..], &["dev__bash".to_owned()]].concat());
    assert_eq!(session.listed("dev__bash")["inputSchema"], files()[2]["inputSchema"]);
    let off = configured(json!({"toolSearch": {"enabled": false}}), &[("dev", &files())]);
    assert_eq!(off.start().names().len(), 3);
}

#[test]
fn a_bad_value_of_the_forks_keys_is_logged() {
    for (section, logged) in [
        (
            json!({"enabled": "no"}),
            "`toolSearch.enabled`: \"no\" is neither true nor false; using true",
        ),
        (json!(true), "`toolSearch`: true is not an object; using the defaults"),
    ] {
        let mut session = configured(json!({"toolSearch": section}), &[("dev", &files())]).start();
        session.logs(logged);
        assert_eq!(session.names(), SEARCHES);
    }
}
