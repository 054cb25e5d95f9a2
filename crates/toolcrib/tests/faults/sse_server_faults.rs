//! Tests of servers over HTTP+SSE that break the rules of their transport.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::faulty_http_server::request_with_headers;
use crate::faulty_sse_server::{self, FaultySseServer};
use crate::probe::{at_most, peak_memory, until_true};
use crate::raw_client::{ERAS, Era};
use crate::{print_duration, print_figure};

const HEADER: &str = "headers = { X-Key = 'canary-of-the-header' }\n";

fn config(server: &FaultySseServer, name: &str, path: &str, more: &str) -> String {
    let address = &server.address;
    format!("[servers.{name}]\nurl = 'http://{address}{path}'\n{HEADER}{more}")
}

/// A fault fails one call at most. Other calls on the same event stream are not affected, and memory stays bounded.
#[test]
fn each_fault_of_an_sse_server_fails_one_call() {
    for era in ERAS {
        let server = faulty_sse_server::start();
        let more = "transport = 'sse'\ncall_timeout = 600\n";
        let environment = TestEnvironment::new(&format!("sse-{era:?}"))
            .with(&config(&server, "web", "/sse", more));
        let peer = environment.stdio(era);
        peer.ready("web__echo");
        let base = peak_memory(peer.gateway());
        for (fault, expected) in [
            ("giant", "larger than the limit of 8388608 bytes"),
            ("post_500", "HTTP 500 Internal Server Error: stack trace"),
        ] {
            let held = peer.begin("web__hold", json!({}));
            until_true("the server holds a call", || server.holds());
            let began = Instant::now();
            let answer = peer.call(&format!("web__{fault}"), json!({}));
            print_duration(&format!("an error after {fault}"), began.elapsed());
            print_figure(fault, &answer);
            assert!(answer.to_string().contains(expected), "{fault}: {answer}");
            peer.call("web__release", json!({"from": fault}));
            assert_eq!(held.end()["structuredContent"], json!({"from": fault}));
        }
        // An event without an id can be matched to a call only if it is the only one.
        let answer = peer.call("web__unterminated", json!({}));
        assert!(answer.to_string().contains("larger than the limit"), "{answer}");
        for fault in ["post_never", "second_endpoint", "echo"] {
            let answer = peer.call(&format!("web__{fault}"), json!({"to": fault}));
            assert_eq!(answer["structuredContent"], json!({"to": fault}), "{answer}");
        }
        assert_eq!(server.posts_elsewhere.load(Ordering::SeqCst), 0);
        assert_eq!(server.streams_opened.load(Ordering::SeqCst), 1, "all on one stream");
        let over = peak_memory(peer.gateway()).saturating_sub(base) >> 20;
        at_most("MiB over base after 256 MiB of events", over, 64);

        // The end of the stream ends the connection and the calls on it. Then the gateway connects again.
        let answer = peer.call("web__close", json!({}));
        assert!(answer.to_string().contains("it ended its event stream"), "{answer}");
        peer.ready("web__echo");
        assert_eq!(server.streams_opened.load(Ordering::SeqCst), 2);
        assert_eq!(server.posts_to_stream.load(Ordering::SeqCst), 0, "`sse` does not probe");
    }
}

/// Without `transport`, Streamable HTTP is tried first, and what was found is remembered.
#[test]
fn a_server_that_rejects_streamable_http_is_reached_over_sse() {
    for path in ["/sse", "/strict", "/method"] {
        let server = faulty_sse_server::start();
        let environment = TestEnvironment::new(&format!("auto{}", path.replace('/', "-")))
            .with(&config(&server, "web", path, ""));
        let peer = environment.stdio(Era::Older);
        peer.ready("web__echo");
        let probes = server.posts_to_stream.load(Ordering::SeqCst);
        assert!(probes > 0, "{path}");
        peer.call("web__close", json!({}));
        peer.ready("web__echo");
        assert_eq!(server.posts_to_stream.load(Ordering::SeqCst), probes, "{path}: remembered");
        // After a failure, Streamable HTTP is tried again, because the server may have been replaced by a newer one.
        server.refuses.store(true, Ordering::SeqCst);
        peer.call("web__close", json!({}));
        until_true("another probe", || server.posts_to_stream.load(Ordering::SeqCst) > probes);
        server.refuses.store(false, Ordering::SeqCst);
        peer.ready("web__echo");
        let rows = environment.doctor();
        assert_eq!(rows[0]["transport"], "sse", "{}", rows[0]);
        assert_eq!(rows[0]["era"], "handshake 2024-11-05", "{}", rows[0]);
        let table = environment.toolcrib(&["doctor"]).stdout(Stdio::piped()).output().unwrap();
        let table = String::from_utf8(table.stdout).unwrap();
        assert!(table.contains("handshake 2024-11-05, sse"), "{table}");
    }
}

