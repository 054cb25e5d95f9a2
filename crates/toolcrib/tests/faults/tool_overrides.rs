//! Tests of `[servers.NAME.tools.TOOL]`: the config renames and describes tools, hides parameters and adds defaults.

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::probe::{count, until_true};
use crate::raw_client::{ERAS, Era, RawClient};

const IN_FULL: &str = "[activation]\nmode = \"off\"\n";
const DEFERRED: &str = "[activation]\nmode = \"on\"\n";

const OVERRIDES: &str = r#"
timeouts = { "delete_*" = 600 }
[servers.shop.tools.delete_all]
name = "read_orders"
description = "Empties the warehouse of zebras."
hide_parameters = ["key"]
defaults = { key = "${SHOP_KEY}", limit = 5, deep = { b = [1.5], a = true } }
"#;

/// Returns the script of a server whose tools return their names and arguments. `read_orders` also is the name of a tool
/// of its own.
fn script() -> Value {
    let returns = json!([{"arguments": true}]);
    let schema = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "key": {"type": "string"},
            "limit": {"type": "integer"},
        },
        "required": ["id", "key", "limit"],
    });
    json!({
        "capabilities": {"tools": {}},
        "tools": {"ready": returns, "delete_all": returns, "read_orders": returns},
        "definitions": {"delete_all": {"description": "Deletes.", "inputSchema": schema, "x": 1}},
    })
}

fn environment(name: &str, activation: &str, more: &str) -> TestEnvironment {
    TestEnvironment::new(name).with(activation).scripted("shop", &script(), OVERRIDES).with(more)
}

fn stdio(environment: &TestEnvironment, era: Era, profile: &str) -> RawClient {
    let mut arguments = vec!["mcp", "--own"];
    if !profile.is_empty() {
        arguments.extend(["--profile", profile]);
    }
    let mut command = environment.toolcrib(&arguments);
    command.env("SHOP_KEY", "CANARY-KEY");
    let peer = RawClient::stdio(command, era);
    ready(&peer);
    peer
}

fn ready(peer: &RawClient) {
    until_true("the shop", || text(&peer.call("shop__ready", json!({}))).starts_with("ready"));
}

fn text(answer: &Value) -> &str {
    answer["content"][0]["text"].as_str().unwrap_or_default()
}

const SENT: &str =
    r#"delete_all {"id":"1","key":"CANARY-KEY","limit":5,"deep":{"a":true,"b":[1.5]}}"#;

