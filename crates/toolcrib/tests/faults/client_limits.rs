//! Tests of clients that make the gateway store too much for them, or store it for too long.

use std::net::Shutdown;
use std::time::Duration;

use serde_json::{Value, json};

use crate::environment::{HttpGateway, TestEnvironment};
use crate::http::{self, Request};
use crate::probe::{at_most, count, last_start, peak_memory, signal, until_true};
use crate::raw_client::{ERAS, Era, RawClient};
use crate::received_messages::PendingRequest;

/// With this timeout, only messages that have already arrived are returned.
const NO_WAIT: Duration = Duration::ZERO;

/// Maximum length of a resource URI in a subscription, in bytes.
const URI_BYTES: usize = 8 << 10;

/// Returns the script of a server with a prompt, a tool, and a resource for every URI. The server never answers the
/// methods in `hangs`.
fn server(hangs: &[&str]) -> Value {
    let mut script = json!({
        "capabilities": {"tools": {}, "prompts": {}, "completions": {}, "resources": {"subscribe": true}},
        "methods": {
            "prompts/list": {"prompts": [{"name": "p", "arguments": [{"name": "a"}]}]},
            "resources/list": {"resources": []},
            "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "note://{id}", "name": "t"}]},
            "resources/subscribe": {},
            "resources/unsubscribe": {},
        },
        "tools": {"ready": [{"result": {"content": []}}]},
    });
    for method in hangs {
        script["methods"][*method] = Value::Null;
    }
    script
}

fn ready(peer: &RawClient) {
    until_true("up", || peer.call("one__ready", json!({}))["content"] == json!([]));
}

/// Sends a request, with a session id if there is one, and returns the response.
fn send(
    gateway: &HttpGateway,
    method: &str,
    path: &str,
    session: Option<&str>,
    body: &str,
) -> http::Response {
    let mut headers = vec![
        ("Accept", "application/json, text/event-stream".to_owned()),
        ("Content-Type", "application/json".to_owned()),
    ];
    headers.extend(session.map(|id| ("Mcp-Session-Id", id.to_owned())));
    let request = Request { method, path, headers, body: body.as_bytes() };
    http::receive(http::send(&gateway.address, &request).unwrap()).unwrap()
}

fn initialize(id: u64, name: &str, capabilities: &Value) -> String {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": name, "version": "1"},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}).to_string()
}

/// A session stores what its client sends about itself in `initialize`, so the size of that data is limited.
#[test]
fn the_size_of_a_clients_introduction_is_limited() {
    let environment = TestEnvironment::new("introduction").faulty("one", &[]);
    let gateway = environment.serve();
    let begin = |name: &str, capabilities: &Value, session: Option<&str>| {
        let mut response =
            send(&gateway, "POST", "/mcp", session, &initialize(1, name, capabilities));
        let id = response.header("mcp-session-id").map(str::to_owned);
        let lines: Vec<String> = std::iter::from_fn(|| response.line()).collect();
        (response.status, id, lines.join("\n"))
    };
    let (long, longer) = ("x".repeat(60_000), "x".repeat(70_000));
    let (status, session, _) = begin(&long, &json!({}), None);
    assert_eq!(status, 200);
    let session = session.unwrap();
    let many: Vec<Value> = (0..1_000).map(|_| json!({})).collect();
    for (name, capabilities) in
        [(&*longer, json!({})), ("x", json!({"experimental": {"a": {"b": many}}}))]
    {
        let (status, begun, text) = begin(name, &capabilities, None);
        assert_eq!((status, begun), (413, None), "{text}");
        assert!(text.contains("the maximum is 65536") && text.contains("send less in"), "{text}");
        // The limit also applies to a second `initialize` in an existing session.
        let (status, _, text) = begin(name, &capabilities, Some(&session));
        assert_eq!(status, 413, "{text}");
    }

    let peer = environment.before_handshake();
    peer.write(format!("{}\n", initialize(901, &longer, &json!({}))).as_bytes());
    let answer = peer.answer_to(901);
    let text = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(text.contains("the maximum is 65536") && text.contains("send less in"), "{answer}");

    // In the newer protocol, a subscription stores its `_meta`, so the size of `_meta` is limited, too.
    let newer = gateway.peer(Era::Newer);
    let listen = |note: &str| {
        let params =
            json!({"notifications": {"toolsListChanged": true}, "_meta": {"x/note": note}});
        newer.start("subscriptions/listen", params)
    };
    let refused = listen(&longer).end();
    assert!(refused["error"].to_string().contains("the maximum is 65536"), "{refused}");
}

