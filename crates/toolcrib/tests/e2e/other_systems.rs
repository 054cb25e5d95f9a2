//! Tests that the gateway uses the config files of other systems unchanged, with the names and errors of those systems.

use serde_json::{Value, json};

use crate::support::client::{Client, Era, Exchange};
use crate::support::gateway::{Home, server, wait_until_ready};
use crate::support::wire::Wire;
use crate::support::{eventually, testkit_program};

/// Writes a config file with this name and text, and connects a client to a gateway that reads it.
fn with_file(home: &Home, name: &str, text: &str) -> Client {
    let file = home.path().join(name);
    std::fs::write(&file, text).unwrap();
    let binary = env!("CARGO_BIN_EXE_toolcrib");
    let program = [binary, "mcp", "--config", file.to_str().unwrap()].map(str::to_owned).to_vec();
    Client::named("test", Wire::stdio(&program, home.path()), Era::Older)
}

fn text(exchange: &Exchange) -> String {
    exchange.answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn servers_and_settings_of_hermes_are_read_from_its_file() {
    let home = Home::new("");
    let program = testkit_program("faulty-server", &["--tools", "3"]);
    let yaml = format!(
        "mcp_servers:\n  plant:\n    command: {}\n    args: {}\n    timeout: 60\n  \
         parked:\n    command: /no/such/program\n    enabled: false\n\
         tools:\n  tool_search:\n    enabled: on\n",
        json!(program[0]),
        json!(program[1..]),
    );
    let mut client = with_file(&home, "hermes.yaml", &yaml);
    let reply: Value = eventually("a match", || {
        let exchange = client.call("tool_search", &json!({"query": "returns its arguments"}));
        let reply: Value = serde_json::from_str(&text(&exchange)).ok()?;
        (reply["matches"][0]["name"] == "plant__echo").then_some(reply)
    });
    let found = &reply["matches"][0];
    assert_eq!((&found["source"], &found["source_name"]), (&json!("mcp"), &json!("plant")));
    let called = json!({"name": "plant__echo", "arguments": {"a": 1}});
    assert!(text(&client.call("tool_call", &called)).contains("\"a\":1"));
}

#[test]
fn always_load_uses_the_tool_names_of_opencode() {
    let home = Home::new("");
    let program = testkit_program("faulty-server", &["--tools", "3"]);
    let config = json!({
        "plugin": [["opencode-tool-search", {"alwaysLoad": ["dev_echo", "cwd"]}]],
        "mcp": {"dev": {"type": "local", "command": program}},
    });
    let mut client = with_file(&home, "opencode.json", &config.to_string());
    eventually("both in full", || {
        let tools = client.tools();
        let is = |name: &str, about: &str| {
            tools.iter().any(|tool| tool["name"] == name && tool["description"] == about)
        };
        let echo = is("dev__echo", "Returns its arguments.");
        let cwd = is("dev__cwd", "Returns the directory the server runs in.");
        let env = is("dev__env", "Returns the environment of the server.");
        (echo && cwd && !env).then_some(())
    });
}

#[test]
fn under_claude_code_a_call_without_a_search_fails_with_its_error() {
    let fixture = server("fixture", &testkit_program("fixture-server", &[]), "");
    let home = Home::new(&format!("preset = \"claude-code\"\n{fixture}"));
    let mut client = home.stdio("test", Era::Older);
    wait_until_ready(&mut client);
    let name = "fixture__test_sampling";
    for exchange in [
        client.call(name, &json!({"prompt": 5})),
        client.call("tool_call", &json!({"name": name, "arguments": {"prompt": 5}})),
    ] {
        assert_eq!(exchange.answer["result"]["isError"], true, "{}", exchange.answer);
        let refusal = text(&exchange);
        assert!(refusal.contains("InputValidationError: "), "{refusal}");
        assert!(refusal.contains("prompt"), "{refusal}");
    }
}
