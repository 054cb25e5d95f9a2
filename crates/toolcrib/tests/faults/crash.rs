//! Tests of a server that is killed while calls are running.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::environment::TestEnvironment;
use crate::print_duration;
use crate::probe::{DEADLINE, count, last_start, signal, until_true};
use crate::raw_client::Era;

/// Calls `tool` repeatedly until `stop` is set, and checks that every call succeeds. Returns the sorted durations.
fn keep_calling(
    peer: &crate::raw_client::RawClient,
    tool: &str,
    stop: &AtomicBool,
) -> Vec<Duration> {
    let mut elapsed = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        let answer = peer.call(tool, json!({"n": elapsed.len()}));
        assert_eq!(answer["structuredContent"], json!({"n": elapsed.len()}), "{answer}");
        elapsed.push(began.elapsed());
    }
    elapsed.sort_unstable();
    elapsed
}

/// When a server is killed, all 50 running calls fail immediately, other servers are not affected, and the server is
/// restarted quickly.
#[test]
fn a_server_is_killed_during_50_calls() {
    let environment = TestEnvironment::new("kill")
        .faulty_with("mortal", &["--hang", "hang"], "call_timeout = 3600")
        .faulty("other", &[]);
    let peer = Arc::new(environment.stdio(Era::Older));
    let works = |tool: &str| peer.call(tool, json!({}))["structuredContent"] == json!({});
    until_true("both servers answer", || works("mortal__echo") && works("other__echo"));

    let calls: Vec<_> = (0..50).map(|_| peer.begin("mortal__hang", json!({}))).collect();
    let log = environment.log("mortal");
    until_true("the server receives 50 calls", || count(&log, "call hang") == 50);
    let stop = Arc::new(AtomicBool::new(false));
    let others = {
        let (peer, stop) = (Arc::clone(&peer), Arc::clone(&stop));
        std::thread::spawn(move || keep_calling(&peer, "other__echo", &stop))
    };
    let victim = last_start(&log).unwrap();
    let killed = Instant::now();
    signal(victim, "-KILL");
    let mut slowest = Duration::ZERO;
    for call in &calls {
        let (answer, came) = call.answer(DEADLINE).expect("every call is answered");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(
            answer["result"]["isError"] == true && text.contains("`mortal` disconnected"),
            "{answer}"
        );
        slowest = slowest.max(came - killed);
    }
    print_duration("50 errors after kill -9", slowest);
    until_true("the restarted server answers", || works("mortal__echo"));
    print_duration("back after kill -9", killed.elapsed());
    assert_ne!(last_start(&log), Some(victim), "the server was restarted");
    stop.store(true, Ordering::Relaxed);
    let others = others.join().unwrap();
    crate::print_figure("calls of another server meanwhile", others.len());
    print_duration("slowest call of another server meanwhile", others[others.len() - 1]);
}