#[test]
fn uris_and_number_of_subscriptions_are_limited() {
    let environment = TestEnvironment::new("addresses").scripted("one", &server(&[]), "");
    let gateway = environment.serve();
    let peer = gateway.peer(Era::Older);
    ready(&peer);
    let address = |number: usize, bytes: usize| {
        let start = format!("one+note://{number}-");
        format!("{start}{}", "x".repeat(bytes - start.len()))
    };
    let subscribe = |uri: String| peer.ask("resources/subscribe", json!({"uri": uri}));
    assert_eq!(subscribe(address(0, URI_BYTES)), json!({}));
    let refused = subscribe(address(0, URI_BYTES + 1));
    let message = "the resource's URI has 8193 bytes; the maximum for subscriptions is 8192";
    assert_eq!(refused["error"]["message"], message, "{refused}");
    for number in 1..256 {
        assert_eq!(subscribe(address(number, 100)), json!({}), "{number}");
    }
    let refused = subscribe(address(256, 100));
    assert_eq!(
        refused["error"]["message"], "the client already subscribes to 256 resources, the maximum",
        "{refused}"
    );

    let newer = gateway.peer(Era::Newer);
    let listen = |uris: Vec<String>| {
        newer.start(
            "subscriptions/listen",
            json!({"notifications": {"resourceSubscriptions": uris}}),
        )
    };
    let refused = listen(vec![address(0, 100), address(0, URI_BYTES + 1)]).end();
    assert!(refused["error"].to_string().contains(message), "{refused}");
    let refused = listen((0..257).map(|number| address(number, 100)).collect()).end();
    let message = "the subscription has 257 resources; the maximum is 256";
    assert_eq!(refused["error"]["message"], message, "{refused}");
}

/// Completions count towards the limit of calls, wait in the same queue as calls, and end when their client
/// disconnects.
#[test]
fn completions_are_queued_and_end_with_their_client() {
    let limits = "[gateway.limits]\nserver_calls = 2\nserver_queue = 3\n";
    let script = server(&["completion/complete"]);
    let environment = TestEnvironment::new("completions")
        .scripted("one", &script, "call_timeout = 3600")
        .with(limits);
    let log = environment.log("one");
    let gateway = environment.serve();
    let peers = ERAS.map(|era| gateway.peer(era));
    for (peer, era) in peers.iter().zip(ERAS) {
        ready(peer);
        let (before, cancelled_before) =
            (count(&log, "hang completion/complete"), count(&log, "cancelled"));
        let argument = json!({"name": "a", "value": "x"});
        let params = json!({"ref": {"type": "ref/prompt", "name": "one__p"}, "argument": argument});
        let begin = |_| peer.start("completion/complete", params.clone());
        let mut all: Vec<_> = (0..6).map(begin).collect();
        let answers =
            |all: &[PendingRequest]| all.iter().filter_map(|one| one.answer(NO_WAIT)).count();
        until_true("one of six requests is refused", || answers(&all) == 1);
        let refused = all.iter().position(|one| one.answer(NO_WAIT).is_some()).unwrap();
        let error = all.remove(refused).end();
        assert!(error.to_string().contains("3 calls are already waiting for `one`"), "{error}");
        until_true("the server receives two requests", || {
            count(&log, "hang completion/complete") == before + 2
        });
        match era {
            Era::Older => assert!((200..300).contains(&peer.delete())),
            Era::Newer => all.iter().for_each(PendingRequest::close_connection),
        }
        until_true("the server receives two cancellations", || {
            count(&log, "cancelled") >= cancelled_before + 2
        });
    }
}

