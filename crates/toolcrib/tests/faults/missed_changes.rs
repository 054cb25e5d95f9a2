//! Tests of a list that changes when its server cannot announce the change: after the list was fetched, and before the
//! stream for changes is open. Also tests streams for changes that end repeatedly.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::faulty_http_server::{document, request, say};
use crate::probe::until_true;
use crate::raw_client::{ERAS, Era};

/// A server over HTTP that has one more tool as soon as the stream for changes opens, and never announces this change.
struct Server {
    era: Era,
    /// If set, the server sends this response on each stream for changes and ends the stream immediately.
    ends_streams: Option<&'static str>,
    streams: AtomicUsize,
    opened: Mutex<Vec<Instant>>,
    lists: AtomicUsize,
}

impl Server {
    fn new(era: Era) -> Self {
        let (streams, opened, lists) = Default::default();
        Self { era, ends_streams: None, streams, opened, lists }
    }
}

fn start(server: &Arc<Server>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = Arc::clone(server);
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let server = Arc::clone(&server);
            std::thread::spawn(move || serve(socket, &server));
        }
    });
    address
}

fn serve(mut socket: TcpStream, server: &Server) -> Option<()> {
    let era = server.era;
    let (first, body) = request(&socket)?;
    if first.starts_with("GET ") {
        server.streams.fetch_add(1, Ordering::SeqCst);
        server.opened.lock().unwrap().push(Instant::now());
        if let Some(response) = server.ends_streams {
            return socket.write_all(response.as_bytes()).ok();
        }
        return stream(socket, ": open\n\n");
    }
    let message: Value = serde_json::from_slice(&body).ok()?;
    let Some(id) = message.get("id") else { return say(&mut socket, "202 Accepted", "", b"") };
    let capabilities = json!({"tools": {"listChanged": true}});
    let result = match message["method"].as_str()? {
        "server/discover" if era == Era::Newer => json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": capabilities,
            "ttlMs": 0,
            "cacheScope": "private",
        }),
        "initialize" if era == Era::Older => {
            let result = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities,
                "serverInfo": {"name": "unheard", "version": "1"},
            });
            let headers = "Content-Type: application/json\r\nMcp-Session-Id: one\r\n";
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
            return say(&mut socket, "200 OK", headers, answer.as_bytes());
        }
        "ping" => json!({}),
        "tools/list" => {
            let names = ["before", "after"].into_iter();
            server.lists.fetch_add(1, Ordering::SeqCst);
            let count = if server.streams.load(Ordering::SeqCst) > 0 { 2 } else { 1 };
            let tool = |name| json!({"name": name, "inputSchema": {"type": "object"}});
            let tools: Vec<Value> = names.take(count).map(tool).collect();
            json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"})
        }
        "subscriptions/listen" => {
            server.streams.fetch_add(1, Ordering::SeqCst);
            let acknowledged = json!({
                "jsonrpc": "2.0",
                "method": "notifications/subscriptions/acknowledged",
                "params": {
                    "_meta": {"io.modelcontextprotocol/subscriptionId": id},
                    "notifications": {"toolsListChanged": true},
                },
            });
            return stream(socket, &format!("data: {acknowledged}\n\n"));
        }
        _ => {
            let error = json!({"code": -32601, "message": "unknown method"});
            return document(&mut socket, &json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    document(&mut socket, &json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// Sends an event on a stream that then stays open until the client closes it.
fn stream(mut socket: TcpStream, event: &str) -> Option<()> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    socket.write_all(format!("{head}{event}").as_bytes()).ok()?;
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).ok().map(drop)
}

const EMPTY: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const RETRY_AT_ONCE: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\nretry: 0\nid: 1\ndata:\n\n";
/// A response whose body is shorter than its content length, which is an error.
const TRUNCATED: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 1000\r\nConnection: close\r\n\r\nid: 1\ndata:\n\n";

#[test]
fn a_change_before_the_stream_opens_is_noticed() {
    for era in ERAS {
        let address = start(&Arc::new(Server::new(era)));
        let server = format!("[servers.web]\nurl = 'http://{address}/mcp'\n");
        let environment = TestEnvironment::new(&format!("unheard-{era:?}")).with(&server);
        let peer = environment.stdio(Era::Older);
        until_true("the tool that was added later is found", || {
            peer.search("select:web__after")["hits"][0]["name"] == "web__after"
        });
    }
}

#[test]
fn a_stream_that_ends_repeatedly_does_not_refetch_the_lists_each_time() {
    let server = Arc::new(Server { ends_streams: Some(EMPTY), ..Server::new(Era::Older) });
    let address = start(&server);
    let config = format!("[servers.web]\nurl = 'http://{address}/mcp'\n");
    let environment = TestEnvironment::new("unheard-short").with(&config);
    let peer = environment.stdio(Era::Older);
    until_true("the tool is found", || {
        peer.search("select:web__before")["hits"][0]["name"] == "web__before"
    });
    until_true("four streams were opened", || server.streams.load(Ordering::SeqCst) >= 4);
    let lists = server.lists.load(Ordering::SeqCst);
    assert!(lists <= 3, "{lists} lists were fetched for 4 streams");
}

/// Asserts a minimum time between two streams. This is reliable, because a slow machine only makes the time longer.
#[test]
fn a_stream_that_ends_is_not_reopened_at_once() {
    for response in [RETRY_AT_ONCE, TRUNCATED] {
        let server = Arc::new(Server { ends_streams: Some(response), ..Server::new(Era::Older) });
        let address = start(&server);
        let config = format!("[servers.web]\nurl = 'http://{address}/mcp'\n");
        let environment = TestEnvironment::new("unheard-retry").with(&config);
        let _peer = environment.stdio(Era::Older);
        until_true("four streams were opened", || server.streams.load(Ordering::SeqCst) >= 4);
        let opened = server.opened.lock().unwrap().clone();
        let shortest = opened.windows(2).map(|pair| pair[1] - pair[0]).min();
        assert!(shortest >= Some(Duration::from_secs(1)), "{response}: {opened:?}");
    }
}
