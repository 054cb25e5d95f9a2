//! Tests of sessions under `everruns`: which state a session keeps, and how its tools are called.

use serde_json::{Value, json};

use super::super::{Setup, numbered};
use super::{agent, prefixed, with};
use crate::support::client::{Client, Era};
use crate::support::eventually;

#[test]
fn a_found_tool_has_its_full_schema_on_the_next_step_and_for_the_rest_of_the_session() {
    let mut session = with(&agent()).start();
    let before = session.names();
    session.found("web_fetch");
    assert_eq!(session.changes, 1);
    assert_eq!(session.listed("dev__web_fetch"), prefixed(&agent()[6]));
    session.runs("dev__web_fetch", &json!({"url": "https://example.org", "note": "é"}));
    session.found("bash");
    assert_eq!(session.stubs().len(), 13, "only the two found tools are loaded");
    assert_eq!(session.names(), before, "found tools keep their positions");
}

#[test]
fn a_session_keeps_its_last_sixty_four_reveals() {
    let mut session = with(&numbered(65, "t", "")).start();
    for at in 0..65 {
        session.found(&format!("dev__t{at}"));
    }
    assert_eq!(session.stubs(), ["dev__t0"]);
}

#[test]
fn what_one_session_found_another_does_not_see() {
    let setup = with(&agent());
    let gateway = setup.home.serve();
    let mut sessions = [(); 2].map(|()| Client::at(&gateway.url, Era::Older));
    let schema = |client: &mut Client| {
        let tools = client.tools();
        tools.into_iter().find(|tool| tool["name"] == "dev__bash").map(|t| t["inputSchema"].clone())
    };
    eventually("the tools", || schema(&mut sessions[0]));
    let query = json!({"name": "tool_search", "arguments": {"query": "bash"}});
    sessions[0].result("tools/call", &query);
    assert_eq!(schema(&mut sessions[0]).unwrap(), agent()[5]["inputSchema"]);
    assert_eq!(schema(&mut sessions[1]).unwrap()["properties"], json!({}));
}

#[test]
fn a_session_that_ended_is_forgotten_and_the_next_one_searches_again() {
    let mut session = with(&agent()).start();
    session.found("bash");
    assert!(!session.is_stub("dev__bash"));
    let mut session = session.restart();
    assert!(session.is_stub("dev__bash"));
    session.found("bash");
    assert!(!session.is_stub("dev__bash"));
}

#[test]
fn tools_are_called_by_their_own_names_with_their_own_arguments() {
    let mut session = with(&agent()).start();
    assert!(session.is_stub("dev__bash"));
    session.found("bash");
    let arguments = r#"{"command":  "ls", "note": "1.00"}"#;
    let answer = session.client.call_with_text("dev__bash", arguments);
    let expected: Value = serde_json::from_str(arguments).unwrap();
    assert_eq!(answer["result"]["structuredContent"], expected);
}

#[test]
fn a_first_use_costs_one_search_or_a_right_guess() {
    let mut session = with(&agent()).start();
    let refusal = session.refused("dev__web_fetch", &json!({"address": "https://example.org"}));
    assert_eq!(refusal["input_schema"], agent()[6]["inputSchema"]);
    assert!(!session.is_stub("dev__web_fetch"), "a call with wrong arguments loads the tool");
    session.runs("dev__bash", &json!({"command": "ls"}));
}

#[test]
fn without_reveals_the_schema_is_in_the_answer_and_nowhere_else() {
    let config = "preset = \"everruns\"\nreveals = false\n";
    let mut session = Setup::toml(config, &[("dev", &agent())]).start();
    let first = session.list();
    let answer = session.search("bash");
    assert_eq!(answer["tools"][0]["parameters"], agent()[5]["inputSchema"]);
    assert_eq!(session.list(), first, "the stub is unchanged");
    session.runs("dev__bash", &json!({"command": "ls"}));
    let note = session.restart().instructions().unwrap();
    assert!(note.contains("Its real parameters are in the answer."), "{note}");
}
