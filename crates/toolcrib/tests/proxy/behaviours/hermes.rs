//! Tests of docs/presets/hermes.md through the proxy.

mod activation;
mod bridge;
mod config;
mod search;

use serde_json::Value;

use super::{Proxy, Setup, call, done, first_exchange, search, strings, tool};

const BRIDGE: [&str; 3] = ["tool_search", "tool_describe", "tool_call"];

/// Returns two core tools, a plugin's tool and the tools of three servers, named as Hermes names them.
fn session() -> Vec<Value> {
    vec![
        tool("terminal", "Run a shell command.", &["command"], 1),
        tool("read_file", "Read a file.", &["path"], 1),
        tool("weather_now", "The weather at a place.", &["place"], 1),
        tool("mcp_github_create_issue", "Create an issue in a repository.", &["title", "body"], 1),
        tool("mcp_github_list_issues", "List what is open.", &["repository"], 1),
        tool("mcp_slack_post", "Send a message.", &["channel", "text"], 2),
        tool("mcp_calendar_add", "Plan a meeting.", &["day", "attendees"], 1),
    ]
}

/// Writes Hermes' own file, with these lines under `tool_search`.
fn configured(lines: &[&str]) -> Setup {
    let lines: Vec<String> = lines.iter().map(|line| format!("    {line}\n")).collect();
    Setup::file("hermes.yaml", format!("tools:\n  tool_search:\n{}", lines.concat()))
}

fn on() -> Setup {
    configured(&["enabled: on"])
}

#[test]
fn core_tools_stay_and_those_of_servers_and_plugins_are_deferred() {
    let exchange = first_exchange(&on(), &session());
    assert_eq!(exchange.mode(), "bridge");
    assert_eq!(exchange.names(0), [&["terminal", "read_file"], &BRIDGE[..]].concat());
}

#[test]
fn every_core_tool_of_the_current_release_stays() {
    let core = [
        "write_file",
        "patch",
        "search_files",
        "todo",
        "memory",
        "browser_navigate",
        "browser_cdp",
        "web_search",
        "web_extract",
        "clarify",
        "execute_code",
        "delegate_task",
        "session_search",
        "send_message",
        "process",
        "skills_list",
        "skill_view",
        "skill_manage",
        "cronjob",
        "vision_analyze",
        "image_generate",
        "text_to_speech",
        "ha_get_state",
        "kanban_attachments",
        "computer_use",
        "read_terminal",
    ];
    let mut tools: Vec<Value> = core.map(|name| tool(name, "Built in.", &["what"], 1)).into();
    tools.extend(session().split_off(2));
    assert_eq!(first_exchange(&on(), &tools).names(0), [&core[..], &BRIDGE].concat());
}

#[test]
fn a_server_cannot_escape_deferral_by_a_core_name() {
    let tools = [tool("evil__terminal", "", &[], 0), tool("mcp_evil_terminal", "", &[], 0)];
    assert_eq!(first_exchange(&on(), &tools).names(0), BRIDGE);
}

#[test]
fn more_core_tools_are_a_line_in_the_settings() {
    let more = "[activation]\nmode = 'on'\n[defer]\nnever = ['/weather_*']";
    let exchange = first_exchange(&Setup::preset("hermes", more), &session());
    assert_eq!(
        exchange.names(0),
        [&["terminal", "read_file", "weather_now"], &BRIDGE[..]].concat()
    );
}

#[test]
fn the_description_of_the_bridge_counts_the_deferred_tools_and_changes_with_them() {
    let mut proxy = Proxy::start(&on(), [search("issue"), done(), done()]);
    let exchange = proxy.ask(&session()[..5]);
    let before = exchange.description(0, "tool_search");
    assert!(before.ends_with(":\n3 tools on 1 server.\n"), "{before}");
    let exchange = proxy.continue_with(&session());
    let after = exchange.description(0, "tool_search");
    assert!(after.ends_with(":\n5 tools on 3 servers.\n"), "{after}");
}

#[test]
fn the_three_bridge_tools_cost_about_300_tokens() {
    // The figure includes the note that explains the bridge, about 70 tokens. In the proxy, the note is part of a
    // tool's description.
    let exchange = first_exchange(&on(), &session()[2..]);
    let tokens = exchange.number("x-toolcrib-tokens-after");
    assert!((250..=390).contains(&tokens), "{tokens}");
}

#[test]
fn a_described_schema_is_in_the_history_and_the_prefix_stays() {
    let describe = call("tool_describe", &serde_json::json!({"name": "mcp_slack_post"}));
    let mut proxy = Proxy::start(&on(), [describe, done(), done()]);
    let first = proxy.ask(&session());
    let next = proxy.continue_with(&session());
    assert_eq!((first.tools(1), next.tools(0)), (first.tools(0), first.tools(0)));
    let schema = strings(&["channel", "text"], 2).to_string();
    let history = next.sent[0]["messages"].as_array().unwrap();
    assert!(history[2]["content"].as_str().unwrap().contains(&schema), "{}", history[2]);
}

#[test]
fn the_note_says_search_then_describe_then_call() {
    let exchange = first_exchange(&on(), &session());
    let note = "Most of your tools are deferred: `tool_search` finds them, `tool_call` runs them. \
                Search for what you need, get its schema with `tool_describe`, then call it.";
    assert!(exchange.description(0, "tool_search").starts_with(note));
}

#[test]
fn a_client_with_hermes_own_bridge_is_passed_untouched() {
    let mut tools = session();
    tools.extend(BRIDGE.map(|name| tool(name, "Hermes' own.", &["query"], 1)));
    let exchange = first_exchange(&on(), &tools);
    assert_eq!(exchange.why(), "the client has a tool search of its own");
    assert!(exchange.is_untouched());
}
