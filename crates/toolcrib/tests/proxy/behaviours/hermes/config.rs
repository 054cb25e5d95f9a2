//! Tests of Hermes' own configuration, passed with `serve --config`.

use serde_json::Value;

use super::{BRIDGE, Setup, configured, first_exchange, on, session, tool};
use crate::behaviours::{names, search_json, warnings};

/// Returns sixty tools that all match the query `job`, so that limits on the number of hits take effect.
fn jobs() -> Vec<Value> {
    (0..60).map(|at| tool(&format!("mcp_acme_job{at}"), "Runs a job.", &[], 0)).collect()
}

/// Returns the number of hits of a search that requests no limit.
fn hits(setup: &Setup) -> usize {
    names(&search_json(setup, &jobs(), &["job"])[0], "matches").len()
}

#[test]
fn the_configuration_has_four_keys_and_these_defaults() {
    let call_with_text =
        ["enabled: auto", "threshold_pct: 10", "search_default_limit: 5", "max_search_limit: 20"];
    let empty = Setup::file("hermes.yaml", "tools:\n  tool_search: {}\n");
    let tools = jobs();
    let shown = |setup: Setup| first_exchange(&setup.flags(&["--context", "2000"]), &tools).sent;
    let preset = shown(Setup::preset("hermes", ""));
    assert!(preset[0].to_string().contains("60 tools on 1 server."), "{}", preset[0]);
    assert_eq!(preset, shown(configured(&call_with_text)));
    assert_eq!(preset, shown(empty));
}

#[test]
fn the_four_keys_are_taken_as_written() {
    let call_with_text = [
        "enabled: on",
        "threshold_pct: 2.5",
        "search_default_limit: \"7\"",
        "max_search_limit: 50",
    ];
    let setup = configured(&call_with_text);
    assert_eq!((warnings(&setup).len(), hits(&setup)), (0, 7));
    let share = configured(&["threshold_pct: 50"]).flags(&["--context", "10000"]).model("a-model");
    assert_eq!(first_exchange(&share, &jobs()).mode(), "pass-through");
    let share = configured(&["threshold_pct: 1"]).flags(&["--context", "10000"]).model("a-model");
    assert_eq!(first_exchange(&share, &jobs()).mode(), "bridge");
}

#[test]
fn on_activates_with_one_deferrable_tool_and_not_with_none() {
    let exchange = first_exchange(&on(), &session()[..3]);
    assert_eq!(exchange.names(0), [&["terminal", "read_file"], &BRIDGE[..]].concat());
    let tokens = |side: &str| exchange.number(&format!("x-toolcrib-tokens-{side}"));
    assert!(tokens("after") > tokens("before"), "few tools are deferred even if that costs tokens");
    assert_eq!(first_exchange(&on(), &session()[..2]).tools(0), &session()[..2]);
}

#[test]
fn off_disables_it_and_so_does_the_older_flag() {
    let flag = |flag: &str| Setup::file("hermes.yaml", format!("tools:\n  tool_search: {flag}\n"));
    let narrow = |setup: Setup| setup.flags(&["--context", "100"]);
    for (setup, mode) in [
        (configured(&["enabled: off"]), "pass-through"),
        (configured(&["enabled: NO"]), "pass-through"),
        (flag("false"), "pass-through"),
        (flag("true"), "bridge"),
    ] {
        let text = setup.text.clone();
        assert_eq!(first_exchange(&narrow(setup), &session()).mode(), mode, "{text}");
    }
    // `true` means `auto`, so nothing is deferred with a large context window. `enabled: yes` means `on`.
    assert_eq!(first_exchange(&flag("true"), &session()).mode(), "pass-through");
    assert_eq!(first_exchange(&configured(&["enabled: yes"]), &session()).mode(), "bridge");
}

#[test]
fn a_threshold_of_zero_percent_is_always() {
    let setup = configured(&["threshold_pct: 0"]).flags(&["--context", "1000000"]);
    assert_eq!(first_exchange(&setup, &session()).mode(), "bridge");
}

#[test]
fn an_invalid_value_is_clamped_or_replaced_and_logged() {
    for (line, warning) in [
        (
            "enabled: sometimes",
            "enabled`: \"sometimes\" is not one of `auto`, `on`, `off`; using `auto`",
        ),
        ("threshold_pct: 150", "threshold_pct`: 150 is not within 0 to 100; using 100"),
        ("threshold_pct: ten", "threshold_pct`: \"ten\" is not a number; using 10"),
        ("max_search_limit: many", "max_search_limit`: \"many\" is not a number; using 20"),
        ("search_default_limit: {}", "search_default_limit`: {} is not a number; using 5"),
        (
            "listing: auto",
            "listing`: unknown and ignored; the known keys are `enabled`, `threshold_pct`, \
             `search_default_limit`, `max_search_limit`",
        ),
    ] {
        assert_eq!(warnings(&configured(&[line])), [format!("`tools.tool_search.{warning}")]);
    }
    let many = configured(&["enabled: on", "search_default_limit: 99", "max_search_limit: 51"]);
    assert_eq!(
        warnings(&many),
        [
            "`tools.tool_search.max_search_limit`: 51 is not within 1 to 50; using 50",
            "`tools.tool_search.search_default_limit`: 99 is not within 1 to 50; using 50",
        ]
    );
    assert_eq!(hits(&many), 50);
    let neither = Setup::file("hermes.yaml", "tools:\n  tool_search: [1]\n");
    assert_eq!(warnings(&neither), ["`tools.tool_search`: [1] is not a boolean; using `auto`"]);
    let none = Setup::file("hermes.yaml", "tools: {}\n").flags(&["--preset", "hermes"]);
    assert_eq!(warnings(&none), ["`tools.tool_search`: missing; using the defaults"]);
    assert_eq!(first_exchange(&neither.flags(&["--context", "100"]), &session()).mode(), "bridge");
}

#[test]
fn a_file_is_known_as_hermes_by_its_key() {
    let exchange = first_exchange(&on(), &session());
    assert!(exchange.description(0, "tool_search").contains("5 tools on 3 servers."));
}
