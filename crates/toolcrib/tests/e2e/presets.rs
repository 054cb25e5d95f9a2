//! Tests of presets through the gateway: what a real client receives under each preset, and what clients of the newer
//! protocol get.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::client::{Client, Era};
use crate::support::gateway::{Home, server};
use crate::support::{DEADLINE, assert_same, peer, root, testkit_program};

/// Returns a config with the preset, if there is one, and with the server section `many`. Under this config, the first
/// list waits until the server is up, even on a busy machine.
fn config(preset: Option<&str>, many: &str) -> String {
    let line = preset.map(|preset| format!("preset = \"{preset}\"\n")).unwrap_or_default();
    format!("{line}[activation]\nmode = \"on\"\n[gateway]\nfirst_list_wait = 600\n{many}")
}

fn many() -> String {
    server("many", &testkit_program("faulty-server", &["--tools", "40"]), "")
}

/// Returns everything that a client with the TypeScript SDK receives while it finds and runs a tool.
fn client_report(preset: Option<&str>) -> String {
    let home = Home::new("");
    let ready = home.path().join("ready");
    let late = ["--tools", "40", "--start-when", ready.to_str().unwrap()];
    let many = server("many", &testkit_program("faulty-server", &late), "start_timeout = 600\n");
    home.configure(&config(preset, &many));
    let script = root().join("tests/clients/preset.mjs");
    let ran = Command::new("timeout")
        .arg(DEADLINE.as_secs().to_string())
        .arg(peer("node_modules/.bin/node"))
        .arg(script)
        .arg(peer("node_modules/@modelcontextprotocol/sdk"))
        .args(["many__tool_7", "many__tool_7", "{\"query\":\"kiwi\"}"])
        .args(home.mcp())
        .env("READY", &ready)
        .env("HOME", home.path())
        .env("XDG_STATE_HOME", home.path().join("state"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{preset:?}: {}: {error}", ran.status);
    String::from_utf8(ran.stdout).unwrap()
}

/// Returns a client's report under this preset. Checks that the report equals the golden file, which `UPDATE_GOLDEN=1`
/// rewrites, and that the report without a preset is different, unless the preset is `default`.
fn golden(preset: &str) -> Value {
    let found = client_report(Some(preset));
    let file = root().join(format!("crates/toolcrib/tests/e2e/golden/{preset}.json"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, &found).unwrap();
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    if found != expected {
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        assert_same(&value(&found), &value(&expected), preset);
        panic!("{preset}: only the order of the values differs");
    }
    let is_default = preset == "default";
    assert_eq!(
        client_report(None) == found,
        is_default,
        "{preset}: only `default` is the same as no preset"
    );
    serde_json::from_str(&found).unwrap()
}

fn names(tools: &Value) -> Vec<&str> {
    tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn tool<'a>(tools: &'a Value, name: &str) -> &'a Value {
    tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap()
}

/// Checks that a call with wrong arguments was refused with the schema, and that a call with correct arguments ran.
fn assert_ran(report: &Value) {
    assert_eq!(report["refused"]["isError"], true, "{}", report["refused"]);
    let text = report["refused"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("input_schema"), "{text}");
    assert_eq!(
        report["result"]["structuredContent"],
        json!({"query": "kiwi"}),
        "{}",
        report["result"]
    );
}

#[test]
fn default_is_the_bridge() {
    let report = golden("default");
    assert_eq!(names(&report["list"]), ["tool_search", "tool_describe", "tool_call"]);
    assert_eq!((&report["changed"], &report["newly_listed"]), (&json!(0), &json!([])));
    assert_ran(&report);
}

#[test]
fn hermes_is_the_bridge_with_its_own_replies() {
    let report = golden("hermes");
    assert_eq!(names(&report["list"]), ["tool_search", "tool_describe", "tool_call"]);
    assert_eq!((&report["changed"], &report["newly_listed"]), (&json!(0), &json!([])));
    assert!(report["search"]["structuredContent"]["matches"].is_array(), "{}", report["search"]);
    assert_ran(&report);
}

#[test]
fn everruns_reveals_found_tools_in_place_of_their_stubs() {
    let report = golden("everruns");
    let stub = &tool(&report["list"], "many__tool_7")["inputSchema"];
    assert_eq!((&stub["properties"], &stub["additionalProperties"]), (&json!({}), &json!(true)));
    assert_eq!(report["changed"], 1);
    assert_eq!(names(&report["newly_listed"]), ["many__tool_7"]);
    let revealed = &report["newly_listed"][0]["inputSchema"];
    assert!(revealed["properties"]["query"].is_object(), "{revealed}");
    assert_eq!(
        report["order"],
        json!(names(&report["list"])),
        "a revealed tool keeps its position"
    );
    assert_ran(&report);
}

#[test]
fn everruns_050_reveals_without_a_hint() {
    let report = golden("everruns@0.50");
    let open = json!({"type": "object", "properties": {}, "additionalProperties": true});
    assert_eq!(tool(&report["list"], "many__tool_7")["inputSchema"], open);
    assert_eq!(report["changed"], 1);
    assert_eq!(names(&report["newly_listed"]), ["many__tool_7"]);
    assert_eq!(
        report["order"],
        json!(names(&report["list"])),
        "a revealed tool keeps its position"
    );
    assert_ran(&report);
}

#[test]
fn opencode_withholds_descriptions_and_has_both_searches() {
    let report = golden("opencode");
    let terse = tool(&report["list"], "many__tool_7");
    assert_eq!(terse["description"], "[d]");
    assert!(terse["inputSchema"]["properties"]["query"].is_object(), "{terse}");
    let listed = names(&report["list"]);
    assert_eq!(listed[listed.len() - 2..], ["tool_search", "tool_search_regex"]);
    assert_eq!((&report["changed"], &report["newly_listed"]), (&json!(0), &json!([])));
    assert_ran(&report);
}

#[test]
fn claude_code_lists_names_and_adds_found_tools() {
    let report = golden("claude-code");
    assert_eq!(names(&report["list"]), ["tool_search"]);
    let listing = report["list"][0]["description"].as_str().unwrap();
    assert!(listing.contains("many__tool_39"), "{listing}");
    assert_eq!(report["changed"], 1);
    assert_eq!(names(&report["newly_listed"]), ["many__tool_7"]);
    assert_eq!(report["order"], json!(["tool_search", "many__tool_7"]));
    // The reply has the preset's format. A separate text says that the client may list the tool with a prefix.
    let content = &report["search"]["content"];
    assert!(content[0]["text"].as_str().unwrap().ends_with("</functions>\n"), "{content}");
    for text in [&content[1]["text"], &report["instructions"]] {
        assert!(text.as_str().unwrap().contains("have a prefix"), "{text}");
    }
    assert_ran(&report);
}

/// Two sessions share one gateway. A tool that one session found must not appear in the other session's list until that
/// session finds it, too.
#[test]
fn sessions_that_found_the_same_tools_have_the_same_list() {
    for preset in ["everruns", "claude-code"] {
        let home = Home::new(&config(Some(preset), &many()));
        let gateway = home.serve();
        let mut sessions = [(); 2].map(|()| Client::at(&gateway.url, Era::Older));
        let [first, second] = &mut sessions;
        let bytes = |client: &mut Client| Value::from(client.tools()).to_string();
        let bare = bytes(first);
        let find = |client: &mut Client, name: &str| {
            client.result(
                "tools/call",
                &json!({"name": "tool_search", "arguments": {"query": name}}),
            );
        };
        find(first, "many__tool_3");
        find(first, "many__tool_9");
        let found = bytes(first);
        assert_ne!(found, bare, "{preset}");
        assert_eq!(bytes(second), bare, "{preset}: sessions do not share found tools");
        find(second, "many__tool_3");
        find(second, "many__tool_9");
        assert_eq!(bytes(second), found, "{preset}");
    }
}

/// Without a session, there is no list to which found tools could be added. Such requests get the bridge, and the log
/// and `doctor` report this.
#[test]
fn without_sessions_reveal_and_append_are_the_bridge() {
    let bridge = ["tool_search", "tool_describe", "tool_call"];
    for (preset, notices) in [("everruns", 1), ("claude-code", 1), ("opencode", 0), ("default", 0)]
    {
        let home = Home::new(&config(Some(preset), &many()));
        let mut client = home.stdio("test", Era::Newer);
        let bytes = |client: &mut Client| Value::from(client.tools());
        let list = bytes(&mut client);
        assert_eq!(names(&list) == bridge, preset != "opencode", "{preset}: {list}");
        let query = json!({"query": "many__tool_7"});
        client.result("tools/call", &json!({"name": "tool_search", "arguments": query}));
        assert_eq!(bytes(&mut client), list, "{preset}");
        let exchange = client.bridge("many__tool_7", &json!({"query": "kiwi"}));
        assert_eq!(
            exchange.answer["result"]["structuredContent"],
            json!({"query": "kiwi"}),
            "{preset}"
        );
        let count = |text: &str| text.matches("requires sessions").count();
        // The notice is logged before the first server starts. This client has already called a server, so a notice
        // would be in the log by now.
        let log = home.log();
        assert!(log.contains("server is up"), "{preset}: {log}");
        assert_eq!(count(&log), notices, "{preset}: {log}");
        let doctor = home.doctor();
        let ran = Command::new(&doctor[0])
            .args(&doctor[1..])
            .env("XDG_STATE_HOME", home.path().join("state"))
            .output()
            .unwrap();
        assert_eq!(count(&String::from_utf8_lossy(&ran.stdout)), notices, "{preset}");
    }
}

/// With MCP there is no provider that could resolve references or run a hosted search, so the gateway uses other
/// disclosures.
#[test]
fn reference_is_append_and_hosted_is_the_bridge() {
    for (mode, listed, notice) in [
        ("reference", &["tool_search"][..], "the gateway uses `append`"),
        ("hosted", &["tool_search", "tool_describe", "tool_call"], "the gateway uses `bridge`"),
    ] {
        let home = Home::new(&format!("disclosure = \"{mode}\"\n{}", config(None, &many())));
        let mut client = home.stdio("test", Era::Older);
        assert_eq!(names(&Value::from(client.tools())), listed, "{mode}");
        let find = json!({"name": "tool_search", "arguments": {"query": "many__tool_7"}});
        let reply = client.result("tools/call", &find);
        // In Toolcrib's own format, the hint about prefixes is one of the notes.
        let notes = reply["structuredContent"]["notes"].to_string();
        assert_eq!(notes.contains("have a prefix"), mode == "reference", "{mode}: {reply}");
        let log = home.log();
        assert_eq!(log.matches(notice).count(), 1, "{mode}: {log}");
    }
}
