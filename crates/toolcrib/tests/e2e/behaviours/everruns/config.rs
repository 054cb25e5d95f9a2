//! Tests of everruns' own file, which is recognised by its keys.

use serde_json::{Value, json};

use super::super::Setup;
use super::{agent, prefixed};

fn configured(capabilities: &Value, tools: &[Value]) -> Setup {
    Setup::json("everruns.json", json!({"capabilities": capabilities}), &[("dev", tools)])
}

#[test]
fn the_capability_alone_means_the_defaults() {
    for capabilities in [
        json!(["tool_search"]),
        json!(["auto_tool_search"]),
        json!({"auto_tool_search": {"threshold": 15}}),
    ] {
        assert_eq!(configured(&capabilities, &agent()).start().stubs().len(), 15);
        assert_eq!(configured(&capabilities, &agent()[..14]).start().stubs(), [""; 0]);
    }
}

#[test]
fn threshold_and_allowlist_can_be_configured() {
    let section = json!({"tool_search": {"threshold": 3, "never_defer": ["read_file", "bash"]}});
    let mut session = configured(&section, &agent()[..6]).start();
    assert_eq!(session.stubs().len(), 4);
    assert!(!session.is_stub("dev__read_file") && !session.is_stub("dev__bash"));
    assert_eq!(configured(&section, &agent()[..2]).start().stubs(), [""; 0]);
    let zero = json!({"tool_search": {"threshold": 0}});
    assert_eq!(configured(&zero, &agent()[..1]).start().stubs(), ["dev__read_file"]);
}

#[test]
fn invalid_values_fall_back_to_the_default_and_are_logged() {
    for (section, logged) in [
        (
            json!({"threshold": "20"}),
            "`capabilities.tool_search.threshold`: \"20\" is not a whole number",
        ),
        (
            json!({"never_defer": [7]}),
            "`capabilities.tool_search.never_defer.0`: 7 is not a name; ignored",
        ),
        (json!({"treshold": 1}), "`capabilities.tool_search.treshold`: unknown and ignored"),
    ] {
        let mut session = configured(&json!({"tool_search": section}), &agent()).start();
        session.logs(logged);
        assert_eq!(session.stubs().len(), 15);
    }
}

#[test]
fn without_the_capability_tool_search_is_off() {
    let mut session = configured(&json!(["web"]), &agent()).start();
    session.logs("`capabilities`: `tool_search` is not listed, so tool search is off");
    assert_eq!(session.list(), agent().iter().map(prefixed).collect::<Vec<_>>());
}