/// Calls the renamed tool in every way, and checks what reaches the server.
fn check_calls(environment: &TestEnvironment, peer: &RawClient) {
    let through = |name: &str, arguments: Value| {
        peer.call("tool_call", json!({"name": name, "arguments": arguments}))
    };
    for answer in [
        peer.call("shop__read_orders", json!({"id": "1"})),
        through("shop__read_orders", json!({"id": "1"})),
        through("read_orders", json!({"id": "1"})),
    ] {
        assert_eq!(text(&answer), SENT, "{answer}");
    }
    let answer = peer.call("shop__read_orders", json!({"id": "1", "limit": 9}));
    assert!(text(&answer).contains(r#""limit":9,"key":"#), "{answer}");
    let calls = count(&environment.log("shop"), "call delete_all");
    for answer in [
        peer.call("shop__read_orders", json!({"id": "1", "key": "mine"})),
        through("shop__read_orders", json!({"id": "1", "key": "mine"})),
    ] {
        assert_eq!(answer["isError"], true, "{answer}");
        let refusal: Value = serde_json::from_str(text(&answer)).unwrap();
        assert_eq!(refusal["error"], "invalid_arguments");
        assert_eq!(refusal["hint"], "leave out \"key\"");
        assert!(refusal["input_schema"]["properties"].get("key").is_none(), "{refusal}");
    }
    assert_eq!(count(&environment.log("shop"), "call delete_all"), calls, "not sent");
    // The tool has no other name, and its new name did not take the other tool away.
    assert!(peer.call("shop__delete_all", json!({"id": "1"}))["error"].is_object());
    let displaced = peer.search("select:shop__read_orders,read_orders");
    assert!(!displaced.to_string().contains("CANARY"), "{displaced}");
}

/// Checks the list, the calls and the log of a client to which nothing is deferred.
fn check_in_full(environment: &TestEnvironment, peer: &RawClient, era: Era) {
    let list = peer.ask("tools/list", json!({}));
    let tools = list["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "shop__read_orders").unwrap();
    let expected = r#"{"name":"shop__read_orders","description":"Empties the warehouse of zebras.","inputSchema":{"type":"object","properties":{"id":{"type":"string"},"limit":{"type":"integer","default":5}},"required":["id"]},"x":1}"#;
    assert_eq!(tool.to_string(), expected, "{era:?}");
    let displaced = tools.iter().find(|tool| tool["description"] == "read_orders").unwrap();
    let name = displaced["name"].as_str().unwrap();
    assert!(name.starts_with("shop__read_orders_h"), "{name}");
    assert_eq!(text(&peer.call(name, json!({}))), "read_orders {}");
    check_calls(environment, peer);
    let log = environment.stderr();
    assert!(log.contains("renamed_from=\"delete_all\""), "{log}");
    assert!(!log.contains("CANARY"), "{log}");
}

#[test]
fn a_tool_is_renamed_described_and_called_everywhere() {
    for era in ERAS {
        let environment = environment("overrides-stdio", IN_FULL, "");
        check_in_full(&environment, &stdio(&environment, era, ""), era);
        let environment = self::environment("overrides-http", IN_FULL, "");
        environment.write(&environment.text().replace("${SHOP_KEY}", "${SHOP_KEY:-CANARY-KEY}"));
        let gateway = environment.serve();
        let peer = gateway.peer(era);
        ready(&peer);
        check_in_full(&environment, &peer, era);
    }
}

#[test]
fn a_deferred_tool_is_found_and_called_by_its_new_name_and_description() {
    for era in ERAS {
        let environment = environment("overrides-deferred", DEFERRED, "");
        let peer = stdio(&environment, era, "");
        let found = peer.search("empties the warehouse of zebras");
        assert_eq!(found["hits"][0]["name"], "shop__read_orders", "{found}");
        assert!(found["hits"][0]["input_schema"]["properties"].get("key").is_none(), "{found}");
        let described = peer.call("tool_describe", json!({"name": "shop__read_orders"}));
        assert!(text(&described).contains("zebras") && !text(&described).contains("\"key\""));
        check_calls(&environment, &peer);
    }
}

#[test]
fn a_new_name_can_only_narrow_a_profile() {
    let profiles = "[profiles.reads]\nallow = ['shop/read_*', 'shop__read_orders', '*ready']\n\
                    [profiles.named]\nallow = ['shop__delete_all', '*ready']\n\
                    [profiles.denied]\ndeny = ['shop/read_orders']\n\
                    [profiles.given]\ndeny = ['read_orders']\n\
                    [profiles.own]\ndeny = ['delete_*']\n";
    let environment = environment("overrides-profiles", IN_FULL, profiles);
    let names = |profile: &str| stdio(&environment, Era::Older, profile).names();
    let is_renamed = |name: &String| name == "shop__read_orders";
    let is_displaced = |name: &String| name.starts_with("shop__read_orders_h");
    for (profile, renamed, displaced) in [
        ("reads", false, true),
        ("named", true, false),
        ("denied", false, false),
        ("given", false, false),
        ("own", false, true),
    ] {
        let names = names(profile);
        let found = (names.iter().any(is_renamed), names.iter().any(is_displaced));
        assert_eq!(found, (renamed, displaced), "{profile}: {names:?}");
    }
}

#[test]
fn doctor_reports_changes_that_cannot_work() {
    let wrong = "[servers.shop.tools.delete_al]\nname = 'x'\n\
                 [servers.shop.tools.delete_all]\nhide_parameters = ['key', 'idd']\n";
    let environment = TestEnvironment::new("overrides-doctor").scripted("shop", &script(), wrong);
    let report = environment.doctor();
    let notes: Vec<&str> =
        report[0]["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let _gateway = environment.serve();
    for note in [
        "`tools` has `delete_al`, but the server has no such tool; did you mean `delete_all`?",
        "`tools.delete_all.hide_parameters` has `idd`, which is not a parameter of the tool; did you mean `id`?",
        "`tools.delete_all` hides the required parameter `key`, so its calls will fail: add a value in `defaults`",
    ] {
        assert!(notes.contains(&note), "{notes:#?}");
        until_true("the note in the log", || environment.stderr().contains(note));
    }
}

/// A variable that a default refers to must be set, like one that `env` refers to.
#[test]
fn a_server_does_not_start_without_a_variable_in_a_default() {
    let environment = environment("overrides-unset", IN_FULL, "");
    let mut command = environment.toolcrib(&["doctor"]);
    command.env_remove("SHOP_KEY").stdout(std::process::Stdio::piped());
    let done = command.output().unwrap();
    let report = String::from_utf8_lossy(&done.stdout).into_owned() + &environment.stderr();
    assert!(report.contains("the variable `SHOP_KEY` is not set"), "{report}");
}

/// A changed override applies without a restart of the server.
#[test]
fn a_changed_override_applies_at_once() {
    let environment =
        TestEnvironment::new("overrides-reload").with(IN_FULL).scripted("shop", &script(), "");
    let peer = environment.stdio(Era::Older);
    ready(&peer);
    let starts = count(&environment.log("shop"), "start");
    let before = environment.text();
    environment.write(&format!("{before}\n[servers.shop.tools.delete_all]\nname = \"purge\"\n"));
    until_true("the new name", || peer.names().contains(&"shop__purge".to_owned()));
    let answer = peer.call("shop__purge", json!({}));
    assert_eq!(text(&answer), "delete_all {}");
    assert_eq!(count(&environment.log("shop"), "start"), starts);
}
