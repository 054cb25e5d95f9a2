//! Tests of Claude Code's own files, which are recognised by their keys.

use serde_json::{Value, json};

use super::super::{Setup, numbered};
use super::{github, slack};

/// Writes a `settings.json` that sets the variable `ENABLE_TOOL_SEARCH` to this value.
fn enabled(value: &Value, tools: &[Value]) -> Setup {
    let keys = json!({"env": {"ENABLE_TOOL_SEARCH": value}});
    Setup::json("settings.json", keys, &[("acme", tools)])
}

/// Returns forty tools of about five hundred tokens each.
fn jobs() -> Vec<Value> {
    numbered(40, "job", &"word ".repeat(500))
}

fn defers(setup: Setup) -> bool {
    setup.start().names() == ["tool_search"]
}

#[test]
fn the_variable_says_always_or_never() {
    for (value, deferred) in
        [(json!("true"), true), (json!(""), true), (json!("auto:0"), true), (json!("false"), false)]
    {
        assert_eq!(defers(enabled(&value, &slack())), deferred, "{value}");
    }
}

#[test]
fn auto_defers_from_a_share_of_the_context_on() {
    let decides = |value: &str, context: &str| {
        defers(enabled(&json!(value), &jobs()).flags(&["--context", context]))
    };
    // The tools have about 20,000 tokens. This is more than a tenth of a context window of 100,000 tokens, but less
    // than a tenth of 400,000.
    assert!(decides("auto", "100000") && !decides("auto", "400000"));
    assert!(decides("auto:2", "400000") && !decides("AUTO:50", "100000"));
}

#[test]
fn with_an_unknown_context_window_a_share_of_the_usual_window_decides_and_that_is_logged() {
    for (value, threshold, deferred) in [("auto:5", 10_000, true), ("auto:25", 50_000, false)] {
        let notice = format!(" is {threshold} because the context window is unknown");
        let setup = enabled(&json!(value), &jobs());
        assert!(setup.doctor().contains(&notice), "{value}");
        let mut session = setup.start();
        assert_eq!(session.names() == ["tool_search"], deferred, "{value}");
        session.logs(&notice);
    }
}

#[test]
fn a_server_that_says_always_load_is_not_deferred() {
    let keys =
        json!({"mcpServers": {"github": {"alwaysLoad": true}, "slack": {"alwaysLoad": false}}});
    let servers: [(&str, &[Value]); 2] = [("github", &github()), ("slack", &slack())];
    let setup = Setup::json(".mcp.json", keys, &servers).flags(&["--preset", "claude-code"]);
    let names = setup.start().names();
    assert_eq!(
        names,
        [
            "github__search_code",
            "github__create_pull_request",
            "github__get_file_contents",
            "tool_search"
        ]
    );
}

#[test]
fn invalid_values_fall_back_and_are_logged() {
    for (value, logged) in [
        ("Maybe", "\"Maybe\" is not one of `true`, `false`, `auto`, `auto:N`; tool search is on"),
        ("auto:-5", "\"-5\" is not within 0 to 100; using 0"),
        ("auto:150", "\"150\" is not within 0 to 100; using 100"),
        ("auto:half", "\"half\" is not a number; using 10"),
    ] {
        let session = enabled(&json!(value), &slack()).start();
        session.logs(logged);
    }
    let keys = json!({"mcpServers": {"slack": {"alwaysLoad": "yes"}}});
    let setup = Setup::json(".mcp.json", keys, &[("slack", &slack())]);
    let mut session = setup.flags(&["--preset", "claude-code"]).start();
    session.logs("`mcpServers.slack.alwaysLoad`: \"yes\" is not a boolean; ignored");
    assert_eq!(session.names(), ["tool_search"]);
}
