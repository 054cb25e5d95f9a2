//! Tests of a gateway that receives SIGTERM or SIGKILL.

use std::time::Instant;

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::print_duration;
use crate::probe::{DEADLINE, count, is_alive, processes_with, until_true};
use crate::raw_client::{ERAS, Era, RawClient};

/// Configures a server that takes a second for each call. Like servers behind a launcher, it has child processes: one
/// in its process group and one in a session of its own.
fn environment(name: &str) -> TestEnvironment {
    TestEnvironment::new(name).faulty("family", &["--grandchild", "--slow", "1000"])
}

/// Returns the process ids of the server and its two children.
fn process_tree(peer: &RawClient) -> Vec<u32> {
    let mut pids = Value::Null;
    until_true("up", || {
        pids = peer.call("family__pids", json!({}))["structuredContent"].take();
        pids.is_object()
    });
    ["own", "group", "session"].map(|who| pids[who].as_u64().unwrap() as u32).to_vec()
}

/// Waits until no process of a test remains, and prints the time since `began`. On their own, the processes of a server
/// would live for 600 s.
fn wait_until_no_process_left(
    what: &str,
    environment: &TestEnvironment,
    pids: &[u32],
    began: Instant,
) {
    until_true(what, || {
        let folder = environment.folder.to_str().unwrap();
        !pids.iter().any(|pid| is_alive(*pid)) && processes_with(folder).is_empty()
    });
    print_duration(what, began.elapsed());
}

/// Running calls that end in time still get their responses, and then all processes exit.
#[test]
fn sigterm_under_load_ends_all_processes() {
    let environment = environment("term");
    let mut gateway = environment.serve();
    let peers = ERAS.map(|era| gateway.peer(era));
    let pids = process_tree(&peers[0]);
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    let calls: Vec<_> =
        (0..20).map(|n| peers[n % 2].begin("family__echo", json!({"n": n}))).collect();
    let log = environment.log("family");
    until_true("the server receives 20 calls", || count(&log, "call echo") == 20);
    gateway.terminate();
    let began = Instant::now();
    for (n, call) in calls.iter().enumerate() {
        let (answer, _) =
            call.answer(DEADLINE).unwrap_or_else(|| panic!("call {n} was not answered"));
        assert_eq!(answer["result"]["structuredContent"], json!({"n": n}), "{answer}");
    }
    print_duration("20 calls under way at SIGTERM answered after", began.elapsed());
    gateway.wait_for_exit();
    wait_until_no_process_left("nothing left after SIGTERM", &environment, &pids, began);
}

/// A client that only listens for notifications does not delay the shutdown.
#[test]
fn an_idle_stream_does_not_delay_the_shutdown() {
    let environment = TestEnvironment::new("idle-shutdown").faulty("one", &[]);
    let mut gateway = environment.serve();
    let listening = gateway.peer(Era::Newer);
    listening.start("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    listening
        .wait_for_message("notifications/subscriptions/acknowledged")
        .expect("the subscription is acknowledged");
    gateway.terminate();
    print_duration("end of a gateway with an idle listener", gateway.wait_for_exit());
    assert!(
        !environment.stderr().contains("were cut off"),
        "an idle stream is not waited for: {}",
        environment.stderr()
    );
}

/// SIGTERM also ends a gateway on stdio, its server, and the server's children.
#[test]
fn sigterm_on_stdio_ends_all_processes() {
    let environment = environment("term-stdio");
    let peer = environment.stdio(Era::Older);
    let pids = process_tree(&peer);
    peer.begin("family__echo", json!({}));
    crate::probe::signal(peer.gateway(), "-TERM");
    let began = Instant::now();
    // The gateway is a child process of the test, so it stays in the process table until the client reaps it here.
    drop(peer);
    wait_until_no_process_left("nothing left after SIGTERM on stdio", &environment, &pids, began);
}

/// A killed gateway cannot clean up, so the wardens end the servers. The next gateway starts normally.
#[test]
fn sigkill_leaves_no_processes() {
    let environment = environment("kill-gateway");
    let mut gateway = environment.serve();
    let peer = gateway.peer(Era::Older);
    let pids = process_tree(&peer);
    peer.begin("family__echo", json!({}));
    gateway.kill();
    let began = Instant::now();
    wait_until_no_process_left("nothing left after SIGKILL", &environment, &pids, began);
    let again = environment.serve();
    let peer = again.peer(Era::Older);
    assert!(peer.names().contains(&"family__echo".to_owned()), "remembered");
    let pids = process_tree(&peer);
    assert!(pids.iter().all(|pid| is_alive(*pid)));
}
