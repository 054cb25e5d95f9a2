//! Tests of servers over HTTP that send too many requests, on the stream of a call or on the stream for changes.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::faulty_http_server::{document, request, say};
use crate::probe::{at_most, peak_memory, until_true};
use crate::raw_client::Era;

const MIB: u64 = 1 << 20;
const REQUESTS: u64 = 50_000;

/// How the test server behaves.
struct Server {
    method: &'static str,
    /// Whether the server floods the stream for changes instead of the stream of a call.
    on_get: bool,
    /// Whether the server receives the POSTs with the gateway's responses to its requests, but never acknowledges them.
    holds_answers: bool,
    /// Size of each of the server's requests, in bytes.
    bytes: usize,
    answers: AtomicU64,
}

fn start(server: Server) -> (String, Arc<Server>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = Arc::new(server);
    let all = Arc::clone(&server);
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let server = Arc::clone(&all);
            std::thread::spawn(move || serve(socket, &server));
        }
    });
    (address, server)
}

fn serve(mut socket: TcpStream, server: &Server) -> Option<()> {
    let (first, body) = request(&socket)?;
    if first.starts_with("GET ") {
        events(&mut socket)?;
        if server.on_get {
            flood(&mut socket, server)?;
        }
        return socket.read_to_end(&mut Vec::new()).ok().map(drop);
    }
    let message: Value = serde_json::from_slice(&body).ok()?;
    let Some(id) = message.get("id") else { return say(&mut socket, "202 Accepted", "", b"") };
    let Some(method) = message["method"].as_str() else {
        server.answers.fetch_add(1, Ordering::SeqCst);
        if server.holds_answers {
            return socket.read_to_end(&mut Vec::new()).ok().map(drop);
        }
        return say(&mut socket, "202 Accepted", "", b"");
    };
    let result = match method {
        "initialize" => {
            let result = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "flood", "version": "1"},
            });
            let headers = "Content-Type: application/json\r\nMcp-Session-Id: one\r\n";
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
            return say(&mut socket, "200 OK", headers, answer.as_bytes());
        }
        "ping" => json!({}),
        "tools/list" => {
            let tool = |name| json!({"name": name, "inputSchema": {"type": "object"}});
            json!({"tools": [tool("echo"), tool("flood")]})
        }
        "tools/call" if message["params"]["name"] == "flood" => {
            events(&mut socket)?;
            flood(&mut socket, server)?;
            let result = json!({"content": [{"type": "text", "text": "It is over."}]});
            return event(&mut socket, &json!({"jsonrpc": "2.0", "id": id, "result": result}));
        }
        "tools/call" => {
            json!({"content": [], "structuredContent": message["params"]["arguments"]})
        }
        _ => {
            let error = json!({"code": -32601, "message": "unknown method"});
            return document(&mut socket, &json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    document(&mut socket, &json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn events(socket: &mut TcpStream) -> Option<()> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    socket.write_all(head.as_bytes()).ok()
}

fn event(socket: &mut TcpStream, message: &Value) -> Option<()> {
    socket.write_all(format!("data: {message}\n\n").as_bytes()).ok()
}

/// Sends `REQUESTS` requests, or fewer if the gateway closes the stream.
fn flood(socket: &mut TcpStream, server: &Server) -> Option<()> {
    let text = "x".repeat(server.bytes);
    for number in 0..REQUESTS {
        let id = format!("flood-{number}");
        let params = json!({"text": text});
        event(
            socket,
            &json!({"jsonrpc": "2.0", "id": id, "method": server.method, "params": params}),
        )?;
    }
    Some(())
}

/// Configures the flooding server and a correct one. The limit on open requests is small, because each response is sent
/// in its own POST, and the test server may leave all of these open.
fn environment(name: &str, address: &str) -> TestEnvironment {
    TestEnvironment::new(&format!("exhaust-http-{name}"))
        .with(&format!("[servers.wild]\nurl = 'http://{address}/mcp'\n"))
        .faulty("calm", &[])
        .with("[gateway.limits]\nserver_requests = 20\nserver_stall = 1\n")
}

/// A server that never acknowledges the responses to its requests is disconnected, on whichever stream it sent the
/// requests.
#[test]
fn a_server_that_never_accepts_responses_is_disconnected() {
    for (method, on_get) in
        [("ping", false), ("ping", true), ("roots/list", true), ("no/such/method", false)]
    {
        let answers = AtomicU64::new(0);
        let (address, server) =
            start(Server { method, on_get, holds_answers: true, bytes: 10_000, answers });
        let environment = environment("hold", &address);
        let peer = environment.stdio(Era::Older);
        peer.ready("calm__echo");
        let base = peak_memory(peer.gateway());
        until_true("the flood", || {
            if !on_get {
                peer.call("wild__flood", json!({}));
            }
            server.answers.load(Ordering::SeqCst) > 0
        });
        let why =
            "it does not read the answers to its requests: 20 wait, and none was read for 1 s";
        until_true(why, || environment.stderr().contains(why));
        assert_eq!(peer.call("calm__echo", json!({"n": 1}))["structuredContent"], json!({"n": 1}));
        let over = peak_memory(peer.gateway()).saturating_sub(base) / MIB;
        at_most(&format!("MiB over base after a flood of {method} over HTTP"), over, 128);
    }
}

/// On each of many streams, one large request waits until the responses to earlier requests are acknowledged. The sizes
/// of the waiting requests on all streams together count towards one limit.
#[test]
fn large_requests_from_many_streams_take_bounded_memory() {
    const CALLS: usize = 12;
    let (address, _) = start(Server {
        method: "ping",
        on_get: false,
        holds_answers: true,
        bytes: 4 << 20,
        answers: AtomicU64::new(0),
    });
    // `server_stall` is longer than this test, so the server is not disconnected for being slow.
    let environment = TestEnvironment::new("exhaust-http-waiting")
        .with(&format!("[servers.wild]\nurl = 'http://{address}/mcp'\n"))
        .with(
            "[gateway.limits]\nserver_requests = 2\nserver_stall = 600\nserver_bytes = 16777216\n",
        );
    let peer = environment.stdio(Era::Older);
    peer.ready("wild__echo");
    let base = peak_memory(peer.gateway());
    let calls: Vec<_> = (0..CALLS).map(|_| peer.begin("wild__flood", json!({}))).collect();
    let why = "the waiting requests are too large";
    for call in calls {
        let answer: Value = call.end();
        let text = answer["content"][0]["text"].as_str().unwrap_or_default();
        assert!(answer["isError"] == true && text.contains(why), "{answer}");
    }
    let over = peak_memory(peer.gateway()).saturating_sub(base) / MIB;
    at_most("MiB over base with large requests that wait on twelve streams", over, 160);
}

/// Questions beyond the limit are rejected. If the server continues, it is disconnected.
#[test]
fn endless_questions_over_http_are_limited() {
    let answers = AtomicU64::new(0);
    let method = "sampling/createMessage";
    let (address, server) =
        start(Server { method, on_get: false, holds_answers: false, bytes: 10_000, answers });
    let environment = environment("questions", &address);
    let peer = environment.stdio(Era::Older);
    peer.ready("wild__echo");
    let base = peak_memory(peer.gateway());
    let answer = peer.call("wild__flood", json!({}));
    let why = "it had 20 requests open and continued after 320 were rejected";
    let text = answer["content"][0]["text"].as_str().unwrap_or_default();
    assert!(answer["isError"] == true && text.contains(why), "{answer}");
    until_true(why, || environment.stderr().contains(why));
    let over = peak_memory(peer.gateway()).saturating_sub(base) / MIB;
    at_most("MiB over base after a flood of questions over HTTP", over, 128);
    let refused = server.answers.load(Ordering::SeqCst);
    assert!(refused <= 320, "{refused} answers");
    let asked = peer.messages_so_far().iter().filter(|message| message["method"] == method).count();
    assert!(asked <= 20, "{asked} questions reached the client");
}
