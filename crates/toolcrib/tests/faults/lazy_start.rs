//! Tests of servers that are started when a request needs them and stopped when nobody does.
//!
//! The server writes a line to its log whenever it starts, ends or executes a call, so a test can count them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::print_duration;
use crate::probe::{count, is_alive, last_start, signal, until_true};
use crate::raw_client::{ERAS, Era, RawClient};

/// Runs a gateway until it has saved the server's lists.
fn learn_lists(environment: &TestEnvironment) {
    let peer = environment.stdio(Era::Older);
    peer.ready("shop__echo");
}

/// Calls the tool that returns its arguments.
fn echo(peer: &RawClient, value: &Value) -> Value {
    peer.call("shop__echo", value.clone())["structuredContent"].take()
}

#[test]
fn a_server_with_known_lists_is_started_by_its_first_call() {
    for era in ERAS {
        let environment = TestEnvironment::new(&format!("lazy-{era:?}")).faulty("shop", &[]);
        learn_lists(&environment);
        let log = environment.log("shop");
        assert_eq!(count(&log, "start"), 1);
        let peer = environment.stdio(era);
        assert!(peer.names().contains(&"shop__echo".to_owned()));
        let reply = peer.search("select:shop__echo");
        let hit = &reply["hits"][0];
        assert_eq!((&hit["name"], hit.get("unavailable")), (&json!("shop__echo"), None), "{reply}");
        assert_eq!(reply.get("connecting"), None, "{reply}");
        assert_eq!(count(&log, "start"), 1, "neither a list nor a search needs the server");
        let began = std::time::Instant::now();
        assert_eq!(echo(&peer, &json!({"n": 1})), json!({"n": 1}));
        print_duration("first call to a server that is not running", began.elapsed());
        assert_eq!(echo(&peer, &json!({"n": 2})), json!({"n": 2}));
        assert_eq!(count(&log, "start"), 2);
    }
}

#[test]
fn an_eager_server_is_started_without_a_request() {
    let environment = TestEnvironment::new("eager").faulty_with("shop", &[], "start = 'eager'");
    learn_lists(&environment);
    let _peer = environment.stdio(Era::Older);
    until_true("the server is started", || count(&environment.log("shop"), "start") == 2);
}

#[test]
fn an_unused_server_is_stopped_and_started_again_by_the_next_call() {
    let environment = TestEnvironment::new("idle").faulty_with("shop", &[], "idle = 0.2");
    let peer = environment.stdio(Era::Older);
    peer.ready("shop__echo");
    let log = environment.log("shop");
    for run in 1..=3 {
        let pid = last_start(&log).unwrap();
        until_true("the unused server ends", || !is_alive(pid));
        let starts = count(&log, "start");
        assert_eq!(peer.search("select:shop__echo").get("down"), None);
        assert_eq!(count(&log, "start"), starts, "a search does not start it");
        assert_eq!(echo(&peer, &json!({ "run": run })), json!({ "run": run }));
        assert_eq!(count(&log, "start"), starts + 1, "{}", environment.stderr());
    }
    assert!(environment.stderr().contains("server is idle and was stopped"));
    assert!(!environment.stderr().contains("server is down"), "{}", environment.stderr());
}

/// Each call comes at about the time at which the gateway stops the server. A call must either be answered by the
/// running server or start a new one. It is never sent to a server that is being stopped.
#[test]
fn a_call_at_the_moment_of_the_idle_stop_is_executed_exactly_once() {
    let environment = TestEnvironment::new("idle-race").faulty_with("shop", &[], "idle = 0.1");
    let peer = environment.stdio(Era::Older);
    peer.ready("shop__echo");
    let log = environment.log("shop");
    let before = count(&log, "call");
    for n in 0..60_u64 {
        std::thread::sleep(Duration::from_micros(97_000 + n * 100));
        assert_eq!(echo(&peer, &json!({ "n": n })), json!({ "n": n }), "{}", environment.stderr());
    }
    assert_eq!(count(&log, "call") - before, 60);
    crate::print_figure("servers started for 60 calls at the idle time", count(&log, "start"));
}

#[test]
fn a_call_in_progress_keeps_the_server_running() {
    let environment = TestEnvironment::new("idle-busy").faulty_with("shop", &[], "idle = 0.1");
    let peer = environment.stdio(Era::Older);
    peer.ready("shop__echo");
    let log = environment.log("shop");
    let asking = peer.begin("shop__elicit", json!({}));
    let question = peer.wait_for_message("elicitation/create").unwrap();
    let stops = || environment.stderr().matches("server is idle").count();
    let before = stops();
    // Longer than the idle time. A slow machine only makes this longer.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(stops(), before, "{}", environment.stderr());
    peer.reply(&question["id"], &json!({"action": "decline"}));
    let answer = asking.end();
    assert_eq!(answer["structuredContent"], json!({"result": {"action": "decline"}}), "{answer}");
    let pid = last_start(&log).unwrap();
    until_true("the server ends after the call", || !is_alive(pid));
}