/// Each server that cannot be connected to is reported with its own reason. No error contains a secret.
#[test]
fn servers_without_a_usable_endpoint_are_reported() {
    let server = faulty_sse_server::start();
    let sse = "transport = 'sse'\n";
    let both = "HTTP 404 Not Found: no such page; over HTTP+SSE: HTTP 404 Not Found: no such page";
    let foreign = format!(
        "its `endpoint` event names another origin, `http://localhost:9`; messages are sent only to \
         `http://{}`, because they may contain credentials",
        server.address
    );
    let cases = [
        ("absent", "/absent", "", both),
        ("broken", "/broken", "", "HTTP 500"),
        ("ends", "/ends", sse, "it ended its event stream without an `endpoint` event"),
        ("fixed", "/sse", "transport = 'http'\n", "HTTP 404 Not Found: no such page"),
        ("foreign", "/foreign", sse, &*foreign),
        (
            "silent",
            "/silent",
            "transport = 'sse'\nstart_timeout = 1\n",
            "it did not answer within 1 s",
        ),
        (
            "waits",
            "/silent",
            "",
            "HTTP 404 Not Found: no such page; over HTTP+SSE: no `endpoint` event within 5 s",
        ),
    ];
    let mut environment = TestEnvironment::new("sse-endpoints");
    for (name, path, more, _) in cases {
        environment =
            environment.with(&config(&server, name, &format!("{path}?k=canary-of-url"), more));
    }
    let rows = environment.doctor();
    for ((name, .., error), row) in cases.iter().zip(&rows) {
        assert_eq!(row["state"], "down", "{name}: {row}");
        assert_eq!(row["error"], *error, "{name}");
    }
    assert_eq!(rows[4]["transport"], "sse", "{}", rows[4]);
    assert!(!format!("{rows:?}{}", environment.stderr()).contains("canary"));
}

/// A server cannot make the gateway send its messages, and with them the configured headers, to another host.
#[test]
fn nothing_is_sent_to_an_endpoint_on_another_origin() {
    let received = Arc::new(AtomicU64::new(0));
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let victim = other.local_addr().unwrap();
    let counter = Arc::clone(&received);
    std::thread::spawn(move || {
        for _socket in other.incoming().flatten() {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let _ = request_with_headers(&socket);
            let event = format!("event: endpoint\ndata: http://{victim}/post\n\n");
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
            let _ = socket.write_all(format!("{head}{event}").as_bytes());
        }
    });
    let text = format!("[servers.web]\nurl = 'http://{address}/sse'\ntransport = 'sse'\n{HEADER}");
    let environment = TestEnvironment::new("sse-origin").with(&text);
    let rows = environment.doctor();
    let error = rows[0]["error"].as_str().unwrap();
    assert!(error.contains(&format!("another origin, `http://{victim}`")), "{error}");
    assert_eq!(received.load(Ordering::SeqCst), 0);
}

/// A status that asks for credentials is reported as a login that is needed, whichever request gets it.
#[test]
fn an_sse_server_that_requires_a_login_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let head = request_with_headers(&socket).unwrap_or_default().0;
            let status =
                if head.starts_with("GET ") { "401 Unauthorized" } else { "404 Not Found" };
            let _ = crate::faulty_http_server::say(&mut socket, status, "", b"");
        }
    });
    let mut environment = TestEnvironment::new("sse-locked");
    for (name, more) in [("auto", ""), ("chosen", "transport = 'sse'"), ("header", HEADER)] {
        let more = more.replace("X-Key", "Authorization");
        let text = format!("[servers.{name}]\nurl = 'http://{address}/sse'\n{more}\n");
        environment = environment.with(&text);
    }
    let rows = environment.doctor();
    let states: Vec<&Value> = rows.iter().map(|row| &row["state"]).collect();
    assert_eq!(states, ["needs login", "needs login", "down"], "{rows:#?}");
    let error = rows[2]["error"].as_str().unwrap();
    assert!(error.contains("it rejected the `Authorization` header of the config"), "{error}");
}
