//! The gateway is told to end, or killed.

use std::time::Instant;

use serde_json::{Value, json};

use crate::peer::{ERAS, Era, Peer};
use crate::probe::{DEADLINE, count, is_alive, processes_with, until_true};
use crate::stage::Stage;
use crate::took;

/// A server that takes a second for each call and has children as launchers do: one in its process
/// group and one in a session of its own.
fn stage(name: &str) -> Stage {
    Stage::new(name).faulty("family", &["--grandchild", "--slow", "1000"])
}

/// The server and its two children.
fn family(peer: &Peer) -> Vec<u32> {
    let mut pids = Value::Null;
    until_true("up", || {
        pids = peer.call("family__pids", json!({}))["structuredContent"].take();
        pids.is_object()
    });
    ["own", "group", "session"].map(|who| pids[who].as_u64().unwrap() as u32).to_vec()
}

/// Waits until nothing of a test is left, and prints how long that took since `began`. What a server started
/// would live for 600 s.
fn none_left(what: &str, stage: &Stage, pids: &[u32], began: Instant) {
    until_true(what, || {
        let folder = stage.folder.to_str().unwrap();
        !pids.iter().any(|pid| is_alive(*pid)) && processes_with(folder).is_empty()
    });
    took(what, began.elapsed());
}

/// Whoever has a call under way that ends in time gets its answer; then everything is gone.
#[test]
fn sigterm_under_load() {
    let stage = stage("term");
    let mut served = stage.serve();
    let peers = ERAS.map(|era| served.peer(era));
    let pids = family(&peers[0]);
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    let calls: Vec<_> =
        (0..20).map(|n| peers[n % 2].begin("family__echo", json!({"n": n}))).collect();
    let log = stage.log("family");
    until_true("20 calls at the server", || count(&log, "call echo") == 20);
    served.terminate();
    let began = Instant::now();
    for (n, call) in calls.iter().enumerate() {
        let (answer, _) = call.answer(DEADLINE).unwrap_or_else(|| panic!("call {n} was cut"));
        assert_eq!(answer["result"]["structuredContent"], json!({"n": n}), "{answer}");
    }
    took("20 calls under way at SIGTERM answered after", began.elapsed());
    served.ended();
    none_left("nothing left after SIGTERM", &stage, &pids, began);
}

/// A client that only listens does not hold up the end.
#[test]
fn an_idle_stream_does_not_hold_up_the_end() {
    let stage = Stage::new("idle").faulty("one", &[]);
    let mut served = stage.serve();
    let listening = served.peer(Era::Stateless);
    listening.start("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    listening.told("notifications/subscriptions/acknowledged").expect("it listens");
    served.terminate();
    took("end of a gateway with an idle listener", served.ended());
    assert!(!stage.said().contains("were cut off"), "it is not waited for: {}", stage.said());
}

/// On stdio too, and a server's children go with it.
#[test]
fn sigterm_on_stdio() {
    let stage = stage("term-stdio");
    let peer = stage.stdio(Era::Handshake);
    let pids = family(&peer);
    peer.begin("family__echo", json!({}));
    crate::probe::signal(peer.gateway(), "-TERM");
    let began = Instant::now();
    // The gateway is our child: it stays in the table of processes until it is waited for.
    drop(peer);
    none_left("nothing left after SIGTERM on stdio", &stage, &pids, began);
}

/// Killed, the gateway cannot clean up; others do, and the next one starts as if nothing had been.
#[test]
fn sigkill() {
    let stage = stage("kill-gateway");
    let mut served = stage.serve();
    let peer = served.peer(Era::Handshake);
    let pids = family(&peer);
    peer.begin("family__echo", json!({}));
    served.kill();
    let began = Instant::now();
    none_left("nothing left after SIGKILL", &stage, &pids, began);
    let again = stage.serve();
    let peer = again.peer(Era::Handshake);
    assert!(peer.names().contains(&"family__echo".to_owned()), "remembered");
    let pids = family(&peer);
    assert!(pids.iter().all(|pid| is_alive(*pid)));
}
