//! The official conformance suite, run against the gateway with `fixture-server` behind it.
//!
//! The suite runs for both protocol versions, and no failures are expected, not even in the scenarios that the suite
//! does not count, such as those about tasks. The fixture passes the suite on its own, so any failure here is the
//! gateway's fault.

use std::process::Command;

use serde_json::json;

use crate::support::client::{Client, Era};
use crate::support::gateway::{
    DEFERRED, Home, HttpServerProcess, IN_FULL, server, start_http_server,
};

use crate::support::{Program, eventually, root, testkit, testkit_program};

/// The config line that removes the prefix of tool names, because the suite uses the fixture's own names.
const OWN_NAMES: &str = "prefix = \"\"\n";

/// Returns the config section of the fixture as a server that the gateway starts.
fn over_stdio(more: &str) -> String {
    server("fixture", &testkit_program("fixture-server", &[]), &format!("{OWN_NAMES}{more}"))
}

/// Starts the fixture as an HTTP server. Returns its config section and its process; the server runs until the process
/// is dropped.
fn over_http(more: &str) -> (String, HttpServerProcess) {
    let mut command = Command::new(testkit("fixture-server"));
    command.args(["--http", "127.0.0.1:0"]);
    let server = start_http_server(command);
    let url = json!(server.url);
    (format!("[servers.fixture]\nurl = {url}\n{OWN_NAMES}{more}"), server)
}

/// Returns a config with the section `fixture` and another server, in which deferral is switched on.
fn with_deferral(fixture: &str) -> String {
    let many = server("many", &testkit_program("faulty-server", &["--tools", "30"]), "");
    format!("{DEFERRED}{fixture}{many}")
}

/// The suite calls a tool that runs only as a task, as a client without tasks, and expects an error. By default, the
/// gateway instead waits for the task and answers the call.
const REJECT_TASKS: &str = "[gateway]\nunsupported_tasks = \"reject\"\n";

/// The scenario that the suite itself skips. It makes no checks.
const SKIPPED: &str = "tasks-status-notifications";

const NEVER_DEFERRED: &str = "always_load = [\"*\"]\n";

/// Runs the suite against a gateway with this config over HTTP.
fn passes(config: &str, listed: &[&str]) {
    let home = Home::new(&format!("{REJECT_TASKS}{config}"));
    suite_passes(&home, listed);
}

/// Runs the suite against `toolcrib mcp` with this config. The suite speaks only HTTP, so another gateway, which changes
/// nothing, is between the suite and the standard streams.
fn passes_over_stdio(config: &str, listed: &[&str], command: impl Fn(&Home) -> Program) {
    let inner = Home::new(&format!("{REJECT_TASKS}{config}"));
    let (folder, state) = (inner.path(), inner.path().join("state"));
    let env = format!("env = {{ HOME = {}, XDG_STATE_HOME = {} }}", json!(folder), json!(state));
    let tested = server("tested", &command(&inner), &format!("{OWN_NAMES}{env}"));
    suite_passes(&Home::new(&format!("{REJECT_TASKS}{IN_FULL}{tested}")), listed);
}

fn suite_passes(home: &Home, listed: &[&str]) {
    let gateway = home.serve();
    let mut client = Client::at(&gateway.url, Era::Older);
    assert_eq!(client.initialize_result["serverInfo"]["name"], "toolcrib");
    eventually("the tools that the suite asks for", || {
        let tools = client.tools();
        let has = |name: &&str| tools.iter().any(|tool| tool["name"] == **name);
        listed.iter().all(has).then_some(())
    });
    let ran = Command::new(root().join("scripts/conformance"))
        .arg(&gateway.url)
        .env("CONFORMANCE_RESULTS", home.path().join("results"))
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{stdout}{}", String::from_utf8_lossy(&ran.stderr));
    // The suite's own count is checked, so that a run without any scenario does not pass.
    let passed = |line: &str| stdout.lines().any(|stdout| stdout.starts_with(line));
    assert!(passed("2025-11-25: 30 of 30 required scenarios passed"), "{stdout}");
    assert!(passed("2026-07-28: 37 of 37 required scenarios passed"), "{stdout}");
    let unscored: Vec<&str> = stdout.lines().filter(|line| line.contains(": unscored: ")).collect();
    let skipped = format!("2026-07-28: unscored: {SKIPPED}: 0 checks passed, 0 failed");
    assert_eq!(unscored, [skipped], "{stdout}");
    // Nine of the other twelve scenarios are about tasks.
    assert!(stdout.contains("; 12 of 13 unscored"), "{stdout}");
}

#[test]
fn without_deferral_over_stdio() {
    passes(&format!("{IN_FULL}{}", over_stdio("")), &["test_simple_text"]);
}

#[test]
fn without_deferral_over_http() {
    let (fixture, _process) = over_http("");
    passes(&format!("{IN_FULL}{fixture}"), &["test_simple_text"]);
}

#[test]
fn with_deferral_over_stdio() {
    let config = with_deferral(&over_stdio(NEVER_DEFERRED));
    passes(&config, &["test_simple_text", "tool_search", "tool_describe", "tool_call"]);
}

#[test]
fn with_deferral_over_http() {
    let (fixture, _process) = over_http(NEVER_DEFERRED);
    let config = with_deferral(&fixture);
    passes(&config, &["test_simple_text", "tool_search", "tool_describe", "tool_call"]);
}

#[test]
fn without_deferral_through_the_background_gateway() {
    let config = format!("{IN_FULL}{}", over_stdio(""));
    passes_over_stdio(&config, &["test_simple_text"], Home::mcp);
}

#[test]
fn with_deferral_through_the_background_gateway() {
    let config = with_deferral(&over_stdio(NEVER_DEFERRED));
    passes_over_stdio(&config, &["test_simple_text"], Home::mcp);
}

#[test]
fn without_deferral_through_a_gateway_of_its_own() {
    let config = format!("{IN_FULL}{}", over_stdio(""));
    passes_over_stdio(&config, &["test_simple_text"], Home::own_mcp);
}

#[test]
fn with_deferral_through_a_gateway_of_its_own() {
    let config = with_deferral(&over_stdio(NEVER_DEFERRED));
    passes_over_stdio(&config, &["test_simple_text"], Home::own_mcp);
}
