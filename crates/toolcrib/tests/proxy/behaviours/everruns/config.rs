//! Tests of everruns' own configuration, passed with `serve --config`.

use serde_json::{Value, json};

use super::{agent, first_exchange, is_stub};
use crate::behaviours::{Setup, warnings};

fn configured(capabilities: &Value) -> Setup {
    Setup::file("everruns.json", json!({"capabilities": capabilities}).to_string())
}

#[test]
fn the_capability_alone_means_the_defaults() {
    let setup = configured(&json!(["tool_search"]));
    let exchange = first_exchange(&setup, &agent());
    assert_eq!(
        (exchange.mode(), exchange.why()),
        ("reveal", "15 tools, the threshold is 15; configured")
    );
    assert_eq!(first_exchange(&setup, &agent()[..14]).mode(), "pass-through");
}

#[test]
fn the_automatic_capability_is_this_one_where_nothing_is_hosted() {
    let setup = configured(&json!(["auto_tool_search"]));
    let exchange = first_exchange(&setup, &agent());
    let why = "15 tools, the threshold is 15; the API has no such feature";
    assert_eq!((exchange.mode(), exchange.why()), ("reveal", why));
    assert!(is_stub(&exchange, 0, "bash"));
}

#[test]
fn threshold_and_allowlist_can_be_configured() {
    let config = json!({"tool_search": {"threshold": 3, "never_defer": ["bash"]}});
    let exchange = first_exchange(&configured(&config), &agent()[4..7]);
    assert!(is_stub(&exchange, 0, "web_fetch") && !is_stub(&exchange, 0, "bash"));
    assert_eq!(first_exchange(&configured(&config), &agent()[4..6]).mode(), "pass-through");
    let zero = configured(&json!({"tool_search": {"threshold": 0}}));
    assert!(is_stub(&first_exchange(&zero, &agent()[..1]), 0, "read_file"));
}

#[test]
fn without_the_capability_nothing_is_deferred_and_the_log_says_so() {
    let setup = configured(&json!(["web"])).flags(&["--preset", "everruns"]);
    assert_eq!(first_exchange(&setup, &agent()).tools(0), agent());
    let warning = "`capabilities`: `tool_search` is not listed, so tool search is off";
    assert_eq!(warnings(&setup), [warning]);
}

#[test]
fn an_invalid_value_is_logged_and_the_default_is_used() {
    for (own, warning) in [
        (
            json!({"threshold": 2.5}),
            "`capabilities.tool_search.threshold`: 2.5 is not a whole number of 0 or more; using 15",
        ),
        (
            json!({"never_defer": [7]}),
            "`capabilities.tool_search.never_defer.0`: 7 is not a name; ignored",
        ),
        (
            json!({"treshold": 20}),
            "`capabilities.tool_search.treshold`: unknown and ignored; the known keys are `threshold`, `never_defer`",
        ),
    ] {
        let setup = configured(&json!({"tool_search": own}));
        assert_eq!(warnings(&setup), [warning]);
        assert_eq!(first_exchange(&setup, &agent()).mode(), "reveal");
    }
}