/// Subscriptions to a server that does not answer wait in the queue of that server, and leave it when they are
/// cancelled.
#[test]
fn subscriptions_are_queued_and_end_with_their_client() {
    let limits = "[gateway.limits]\nserver_queue = 2\n";
    let script = server(&["resources/subscribe"]);
    let environment = TestEnvironment::new("subscribing")
        .scripted("one", &script, "start_timeout = 1800")
        .with(limits);
    let log = environment.log("one");
    let gateway = environment.serve();
    let peer = gateway.peer(Era::Older);
    ready(&peer);
    let subscribe = |uri: &str| peer.start("resources/subscribe", json!({"uri": uri}));
    let first = subscribe("one+note://1");
    until_true("the server has the first request", || count(&log, "hang resources/subscribe") == 1);
    let mut more = vec![subscribe("one+note://1"), subscribe("one+note://2")];
    let answered =
        |more: &[PendingRequest]| more.iter().position(|one| one.answer(NO_WAIT).is_some());
    until_true("one request is refused", || answered(&more).is_some());
    let error = more.remove(answered(&more).unwrap()).end();
    assert!(error.to_string().contains("2 calls are already waiting for `one`"), "{error}");
    peer.notify("notifications/cancelled", json!({"requestId": first.id}));
    until_true("the server receives the cancellation", || count(&log, "cancelled") == 1);
    until_true("the server receives the next request", || {
        count(&log, "hang resources/subscribe") == 2
    });
    peer.notify("notifications/cancelled", json!({"requestId": more[0].id}));
    until_true("the server receives the cancellation", || count(&log, "cancelled") == 2);
    ready(&peer);
}

/// If a subscription is cancelled, the gateway does not know whether the server has registered it. So if another
/// request to subscribe to the same resource is waiting, the gateway sends a subscription to the server again. The
/// waiting request may come from another client or from the same one.
#[test]
fn a_cancelled_subscription_does_not_end_others() {
    let script = server(&["resources/subscribe"]);
    let environment = TestEnvironment::new("cancelled-subscription").scripted(
        "one",
        &script,
        "start_timeout = 1800",
    );
    let log = environment.log("one");
    let gateway = environment.serve();
    let (peer, other) = (gateway.peer(Era::Older), gateway.peer(Era::Older));
    ready(&peer);
    let wait_for_server = |number: usize| {
        until_true("the server receives the request", || {
            count(&log, "hang resources/subscribe") == number
        });
    };
    for (second, uri, before) in [(&other, "one+note://1", 0), (&peer, "one+note://2", 2)] {
        let subscribe = |peer: &RawClient| peer.start("resources/subscribe", json!({"uri": uri}));
        let first = subscribe(&peer);
        wait_for_server(before + 1);
        let waits = subscribe(second);
        // The gateway reads messages in order. So when this call is answered, the gateway has read the subscription.
        ready(second);
        peer.notify("notifications/cancelled", json!({"requestId": first.id}));
        wait_for_server(before + 2);
        assert!(waits.answer(NO_WAIT).is_none(), "the waiting request is not answered yet");
        second.notify("notifications/cancelled", json!({"requestId": waits.id}));
        until_true("the server receives the cancellation", || {
            count(&log, "cancelled") == before + 2
        });
    }
}

/// If an unsubscription is cancelled, the server may not have received it, so the gateway sends it again.
#[test]
fn a_cancelled_unsubscription_is_sent_again() {
    let script = server(&["resources/unsubscribe"]);
    let environment = TestEnvironment::new("cancelled-unsubscription").scripted(
        "one",
        &script,
        "start_timeout = 1800",
    );
    let log = environment.log("one");
    let peer = environment.stdio(Era::Older);
    ready(&peer);
    let uri = json!({"uri": "one+note://1"});
    assert_eq!(peer.ask("resources/subscribe", uri.clone()), json!({}));
    let first = peer.start("resources/unsubscribe", uri);
    let wait_for_server = |number: usize| {
        until_true("the server receives the request", || {
            count(&log, "hang resources/unsubscribe") == number
        });
    };
    wait_for_server(1);
    peer.notify("notifications/cancelled", json!({"requestId": first.id}));
    wait_for_server(2);
}

