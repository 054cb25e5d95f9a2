//! Tests of opencode's own configuration, passed with `serve --config`.

use serde_json::{Value, json};

use super::{coding, first_exchange, tool};
use crate::behaviours::{ProxyExchange, Setup, warnings};

fn configured(config: &Value) -> Setup {
    Setup::file("opencode.json", config.to_string())
}

fn descriptions<'a>(exchange: &'a ProxyExchange, names: &[&str]) -> Vec<&'a str> {
    names.iter().map(|name| exchange.description(0, name)).collect()
}

#[test]
fn the_plugin_alone_means_the_defaults() {
    for plugin in ["opencode-tool-search", "file:///a/opencode-tool-search/dist/index.js"] {
        // opencode's file may contain comments and trailing commas.
        let text = format!("{{\n  // Plugins.\n  \"plugin\": [\"{plugin}\",],\n}}");
        let exchange = first_exchange(&Setup::file("opencode.jsonc", text), &coding());
        assert_eq!(exchange.mode(), "terse");
        assert!(
            exchange.tools(0)[..13].iter().all(|tool| tool["function"]["description"] == "[d]")
        );
    }
}

#[test]
fn every_option_is_read() {
    let options = json!({
        "alwaysLoad": ["read", "write", "edit", "bash"],
        "bm25": {"k1": 1.5, "b": 0.75},
        "searchLimit": 10,
        "deferDescription": "(search for me)",
    });
    let setup = configured(&json!({"plugin": [["opencode-tool-search", options]]}));
    assert_eq!(warnings(&setup), [""; 0]);
    let exchange = first_exchange(&setup, &coding());
    assert_eq!(
        descriptions(&exchange, &["glob", "bash"]),
        ["(search for me)", "Run a shell command."]
    );
}

#[test]
fn always_load_knows_opencodes_own_names() {
    let tools = [
        tool("dev__read_file", "Read a file.", &["path"], 1),
        tool("dev__read_files", "Read files.", &["paths"], 1),
    ];
    let options = json!({"alwaysLoad": ["dev_read_file"]});
    let setup = configured(&json!({"plugin": [["opencode-tool-search", options]]}));
    let exchange = first_exchange(&setup, &tools);
    assert_eq!(
        descriptions(&exchange, &["dev__read_file", "dev__read_files"]),
        ["Read a file.", "[d]"]
    );
}

#[test]
fn an_invalid_value_is_logged_and_replaced() {
    let options = json!({"searchLimit": 99, "bm25": {"k1": 3, "b": []}, "deferDescription": 1});
    let setup = configured(&json!({"plugin": [["opencode-tool-search", options]]}));
    let mut logged = warnings(&setup);
    logged.sort();
    let expected = [
        "`plugin.0.1.bm25.b`: [] is not a number; using 0.4",
        "`plugin.0.1.bm25.k1`: 3 is not within 0.5 to 2; using 2",
        "`plugin.0.1.deferDescription`: 1 is not a string; using `[d]`",
        "`plugin.0.1.searchLimit`: 99 is not within 1 to 50; using 50",
    ];
    assert_eq!(logged, expected);
    assert_eq!(descriptions(&first_exchange(&setup, &coding()), &["glob"]), ["[d]"]);
}

#[test]
fn without_the_plugin_nothing_is_deferred_and_the_log_says_so() {
    let setup =
        configured(&json!({"plugin": ["some-other-plugin"]})).flags(&["--preset", "opencode"]);
    assert_eq!(
        warnings(&setup),
        ["`plugin`: `opencode-tool-search` is not listed, so tool search is off"]
    );
    assert_eq!(first_exchange(&setup, &coding()).tools(0), coding());
}

#[test]
fn the_forks_own_configuration_is_read() {
    let off = configured(&json!({"toolSearch": {"enabled": false}}));
    assert_eq!(first_exchange(&off, &coding()).tools(0), coding());
    let config = json!({
        "toolSearch": {"enabled": true},
        "mcp": {"github": {"deferLoading": false}, "logs": {"deferLoading": true}},
    });
    let tools = [tool("github__get", "One.", &[], 0), tool("logs__get", "Another.", &[], 0)];
    let exchange = first_exchange(&configured(&config), &tools);
    assert_eq!(exchange.names(0), ["github__get", "tool_search", "tool_search_regex"]);
}

#[test]
fn a_bad_value_in_the_forks_configuration_is_said() {
    let setup = configured(&json!({"toolSearch": {"enabled": "no"}}));
    let warning = "`toolSearch.enabled`: \"no\" is neither true nor false; using true";
    assert_eq!(warnings(&setup), [warning]);
    assert_eq!(first_exchange(&setup, &coding()).mode(), "append");
}
