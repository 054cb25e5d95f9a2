//! Tests with real clients: the official SDKs in Python and TypeScript, over both transports.
//!
//! Each client runs a script in `tests/clients`, which uses every client feature and prints the results as one
//! document. All documents must be the same, for every language, transport and protocol version.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::gateway::{DEFERRED, Home, server};
use crate::support::{DEADLINE, Program, assert_same, peer, root, testkit_program};

/// Configures two servers. One asks questions, reports progress and hangs; the other has resources and prompts, and
/// changes its tools. Returns the home folder and the path of the first server's log.
fn home() -> (Home, String) {
    let home = Home::new("");
    let log = home.path().join("server.log").to_str().unwrap().to_owned();
    let faulty = testkit_program("faulty-server", &["--hang", "stuck", "--log", &log]);
    let fixture = testkit_program("fixture-server", &[]);
    home.configure(&format!(
        "{DEFERRED}{}{}",
        server("faulty", &faulty, ""),
        server("fixture", &fixture, "")
    ));
    (home, log)
}

fn script(name: &str) -> String {
    root().join("tests/clients").join(name).to_str().unwrap().to_owned()
}

fn python(era: &str) -> Program {
    vec![peer("python/bin/python"), script("client.py"), era.to_owned()]
}

fn typescript() -> Program {
    let sdk = peer("node_modules/@modelcontextprotocol/sdk");
    vec![peer("node_modules/.bin/node"), script("client.mjs"), sdk]
}

/// Runs a client over this transport, and returns the document that it prints.
fn client_report(client: &Program, transport: &str) -> Value {
    let (home, log) = home();
    let gateway = (transport == "http").then(|| home.serve());
    let target = gateway.as_ref().map_or_else(|| home.mcp(), |gateway| vec![gateway.url.clone()]);
    let ran = Command::new("timeout")
        .arg(DEADLINE.as_secs().to_string())
        .args(client)
        .args(target)
        .env("HOME", home.path())
        .env("XDG_STATE_HOME", home.path().join("state"))
        .env("SERVER_LOG", &log)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        ran.status.success(),
        "{client:?} {transport}: {}\nout: {}\nerr: {}\nserver: {}",
        ran.status,
        text(&ran.stdout),
        text(&ran.stderr),
        fs::read_to_string(&log).unwrap_or_default()
    );
    serde_json::from_slice(&ran.stdout).unwrap()
}

fn expected(version: &str) -> Value {
    let word = json!({"word": "kiwi"});
    let answer = json!({"action": "accept", "content": {"word": "kiwi"}});
    let sampled = json!({
        "role": "assistant",
        "content": {"type": "text", "text": "kiwi"},
        "model": "none",
        "stopReason": "endTurn",
    });
    json!({
        "version": version,
        "server": "toolcrib",
        "tools": ["tool_search", "tool_describe", "tool_call"],
        "search": ["faulty__echo"],
        "describe": {"type": "object"},
        "call": {"content": [{"type": "text", "text": word.to_string()}], "structuredContent": word},
        "with progress": {"content": [{"type": "text", "text": "It is done."}], "isError": false},
        "progress": [[0, 100], [50, 100], [100, 100]],
        "cancelled": true,
        "elicitation": {"result": answer},
        "sampling": {"result": sampled},
        "questions": [["elicitation", "[server \"faulty\"] Which word?"], ["sampling", "Which word?"]],
        "resources": [
            "fixture+test://static-binary",
            "fixture+test://static-text",
            "fixture+test://watched-resource",
        ],
        "resource": {"contents": [{
            "uri": "fixture+test://static-text",
            "mimeType": "text/plain",
            "text": "A text that never changes.",
        }]},
        "prompts": [
            "fixture__test_input_required_result_prompt",
            "fixture__test_prompt_with_arguments",
            "fixture__test_prompt_with_embedded_resource",
            "fixture__test_prompt_with_image",
            "fixture__test_simple_prompt",
        ],
        "prompt": {"messages": [{
            "role": "user",
            "content": {"type": "text", "text": "The first is one, the second is two."},
        }]},
        "change": "notified",
    })
}

fn sees_everything(client: &Program, transport: &str, version: &str) {
    assert_same(
        &client_report(client, transport),
        &expected(version),
        &format!("{client:?} over {transport}"),
    );
}

#[test]
fn a_legacy_python_client_over_stdio() {
    sees_everything(&python("legacy"), "stdio", "2025-11-25");
}

#[test]
fn a_legacy_python_client_over_http() {
    sees_everything(&python("legacy"), "http", "2025-11-25");
}

#[test]
fn a_stateless_python_client_over_stdio() {
    sees_everything(&python("auto"), "stdio", "2026-07-28");
}

#[test]
fn a_stateless_python_client_over_http() {
    sees_everything(&python("auto"), "http", "2026-07-28");
}

#[test]
fn a_typescript_client_over_stdio() {
    sees_everything(&typescript(), "stdio", "2025-11-25");
}

#[test]
fn a_typescript_client_over_http() {
    sees_everything(&typescript(), "http", "2025-11-25");
}
