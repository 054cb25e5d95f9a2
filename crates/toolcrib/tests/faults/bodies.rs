//! Tests that the total size of request bodies in flight is limited, for all clients and paths together.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use crate::environment::TestEnvironment;
use crate::http::{self, Request, receive};
use crate::probe::{DEADLINE, at_most, peak_memory, until_true};

/// Sends the head of a request with this content length, and the first `sent` bytes of its body.
fn begin(address: &str, path: &str, length: usize, sent: usize) -> TcpStream {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).unwrap();
    // This error is ignored, because a server that rejects the request early may close the connection before it has
    // read everything.
    let _ = socket.write_all(&vec![b' '; sent]);
    socket
}

/// Whether the server has sent a response or closed the connection.
fn has_answer(socket: &TcpStream) -> bool {
    socket.set_nonblocking(true).unwrap();
    let peeked = socket.peek(&mut [0]);
    socket.set_nonblocking(false).unwrap();
    !matches!(peeked, Err(error) if error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn bodies_in_flight_are_limited_in_total() {
    // This upstream accepts connections and never answers.
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let environment = TestEnvironment::new("bodies").with(&format!(
        "[http]\nbody_bytes = 1000000\nbody_timeout = 3600\n[proxy]\nopenai = 'http://{}'\nanthropic = 'http://127.0.0.1:9'\n",
        upstream.local_addr().unwrap()
    ));
    let gateway = environment.serve();
    let body = vec![b' '; 600_000];
    let ask = |path: &str| {
        let headers = vec![
            ("Accept", "application/json, text/event-stream".to_owned()),
            ("Content-Type", "application/json".to_owned()),
        ];
        let request = Request { method: "POST", path, headers, body: &body };
        let mut response = receive(http::send(&gateway.address, &request).ok()?).ok()?;
        let text = response.line().unwrap_or_default();
        Some((response.status, response.header("retry-after").is_some(), text))
    };
    let is_refused = |path: &str| match ask(path) {
        Some((503, true, text)) => {
            let message = "the bodies of other requests in flight take up all memory for bodies";
            assert!(text.contains(message), "{text}");
            true
        }
        Some((503, false, text)) => panic!("the response has no `Retry-After`: {text}"),
        // The request was accepted, or the connection was closed before the body was sent completely.
        _ => false,
    };
    assert!(
        !is_refused("/v1/messages") && !is_refused("/mcp"),
        "a single body fits into the limit"
    );

    // An incomplete body counts towards the limit, and so does the body of a request that waits for its provider.
    let waiting = "/v1/chat/completions";
    for (length, sent) in [(700_000, 600_000), (600_000, 600_000)] {
        let mut holder = begin(&gateway.address, waiting, length, sent);
        for path in ["/v1/messages", "/mcp"] {
            until_true("a request over the total is refused", || {
                if has_answer(&holder) {
                    // This request was refused, because the body of the previous request still counted. It is sent
                    // again.
                    holder = begin(&gateway.address, waiting, length, sent);
                }
                is_refused(path)
            });
        }
        drop(holder);
        until_true("requests are accepted again", || {
            ask("/v1/messages").is_some_and(|(status, ..)| status != 503)
        });
    }
    // A body larger than the total can never fit. Waiting would not help, so the status is 413 and not 503.
    let mut socket = begin(&gateway.address, waiting, 1_000_001, 0);
    let mut head = [0; 12];
    socket.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 413");
}

/// Simulates an attack: thirty clients send large bodies at the same time and never finish.
#[test]
fn large_bodies_at_the_same_time_take_bounded_memory() {
    const BODY: usize = 4_000_000;
    let environment = TestEnvironment::new("large-bodies")
        .with("[http]\nbody_bytes = 8388608\nbody_timeout = 3600\n");
    let gateway = environment.serve();
    let before = peak_memory(gateway.pid());
    let sockets: Vec<TcpStream> = std::thread::scope(|scope| {
        let send = || begin(&gateway.address, "/v1/chat/completions", BODY, BODY - 1);
        let threads: Vec<_> = (0..30).map(|_| scope.spawn(send)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    until_true("those that do not fit are refused", || {
        sockets.iter().filter(|socket| has_answer(socket)).count() >= 28
    });
    at_most(
        "bytes for 30 bodies of 4 MB",
        peak_memory(gateway.pid()).saturating_sub(before),
        60_000_000,
    );
}
