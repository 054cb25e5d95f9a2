//! Tests of servers that never answer, answer late, or do not exist.

use std::time::Instant;

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::print_duration;
use crate::probe::{count, until_true};
use crate::raw_client::Era;

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// If one of twenty servers hangs forever, the gateway is still ready at once, and the other nineteen servers work.
#[test]
fn one_of_twenty_servers_never_answers() {
    // If the servers were started one after the other, the nineteen would have to wait for this timeout, which is
    // longer than the deadline of the test.
    let limit = "start_timeout = 1800";
    let mut environment =
        TestEnvironment::new("twenty").faulty_with("s00", &["--never-answer"], limit);
    for n in 1..20 {
        environment = environment.faulty(&format!("s{n:02}"), &["--tools", "3"]);
    }
    let began = Instant::now();
    let peer = environment.stdio(Era::Older);
    let names_at_once = peer.names();
    print_duration("first list with one of 20 hanging", began.elapsed());
    assert!(names_at_once.contains(&"tool_search".to_owned()), "{names_at_once:?}");
    let mut left: Vec<String> = (1..20).map(|n| format!("s{n:02}__echo")).collect();
    until_true("19 usable", || {
        left.retain(|tool| peer.call(tool, json!({}))["structuredContent"] != json!({}));
        left.is_empty()
    });
    print_duration("19 of 20 usable after", began.elapsed());
    let found = peer.search("select:s01__tool_0");
    assert_eq!(names(&found["connecting"]), ["s00"], "{found}");
    // No tool fits, so the search waits for the server that is still connecting, but not forever.
    let began = Instant::now();
    let missed = peer.search("zebra quantum harpsichord");
    print_duration("a search that waits in vain", began.elapsed());
    assert_eq!(names(&missed["connecting"]), ["s00"], "{missed}");
}

/// A search without a strong hit waits for a server that is starting, and then finds that server's tool.
#[test]
fn a_search_waits_for_a_slow_server() {
    let environment = TestEnvironment::new("slow").with("[gateway]\nwait = 600");
    let answers = environment.folder.join("answers");
    let args = ["--start-when", answers.to_str().unwrap(), "--tools", "3"];
    let environment = environment.faulty("slow", &args);
    let peer = environment.stdio(Era::Older);
    let search = peer.start(
        "tools/call",
        json!({"name": "tool_search", "arguments": {"query": "find customers of a department"}}),
    );
    // The gateway reads messages in order. So when it answers this request, it has received the search.
    assert!(peer.names().contains(&"tool_search".to_owned()));
    until_true("the server receives `initialize`", || {
        count(&environment.log("slow"), "initialize") > 0
    });
    std::fs::write(answers, "").unwrap();
    let found = search.end()["structuredContent"].take();
    assert_eq!(found["hits"][0]["name"], "slow__tool_0", "{found}");
    assert_eq!(names(&found["connecting"]), [""; 0], "{found}");
}

/// The tools of a server that is down stay listed and are marked as unavailable. Calling one fails with the reason.
#[test]
fn a_call_to_a_server_that_is_down_returns_the_reason() {
    let environment =
        TestEnvironment::new("down").faulty_with("shop", &["--tools", "2"], "start = 'eager'");
    let before = {
        let peer = environment.stdio(Era::Older);
        until_true("up", || peer.names().contains(&"shop__tool_1".to_owned()));
        peer.ask("tools/list", json!({}))
    };
    // A folder replaces the server's log file. The server cannot open it and exits with an error.
    std::fs::remove_file(environment.log("shop")).unwrap();
    std::fs::create_dir(environment.log("shop")).unwrap();
    let peer = environment.stdio(Era::Older);
    let reason = "exited with code 1";
    let why = || peer.search("select:shop__tool_1")["down"][0]["why"].as_str().map(str::to_owned);
    until_true("down", || why().is_some_and(|why| why.contains(reason)));
    let began = Instant::now();
    let answer = peer.call("shop__tool_1", json!({"query": "x"}));
    print_duration("a call to a server that is down", began.elapsed());
    let text = answer["content"][0]["text"].as_str().unwrap_or_default();
    assert!(answer["isError"] == true && text.contains(reason), "{answer}");
    let hit = &peer.search("select:shop__tool_1")["hits"][0];
    assert!(hit["unavailable"].as_str().unwrap().contains(reason), "{hit}");
    assert_eq!(
        peer.ask("tools/list", json!({})),
        before,
        "the tools of a failed server stay listed"
    );
}

/// A server that failed is retried while other servers are still starting. `doctor` must still report the first
/// failure.
#[test]
fn doctor_reports_a_failure_while_the_server_is_tried_again() {
    // `mute` fails after one second. Half a second later it is tried again for another second, and `slow` comes up
    // during that time.
    let environment = TestEnvironment::new("again")
        .faulty_with("mute", &["--never-answer"], "start_timeout = 1")
        .faulty("slow", &["--start-delay", "2000"]);
    let rows = environment.doctor();
    assert_eq!((&rows[0]["state"], &rows[1]["state"]), (&json!("down"), &json!("up")), "{rows:#?}");
    assert_eq!(rows[0]["error"], "it did not answer within 1 s", "{rows:#?}");
}

/// A server that has never worked must not change the list each time it is retried. Its tools are unknown, so the other
/// servers' tools alone decide whether tools are deferred.
#[test]
fn a_server_that_never_works_does_not_change_the_list() {
    let limit = "start_timeout = 0.5";
    let environment = TestEnvironment::new("never").faulty("fine", &[]).faulty_with(
        "mute",
        &["--never-answer"],
        limit,
    );
    let peer = environment.stdio(Era::Older);
    let failures = || environment.stderr().matches("server is down").count();
    let is_down = || peer.search("select:fine__echo")["down"][0].is_object();
    until_true("the server failed once", || {
        is_down() && failures() > 0 && !peer.names().contains(&"tool_search".to_owned())
    });
    assert!(peer.names().contains(&"fine__echo".to_owned()), "few tools are not deferred");
    let list = peer.ask("tools/list", json!({}));
    let before = failures();
    until_true("the server failed twice more", || {
        assert_eq!(peer.ask("tools/list", json!({})), list, "after {} failures", failures());
        failures() >= before + 2
    });
    assert_eq!(peer.ask("tools/list", json!({})), list);
}