/// A client reports endless changes of its roots, and the server does not read. At most one notification may wait for
/// the server, so that memory stays bounded.
#[test]
fn endless_changes_of_roots_are_limited() {
    let environment = TestEnvironment::new("roots").faulty("deaf", &[]);
    let peer = environment.stdio(Era::Older);
    peer.ready("deaf__echo");
    let base = peak_memory(peer.gateway());
    signal(last_start(&environment.log("deaf")).unwrap(), "-STOP");
    let message = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    peer.write(format!("{message}\n").repeat(30_000).as_bytes());
    // The gateway reads messages in order. So when it answers this request, it has read all notifications.
    assert!(peer.names().contains(&"deaf__echo".to_owned()));
    let cost = peak_memory(peer.gateway()).saturating_sub(base) / (1 << 20);
    at_most("MiB over base after 30,000 changes of roots", cost, 40);
    signal(last_start(&environment.log("deaf")).unwrap(), "-CONT");
    peer.ready("deaf__echo");
}

/// A client may disconnect from its session while its call is running. The body of the call counts towards the limit
/// until the call ends.
#[test]
fn bodies_of_disconnected_clients_count_towards_the_limit() {
    let environment = TestEnvironment::new("left-bodies")
        .faulty_with("deaf", &["--hang", "hang"], "call_timeout = 3600")
        .with("[http]\nbody_bytes = 1000000\n");
    let gateway = environment.serve();
    let peer = gateway.peer(Era::Older);
    peer.ready("deaf__echo");
    let pad = "x".repeat(600_000);
    for _ in 0..3 {
        // The limit has room for only one of these bodies. Each call succeeds, because the body of a call that has
        // ended no longer counts.
        let echo =
            || peer.call("deaf__echo", json!({"pad": pad}))["structuredContent"]["pad"].is_string();
        until_true("an answer", echo);
    }
    let call = peer.begin("deaf__hang", json!({"pad": pad}));
    until_true("the server receives the call", || {
        count(&environment.log("deaf"), "call hang") == 1
    });
    call.socket.as_ref().unwrap().shutdown(Shutdown::Both).unwrap();
    // Returns no status if the connection was closed before the body was sent completely.
    let status = || {
        let body = json!({"pad": pad}).to_string();
        let headers = vec![
            ("Accept", "application/json, text/event-stream".to_owned()),
            ("Content-Type", "application/json".to_owned()),
        ];
        let request = Request { method: "POST", path: "/mcp", headers, body: body.as_bytes() };
        Some(http::receive(http::send(&gateway.address, &request).ok()?).ok()?.status)
    };
    // The requests must still be refused after the gateway has noticed that the client disconnected.
    for _ in 0..50 {
        let status = status();
        assert!(
            status.is_none_or(|status| status == 503),
            "{status:?}: the running call's body still counts"
        );
    }
    assert!((200..300).contains(&peer.delete()));
    until_true("requests are accepted after the call has ended", || {
        status().is_some_and(|status| status != 503)
    });
}

/// A session counts towards the limit of sessions even if its id is used under the path of another profile.
#[test]
fn a_session_used_under_another_profile_counts_towards_the_limit() {
    for method in ["POST", "DELETE"] {
        let environment = TestEnvironment::new("other-profile")
            .faulty("one", &[])
            .with("[gateway.limits]\nsessions = 3\n[profiles.other]\n");
        let gateway = environment.serve();
        let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
        let begin = || {
            let response = send(&gateway, "POST", "/mcp", None, &initialize(1, "x", &json!({})));
            response.header("mcp-session-id").unwrap().to_owned()
        };
        let ids: Vec<String> = std::iter::repeat_with(begin)
            .take(10)
            .inspect(|id| {
                let status = send(&gateway, method, "/mcp/other", Some(id), list).status;
                assert!(method == "DELETE" || status == 404, "{status}");
            })
            .collect();
        let is_open = |id: &&String| send(&gateway, "POST", "/mcp", Some(id), list).status == 200;
        let open = ids.iter().filter(is_open).count();
        assert_eq!(open, 3, "{method}: the last three are open, and the limit is 3");
    }
}
