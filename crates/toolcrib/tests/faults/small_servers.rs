//! Tests that Toolcrib never costs users with few tools more tokens: their tools are not deferred.

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::probe::until_true;
use crate::raw_client::{Era, RawClient};

/// Returns the names in the list that a client gets when all servers have answered or failed.
fn settled_names(peer: &RawClient, is_settled: impl Fn(&[String]) -> bool) -> Vec<String> {
    until_true("all servers have answered or failed", || is_settled(&peer.names()));
    peer.names()
}

fn decision(environment: &TestEnvironment) -> Value {
    let done = environment.toolcrib(&["doctor", "--json"]);
    let done = { done }.stdout(std::process::Stdio::piped()).output().unwrap();
    let mut report: Value = serde_json::from_slice(&done.stdout).unwrap();
    report["decision"].take()
}

/// Two servers have more tools together than the threshold, but the definitions are so small that a turn with one search would
/// take more tokens than all definitions in full.
#[test]
fn the_tools_of_two_small_servers_are_not_deferred() {
    let environment = TestEnvironment::new("small")
        .faulty("one", &["--tools", "2"])
        .faulty("two", &["--tools", "2"]);
    let decision = decision(&environment);
    assert_eq!(decision["defers"], json!(false), "{decision}");
    assert!(
        decision["reason"].as_str().unwrap().ends_with("deferred and searched once"),
        "{decision}"
    );
    let list = |peer: &RawClient| settled_names(peer, |names| names.len() >= 15);
    for names in [
        list(&environment.stdio(Era::Older)),
        list(&environment.stdio(Era::Newer)),
        list(&environment.serve().peer(Era::Older)),
    ] {
        assert!(!names.iter().any(|name| name.starts_with("tool_")), "{names:?}");
    }
}

/// A broken server must not cause the few tools of another server to be deferred.
#[test]
fn a_broken_server_does_not_cause_deferral() {
    let environment = TestEnvironment::new("small-broken")
        .faulty("fine", &[])
        .with("[servers.broken]\ncommand = '/nowhere/x'\n");
    let peer = environment.stdio(Era::Older);
    let names = settled_names(&peer, |names| names.iter().any(|name| name == "fine__echo"));
    assert!(!names.iter().any(|name| name.starts_with("tool_")), "{names:?}");
    let decision = decision(&environment);
    assert_eq!(
        decision["reason"].as_str().unwrap().split(';').next(),
        Some("below the thresholds")
    );
}
