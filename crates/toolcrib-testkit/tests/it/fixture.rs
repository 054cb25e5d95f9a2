//! Tests of `fixture-server` over stdio, in both protocol versions. `scripts/conformance` tests the server's other
//! features.

use serde_json::{Value, json};

use crate::peer::Peer;

fn start() -> Peer {
    Peer::start(env!("CARGO_BIN_EXE_fixture-server"), &[])
}

/// Returns the metadata that every request of the stateless protocol contains.
fn newer_protocol_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    })
}

#[test]
fn a_client_of_the_older_protocol_is_asked_for_input_with_a_request() {
    let mut peer = start();
    assert_eq!(peer.initialize()["result"]["serverInfo"]["name"], "toolcrib-fixture");
    let params = json!({"name": "test_input_required_result_elicitation", "arguments": {}});
    peer.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
    let question = peer.receive();
    assert_eq!(question["method"], "elicitation/create");
    let form = json!({"action": "accept", "content": {"name": "Ada"}});
    peer.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": form}));
    assert_eq!(peer.receive()["result"]["content"][0]["text"], "Good day, Ada.");
}

#[test]
fn a_client_of_the_newer_protocol_is_asked_for_input_with_a_result() {
    let mut peer = start();
    let discovered = peer.ask("server/discover", json!({"_meta": newer_protocol_meta()}));
    let supported = discovered["result"]["supportedVersions"].as_array().unwrap();
    assert!(supported.contains(&json!("2026-07-28")) && supported.contains(&json!("2025-11-25")));
    let name = "test_input_required_result_elicitation";
    let input_required =
        peer.ask("tools/call", json!({"name": name, "_meta": newer_protocol_meta()}));
    assert_eq!(input_required["result"]["resultType"], "input_required");
    let form = json!({"user_name": {"action": "accept", "content": {"name": "Ada"}}});
    let answer = peer.ask(
        "tools/call",
        json!({"name": name, "inputResponses": form, "_meta": newer_protocol_meta()}),
    );
    assert_eq!(answer["result"]["content"][0]["text"], "Good day, Ada.");
}

#[test]
fn a_client_of_the_newer_protocol_without_the_capability_is_not_asked() {
    let mut peer = start();
    peer.ask("server/discover", json!({"_meta": newer_protocol_meta()}));
    let refused = peer.ask(
        "tools/call",
        json!({"name": "test_input_required_result_list_roots", "_meta": newer_protocol_meta()}),
    );
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["data"]),
        (&json!(-32021), &json!({"requiredCapabilities": {"roots": {}}}))
    );
}

#[test]
fn a_change_changes_the_list_and_sends_a_notification() {
    let mut peer = start();
    peer.initialize();
    let count = |list: Value| list["result"]["tools"].as_array().unwrap().len();
    let before = count(peer.ask("tools/list", json!({})));
    peer.send(&json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "test_trigger_tool_change"},
    }));
    let both = [peer.receive(), peer.receive()];
    assert!(both.iter().any(|message| message["method"] == "notifications/tools/list_changed"));
    assert_eq!(count(peer.ask("tools/list", json!({}))), before + 1);
}
