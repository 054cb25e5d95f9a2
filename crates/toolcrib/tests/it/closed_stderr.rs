//! Tests of the gateway with a closed standard error, for example because the client closed the pipe.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

#[test]
fn a_closed_standard_error_does_not_stop_the_gateway() {
    let config = crate::file("unread/toolcrib.toml", "");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut gateway = Command::new(env!("CARGO_BIN_EXE_toolcrib"))
        .args(["mcp", "--own", "--config", &config])
        .env("HOME", env!("CARGO_TARGET_TMPDIR"))
        .env_remove("XDG_STATE_HOME")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(writer)
        .spawn()
        .unwrap();
    let mut input = gateway.stdin.take().unwrap();
    let mut lines = BufReader::new(gateway.stdout.take().unwrap()).lines();
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client,
    }});
    writeln!(input, "{hello}").unwrap();
    let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(answer["id"], 1, "{answer}");
    // A search writes to the log, so the closed standard error matters here.
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let search = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "tool_search", "arguments": {"query": "anything"},
    }});
    writeln!(input, "{ready}\n{search}").unwrap();
    let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(answer["id"], 2, "{answer}");
    drop(input);
    assert!(gateway.wait().unwrap().success());
}
