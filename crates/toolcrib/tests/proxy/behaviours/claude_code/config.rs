//! Tests of Claude Code's own files, passed with `serve --config`.

use serde_json::{Value, json};

use super::{Setup, first_exchange, session, tool};
use crate::behaviours::warnings;

fn enabled(value: &Value) -> Setup {
    Setup::file("settings.json", json!({"env": {"ENABLE_TOOL_SEARCH": value}}).to_string())
}

/// Returns tools of about a thousand tokens each.
fn jobs(count: usize) -> Vec<Value> {
    let long = "word ".repeat(970);
    (0..count).map(|at| tool(&format!("mcp__acme__job{at}"), &long, &["what"], 1)).collect()
}

#[test]
fn the_variable_says_always_never_or_by_share() {
    let wide = |value: Value| enabled(&value).flags(&["--context", "1000000"]);
    for (value, mode) in [
        (json!(""), "append"),
        (json!("true"), "append"),
        (json!(true), "append"),
        (json!("false"), "pass-through"),
        (json!("auto"), "pass-through"),
        (json!("auto:0"), "append"),
    ] {
        let exchange = first_exchange(&wide(value.clone()), &jobs(3));
        assert_eq!(exchange.mode(), mode, "{value}: {}", exchange.why());
    }
    let narrow = |value: Value| enabled(&value).flags(&["--context", "60000"]);
    assert_eq!(first_exchange(&narrow(json!("AUTO:25")), &jobs(20)).mode(), "append");
    assert_eq!(first_exchange(&narrow(json!("auto:75")), &jobs(20)).mode(), "pass-through");
}

#[test]
fn auto_defers_from_a_tenth_of_the_context_on() {
    let tools = jobs(40);
    let auto = |context: usize| {
        let settings = format!("context = {context}\n[activation]\nmode = 'auto'");
        Setup::preset("claude-code", &settings).model("a-model")
    };
    let tokens = first_exchange(&auto(10_000), &tools).number("x-toolcrib-tokens-before");
    assert_eq!(first_exchange(&auto(10 * tokens), &tools).mode(), "append");
    assert_eq!(first_exchange(&auto(10 * tokens + 10), &tools).mode(), "pass-through");
    // Claude Code's own variable has the same effect as `mode = 'auto'`. Here the context window is looked up by the
    // model's name.
    let variable = enabled(&json!("auto")).model("claude-sonnet-4-5");
    assert_eq!(first_exchange(&variable, &tools).mode(), "append");
}

#[test]
fn a_server_that_says_always_load_is_not_deferred() {
    let config = json!({"mcpServers": {
        "github": {"command": "github-mcp", "alwaysLoad": true, "disabled": true},
        "slack": {"command": "slack-mcp", "alwaysLoad": false, "disabled": true},
    }});
    let setup = Setup::file(".mcp.json", config.to_string()).flags(&["--preset", "claude-code"]);
    assert_eq!(
        first_exchange(&setup, &session()).names(0),
        [
            "mcp__github__search_code",
            "mcp__github__create_pull_request",
            "mcp__github__get_file_contents",
            "tool_search"
        ]
    );
}

#[test]
fn an_invalid_value_is_logged_and_replaced() {
    for (value, mode, warning) in [
        (
            "Maybe",
            "append",
            "\"Maybe\" is not one of `true`, `false`, `auto`, `auto:N`; tool search is on",
        ),
        ("auto:150", "pass-through", "\"150\" is not within 0 to 100; using 100"),
        ("auto:half", "pass-through", "\"half\" is not a number; using 10"),
        ("auto:-5", "append", "\"-5\" is not within 0 to 100; using 0"),
    ] {
        let setup = enabled(&json!(value)).flags(&["--context", "1000000"]);
        assert_eq!(warnings(&setup), [format!("`env.ENABLE_TOOL_SEARCH`: {warning}")]);
        assert_eq!(first_exchange(&setup, &jobs(3)).mode(), mode, "{value}");
    }
}

#[test]
fn an_always_load_that_is_no_flag_is_left_out() {
    let config = json!({"mcpServers": {"github": {"command": "true", "alwaysLoad": "yes", "disabled": true}}});
    let setup = Setup::file(".mcp.json", config.to_string()).flags(&["--preset", "claude-code"]);
    let expected = "`mcpServers.github.alwaysLoad`: \"yes\" is not a boolean; ignored".to_owned();
    let logged = warnings(&setup);
    assert!(logged.contains(&expected), "{logged:?}");
    assert_eq!(first_exchange(&setup, &session()).names(0), ["tool_search"]);
}

#[test]
fn a_file_is_known_as_claude_codes_by_its_variable() {
    let exchange = first_exchange(&enabled(&json!("true")), &session());
    assert_eq!((exchange.mode(), exchange.names(0)), ("append", vec!["tool_search"]));
}
