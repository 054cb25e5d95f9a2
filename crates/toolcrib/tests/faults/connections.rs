//! Tests of clients that open connections and do nothing with them: connections that are idle, or have sent only half a
//! head or half a body.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::json;

use crate::environment::{HttpGateway, TestEnvironment};
use crate::http::{self, Request, receive};
use crate::probe::{DEADLINE, at_most, count, descriptors, until_true};
use crate::raw_client::Era;

const HALF_HEAD: &str = "GET /healthz HTTP/1.1\r\nHost: local";

/// Opens a connection and sends this text.
fn connection(address: &str, sent: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    socket.write_all(sent.as_bytes()).unwrap();
    socket
}

/// Returns what the server sends until it closes the connection. Panics if the server does not close it.
#[track_caller]
fn until_closed(mut socket: TcpStream) -> String {
    let mut answer = Vec::new();
    match socket.read_to_end(&mut answer) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the connection stays open: {error}"),
    }
    String::from_utf8(answer).unwrap()
}

/// Opens a connection with a request in flight, whose body is not sent.
fn in_flight(address: &str) -> TcpStream {
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n";
    let mut socket = connection(address, head);
    let mut answer = [0; 25];
    socket.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 100 Continue\r\n\r\n");
    socket
}

fn is_open(socket: &TcpStream) -> bool {
    socket.set_nonblocking(true).unwrap();
    match socket.peek(&mut [0]) {
        Ok(bytes) => bytes > 0,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

/// Returns the status of the health check.
#[track_caller]
fn health(gateway: &HttpGateway) -> u16 {
    let request = Request { method: "GET", path: "/healthz", headers: Vec::new(), body: b"" };
    let socket = http::send(&gateway.address, &request).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    receive(socket).expect("the health check is answered").status
}

/// Opens about as many connections as the process may have open files. Before connections were limited, this made the
/// health check time out.
#[test]
fn idle_connections_do_not_block_new_ones() {
    let environment = TestEnvironment::new("idle-connections").faulty("one", &["--hang", "hang"]);
    let gateway = environment.serve_within(Some(256));
    let peer = gateway.peer(Era::Older);
    peer.ready("one__echo");
    peer.listen();
    let call = peer.begin("one__hang", json!({}));
    until_true("the server receives the call", || count(&environment.log("one"), "call hang") == 1);
    let mut sockets = Vec::new();
    for sent in ["", HALF_HEAD] {
        sockets.extend((0..250).map(|_| connection(&gateway.address, sent)));
        assert_eq!(health(&gateway), 200);
        at_most("open files", descriptors(gateway.pid()), 200);
    }
    // Connections with a request in flight were not closed, so the call can still be cancelled.
    peer.notify("notifications/cancelled", json!({"requestId": call.id}));
    peer.ready("one__echo");
    assert!(
        environment.stderr().contains("the limit on connections is reached"),
        "{}",
        environment.stderr()
    );
    assert_eq!(
        environment.stderr().matches("the limit on connections is reached").count(),
        1,
        "one line per minute is logged"
    );
}

/// When every connection is busy, the health check is still answered, and other requests get status 503 with
/// `Retry-After`.
#[test]
fn busy_connections_leave_room_for_the_health_check() {
    let environment = TestEnvironment::new("busy-connections")
        .faulty("one", &[])
        .with("[http]\nconnections = 4\nbody_timeout = 3600\n");
    let gateway = environment.serve();
    let peer = gateway.peer(Era::Older);
    let busy: Vec<_> = (0..4).map(|_| in_flight(&gateway.address)).collect();
    let list = Request { method: "GET", path: "/metrics", headers: Vec::new(), body: b"" };
    let mut response = receive(http::send(&gateway.address, &list).unwrap()).unwrap();
    assert_eq!(response.status, 503);
    assert!(response.header("retry-after").is_some());
    assert!(response.line().unwrap().contains("all connections of this server are busy"));
    for _ in 0..40 {
        assert_eq!(health(&gateway), 200);
    }
    assert!(busy.iter().all(is_open), "no busy connection is closed");
    drop(busy);
    until_true("requests are accepted again", || {
        http::ask(&gateway.address, &list).is_ok_and(|(status, _)| status == 200)
    });
    peer.ready("one__echo");
}

#[test]
fn connections_without_progress_are_closed() {
    let environment = TestEnvironment::new("no-progress")
        .faulty("one", &["--hang", "hang"])
        .with("[http]\nheader_timeout = 1\nidle_timeout = 1\nbody_timeout = 1\n");
    let gateway = environment.serve();
    let peer = gateway.peer(Era::Older);
    peer.ready("one__echo");
    let call = peer.begin("one__hang", json!({}));
    until_true("the server receives the call", || count(&environment.log("one"), "call hang") == 1);
    assert_eq!(until_closed(connection(&gateway.address, "")), "");
    assert_eq!(until_closed(connection(&gateway.address, HALF_HEAD)), "");
    // A connection that sends one request and then nothing is closed.
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let answer = until_closed(connection(&gateway.address, request));
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok\n"), "{answer}");
    // A connection that sends one request and then half of another is closed.
    let answer = until_closed(connection(&gateway.address, &format!("{request}{HALF_HEAD}")));
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    for path in ["/mcp", "/v1/chat/completions"] {
        let body = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: 100\r\n\r\n{{"
        );
        let answer = until_closed(connection(&gateway.address, &body));
        assert!(answer.starts_with("HTTP/1.1 408"), "{path}: {answer}");
        assert!(answer.contains("no byte of the request body arrived for 1 seconds"), "{answer}");
    }
    // The stream of the call has been silent for longer than every timeout, and is still open.
    assert!(is_open(call.socket.as_ref().unwrap()), "the stream of a call stays open");
}