#[test]
fn a_server_that_dies_while_it_is_started_fails_that_call_and_not_the_next() {
    let environment = TestEnvironment::new("lazy-kill");
    let may_start = environment.folder.join("may-start");
    std::fs::write(&may_start, "").unwrap();
    let environment = environment.faulty("shop", &["--start-when", may_start.to_str().unwrap()]);
    learn_lists(&environment);
    std::fs::remove_file(&may_start).unwrap();
    let log = environment.log("shop");
    let peer = environment.stdio(Era::Older);
    let first = peer.begin("shop__echo", json!({"n": 1}));
    // A server that ends before the handshake is started again, because some servers exit on the probe.
    until_true("the call starts the server", || count(&log, "initialize") == 2);
    signal(last_start(&log).unwrap(), "-KILL");
    let answer = first.end();
    let text = answer["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    assert!(text.contains("killed by signal 9"), "{answer}");
    std::fs::write(&may_start, "").unwrap();
    until_true("a later call is answered", || echo(&peer, &json!({"n": 2})) == json!({"n": 2}));
    assert_eq!(count(&log, "call"), 2, "the failed call was not executed");
}

/// The list of a server changes while it is not running. The first call starts it, and clients learn about the change.
#[test]
fn a_changed_list_is_announced_after_a_lazy_start() {
    let tools = |names: &[&str]| {
        let tools: serde_json::Map<String, Value> = names
            .iter()
            .map(|name| ((*name).to_owned(), json!([{"result": {"content": []}}])))
            .collect();
        json!({ "tools": tools })
    };
    let environment =
        TestEnvironment::new("lazy-change").scripted("shop", &tools(&["echo", "old"]), "");
    {
        let peer = environment.stdio(Era::Older);
        until_true("the first list arrives", || peer.names().contains(&"shop__old".to_owned()));
    }
    std::fs::write(environment.folder.join("shop.json"), tools(&["echo", "new"]).to_string())
        .unwrap();
    let peer = environment.stdio(Era::Older);
    assert!(peer.names().contains(&"shop__old".to_owned()), "the saved list is used");
    peer.call("shop__echo", json!({}));
    assert!(peer.wait_for_message("notifications/tools/list_changed").is_some());
    assert!(peer.names().contains(&"shop__new".to_owned()));
}

#[test]
fn a_subscription_starts_the_server_and_keeps_it_running() {
    let server = json!({
        "capabilities": {"tools": {}, "resources": {"subscribe": true}},
        "methods": {
            "resources/list": {"resources": [{"uri": "x:1", "name": "r"}]},
            "resources/templates/list": {"resourceTemplates": []},
            "resources/subscribe": {},
            "resources/unsubscribe": {},
        },
        "tools": {"ready": [{"result": {"content": []}}]},
    });
    let environment =
        TestEnvironment::new("lazy-subscribe").scripted("shop", &server, "idle = 0.2");
    let resource = |peer: &RawClient| {
        let list = peer.ask("resources/list", json!({}));
        list["resources"][0]["uri"].as_str().map(str::to_owned)
    };
    {
        let peer = environment.stdio(Era::Older);
        until_true("the resource is listed", || resource(&peer).is_some());
    }
    let peer = environment.stdio(Era::Older);
    let uri = resource(&peer).unwrap();
    peer.ask("resources/subscribe", json!({ "uri": uri }));
    until_true("the server is started", || {
        environment.stderr().matches("server is up").count() >= 2
    });
    let before = environment.stderr().matches("server is idle").count();
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(environment.stderr().matches("server is idle").count(), before);
    peer.ask("resources/unsubscribe", json!({ "uri": uri }));
    until_true("the server is stopped", || {
        environment.stderr().matches("server is idle").count() > before
    });
}

#[test]
fn doctor_starts_every_server_and_reports_when_the_gateway_runs_it() {
    let environment = TestEnvironment::new("lazy-doctor")
        .faulty("files", &[])
        .faulty_with("quick", &[], "idle = '90s'")
        .faulty_with("always", &[], "start = 'eager'")
        .faulty("my-browser", &[]);
    for _ in 0..2 {
        let servers = environment.doctor();
        let rows: Vec<[&str; 4]> = servers
            .iter()
            .map(|server| {
                ["name", "state", "runs", "shares"].map(|key| server[key].as_str().unwrap())
            })
            .collect();
        let shared = "shared by all clients (default)";
        assert_eq!(
            rows,
            [
                ["always", "up", "always connected (configured with `start`)", shared],
                [
                    "files",
                    "up",
                    "started when needed, stopped when idle for 15 min (default)",
                    shared
                ],
                [
                    "my-browser",
                    "up",
                    "started when needed, not stopped when idle (`browser` in its name, package or host, so it probably keeps state between calls)",
                    "one process for each client (`browser` in its name, package or host, so it probably keeps state between calls)",
                ],
                [
                    "quick",
                    "up",
                    "started when needed, stopped when idle for 90 s (configured with `idle`)",
                    shared,
                ],
            ]
        );
    }
}
