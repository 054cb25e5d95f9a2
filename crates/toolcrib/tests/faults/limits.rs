//! Tests of the limits in `[gateway.limits]`, each with a value just below the limit, at the limit, and just above it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::http::{self, Request};
use crate::probe::{count, until_true};
use crate::raw_client::{Era, RawClient};

/// With this timeout, only messages that have already arrived are returned.
const NO_WAIT: Duration = Duration::ZERO;

fn limits(text: &str) -> String {
    format!("[gateway.limits]\n{text}\n")
}

/// Returns a request of exactly this many bytes.
fn request(id: u64, bytes: usize) -> String {
    let message = |pad: &str| {
        let params = json!({"name": "one__echo", "arguments": {"pad": pad}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    };
    message(&"x".repeat(bytes - message("").len()))
}

#[test]
fn the_size_of_a_request_is_limited() {
    let environment =
        TestEnvironment::new("request").faulty("one", &[]).with(&limits("request_bytes = 5000"));
    let peer = environment.stdio(Era::Older);
    peer.ready("one__echo");
    for (id, bytes) in [(901_u64, 4_999), (902, 5_000)] {
        peer.write(format!("{}\n", request(id, bytes)).as_bytes());
        let answer = peer.answer_to(id);
        assert!(answer["result"]["structuredContent"]["pad"].is_string(), "{bytes}: {answer}");
    }
    // A request over the limit is refused, even if it is so large that the rest of it arrives after the refusal.
    for (id, bytes) in [(903_u64, 5_001), (904, 1 << 20)] {
        peer.write(format!("{}\n", request(id, bytes)).as_bytes());
        let answer = peer.answer_to(id);
        let error = json!({"code": -32600, "message": "the request is larger than the limit of 5000 bytes"});
        assert_eq!(answer["error"], error, "{bytes}");
    }
    peer.ready("one__echo");

    let gateway = environment.serve();
    let session = gateway.peer(Era::Older);
    session.ready("one__echo");
    for (bytes, status) in [(4_999, 200), (5_000, 200), (5_001, 413)] {
        assert_eq!(session.post(request(77, bytes).as_bytes()), status, "{bytes}");
    }
}

#[test]
fn the_size_of_a_message_is_limited() {
    let environment = TestEnvironment::new("message")
        .faulty("below", &["--huge-line", "99999"])
        .faulty("at", &["--huge-line", "100000"])
        .faulty("over", &["--huge-line", "100001"])
        .with(&limits("message_bytes = 100000"));
    let peer = environment.stdio(Era::Older);
    for name in ["below", "at", "over"] {
        peer.ready(&format!("{name}__echo"));
        let answer = peer.call(&format!("{name}__huge"), json!({}));
        let error = answer["error"]["message"].as_str();
        let expected = (name == "over")
            .then_some("the server's answer is larger than the limit of 100000 bytes");
        assert_eq!(error, expected, "{name}");
        peer.ready(&format!("{name}__echo"));
    }
}

/// For each server, returns the number of its tools and the notes about the server, as `doctor` reports them.
fn tool_counts(environment: &TestEnvironment) -> Vec<(Value, Value)> {
    environment
        .doctor()
        .into_iter()
        .map(|row| (row["tools"].clone(), row["notes"].clone()))
        .collect()
}

/// The test server has seven tools of its own, in addition to those that `--tools` adds.
#[test]
fn the_number_of_tools_of_a_server_is_limited() {
    let environment = TestEnvironment::new("server-tools")
        .faulty("a", &["--tools", "2"])
        .faulty("b", &["--tools", "3"])
        .faulty("c", &["--tools", "4"])
        .with(&limits("server_tools = 10"));
    let note = json!(["it lists 11 or more tools; the first 10 are used"]);
    let expected = [(9, Value::Null), (10, Value::Null), (10, note)];
    assert_eq!(tool_counts(&environment), expected.map(|(tools, note)| (json!(tools), note)));
}

#[test]
fn the_number_of_pages_of_a_list_is_limited() {
    let environment = TestEnvironment::new("list-pages")
        .faulty("a", &["--pages", "4"])
        .faulty("b", &["--pages", "5"])
        .faulty("c", &["--pages", "6"])
        .with(&limits("pages = 5"));
    let note = json!(["its tools have more than 5 pages; the first 5 are used"]);
    let expected = [(4, Value::Null), (5, Value::Null), (5, note)];
    assert_eq!(tool_counts(&environment), expected.map(|(tools, note)| (json!(tools), note)));
}

#[test]
fn the_number_of_tools_of_all_servers_is_limited() {
    for (limit, tools) in [(13, [7, 6]), (14, [7, 7]), (15, [7, 7])] {
        let environment = TestEnvironment::new("all-tools").faulty("a", &[]).faulty("b", &[]);
        let environment = environment.with(&limits(&format!("tools = {limit}")));
        let cut = json!(["6 of its 7 tools are used: all servers together may have 13"]);
        let note = if limit == 13 { cut } else { Value::Null };
        let expected = [(json!(tools[0]), Value::Null), (json!(tools[1]), note)];
        assert_eq!(tool_counts(&environment), expected, "{limit}");
    }
}

/// Two calls run at once and three wait. The sixth call is rejected immediately. When a call ends, a waiting call
/// starts, and a new call can wait.
#[test]
fn the_number_of_calls_to_a_server_is_limited() {
    let environment = TestEnvironment::new("calls")
        .faulty("narrow", &["--hang", "hang"])
        .faulty("other", &[])
        .with(&limits("server_calls = 2\nserver_queue = 3"));
    let peer = environment.stdio(Era::Older);
    peer.ready("narrow__echo");
    peer.ready("other__echo");
    let log = environment.log("narrow");
    let begin = |_| peer.begin("narrow__hang", json!({}));
    let calls: Vec<_> = (0..2).map(begin).collect();
    until_true("the server receives two calls", || count(&log, "call hang") == 2);
    let more: Vec<_> = (0..4).map(begin).collect();
    let answers = || more.iter().filter_map(|call| call.answer(NO_WAIT)).collect::<Vec<_>>();
    until_true("one call is refused", || !answers().is_empty());
    let refused = &answers()[0].0["result"];
    let text = "3 calls are already waiting for `narrow`";
    assert_eq!((&refused["isError"], &refused["content"][0]["text"]), (&json!(true), &json!(text)));
    assert_eq!(answers().len(), 1, "the other three calls wait");
    assert_eq!(peer.call("other__echo", json!({"n": 1}))["structuredContent"], json!({"n": 1}));
    assert_eq!(count(&log, "call hang"), 2, "the server has at most two calls at once");
    let cancel = |peer: &RawClient, id: u64| {
        peer.notify("notifications/cancelled", json!({"requestId": id}));
    };
    cancel(&peer, calls[0].id);
    until_true("the server receives the third call", || count(&log, "call hang") == 3);
    let waiting = begin(0);
    cancel(&peer, calls[1].id);
    until_true("the server receives the fourth call", || count(&log, "call hang") == 4);
    assert!(waiting.answer(NO_WAIT).is_none(), "the new call waits");
}

/// Every session counts towards the limit, whatever headers its first request has, because the body decides whether a
/// session starts.
#[test]
fn sessions_that_start_in_unusual_ways_count() {
    let environment =
        TestEnvironment::new("odd-sessions").faulty("one", &[]).with(&limits("sessions = 3"));
    let gateway = environment.serve();
    let send = |header: (&'static str, String), body: &str| {
        let headers = vec![
            ("Accept", "application/json, text/event-stream".to_owned()),
            ("Content-Type", "application/json".to_owned()),
            header,
        ];
        let request = Request { method: "POST", path: "/mcp", headers, body: body.as_bytes() };
        http::receive(http::send(&gateway.address, &request).unwrap()).unwrap()
    };
    let begin = |header: (&'static str, String), version: &str| {
        let hello = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).to_string();
        let response = send(header, &body);
        (response.status, response.header("mcp-session-id").map(str::to_owned))
    };
    let newer = || ("MCP-Protocol-Version", "2026-07-28".to_owned());
    let ids: Vec<String> = (0..8).filter_map(|_| begin(newer(), "2026-07-28").1).collect();
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let is_open = |id: &&String| send(("Mcp-Session-Id", (*id).clone()), list).status == 200;
    let open = ids.iter().filter(is_open).count();
    assert!(open <= 3, "{open} sessions are open, and the limit is 3");
    let odd = ("Mcp-Session-Id", "\u{e9}".to_owned());
    assert_eq!(begin(odd, "2025-11-25"), (400, None));
}

/// A new session replaces the session that was idle longest. A session in use is never ended to make room for another.
#[test]
fn the_number_of_sessions_is_limited() {
    let environment = TestEnvironment::new("sessions")
        .faulty("one", &[])
        .with(&limits("sessions = 3"))
        .with("[profiles.other]\n");
    let gateway = environment.serve();
    let send = |method: &str, path: &str, session: Option<&str>, body: &str| {
        let mut headers = vec![
            ("Accept", "application/json, text/event-stream".to_owned()),
            ("Content-Type", "application/json".to_owned()),
        ];
        headers.extend(session.map(|id| ("Mcp-Session-Id", id.to_owned())));
        let request = Request { method, path, headers, body: body.as_bytes() };
        http::receive(http::send(&gateway.address, &request).unwrap()).unwrap()
    };
    let begin = |path: &str| {
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).to_string();
        let response = send("POST", path, None, &body);
        (response.status, response.header("mcp-session-id").map(str::to_owned))
    };
    let first = gateway.peer(Era::Older);
    let ids: Vec<String> = ["/mcp", "/mcp/other", "/mcp/other", "/mcp"]
        .into_iter()
        .chain(std::iter::repeat_n("/mcp", 100))
        .map(|path| match begin(path) {
            (200, Some(id)) => id,
            other => panic!("a new session is refused: {other:?}"),
        })
        .collect();
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let status = |id: &str| send("POST", "/mcp", Some(id), list).status;
    assert_eq!(status(&ids[0]), 404, "an unused session ends first");
    assert_eq!(
        ids[4..].iter().filter(|id| status(id) == 200).count(),
        2,
        "two sessions are kept besides the one in use"
    );
    assert!(!first.names().is_empty());
    assert!(!gateway.peer(Era::Newer).names().is_empty(), "clients without sessions do not count");

    first.listen();
    let streams: Vec<_> = ids[102..].iter().map(|id| send("GET", "/mcp", Some(id), "")).collect();
    assert!(streams.iter().all(|stream| stream.status == 200));
    assert_eq!(begin("/mcp").0, 503, "no session with an open stream is ended");
    assert!(!first.names().is_empty());
    first.delete();
    assert_eq!(begin("/mcp").0, 200, "a session is accepted again");
}
