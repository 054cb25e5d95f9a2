//! An MCP server over HTTP+SSE, the transport of protocol version 2024-11-05, each of whose tools fails in a different
//! way. It is written without a library, so that it can break rules that a library would enforce.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::faulty_http_server::{request_with_headers, say};

/// The header that every request must have.
pub(crate) const KEY: &str = "x-key: canary-of-the-header";
/// Size of an event that is larger than the limit of every test, in bytes.
const GIANT: usize = 128 << 20;

/// The server and what it has received.
#[derive(Default)]
pub(crate) struct FaultySseServer {
    pub(crate) address: String,
    /// How many event streams were opened.
    pub(crate) streams_opened: AtomicU64,
    /// How many messages were posted to the URL of the event stream, as a client of Streamable HTTP does.
    pub(crate) posts_to_stream: AtomicU64,
    /// How many messages were posted to the URL that a second `endpoint` event named.
    pub(crate) posts_elsewhere: AtomicU64,
    /// Whether event streams are refused.
    pub(crate) refuses: AtomicBool,
    streams: Mutex<HashMap<u64, TcpStream>>,
    /// The session and the id of the call that waits for `release`.
    held: Mutex<Option<(u64, Value)>>,
}

/// Starts the server, which runs as long as the test process.
pub(crate) fn start() -> Arc<FaultySseServer> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = Arc::new(FaultySseServer { address, ..FaultySseServer::default() });
    let shared = Arc::clone(&server);
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let server = Arc::clone(&shared);
            std::thread::spawn(move || server.serve(socket));
        }
    });
    server
}

impl FaultySseServer {
    /// Handles one request per connection.
    fn serve(&self, mut socket: TcpStream) -> Option<()> {
        let (head, body) = request_with_headers(&socket)?;
        let path = head.split(' ').nth(1)?;
        if !head.to_ascii_lowercase().contains(KEY) {
            return say(&mut socket, "403 Forbidden", "", b"no key");
        }
        let page = path.split('?').next()?;
        if head.starts_with("GET ") {
            return self.open(socket, page);
        }
        if let Some(session) = path.strip_prefix("/post?session=") {
            let message = serde_json::from_slice(&body).ok()?;
            return self.answer(&mut socket, session.parse().ok()?, &message);
        }
        let counter =
            if page == "/elsewhere" { &self.posts_elsewhere } else { &self.posts_to_stream };
        counter.fetch_add(1, Ordering::SeqCst);
        let status = match page {
            "/moved" => {
                return say(&mut socket, "307 Temporary Redirect", "Location: /sse\r\n", b"");
            }
            "/strict" => "400 Bad Request",
            "/method" => "405 Method Not Allowed",
            "/broken" => "500 Internal Server Error",
            _ => "404 Not Found",
        };
        say(&mut socket, status, "", b"no such page")
    }

    /// Opens an event stream.
    fn open(&self, mut socket: TcpStream, page: &str) -> Option<()> {
        let session = self.streams_opened.fetch_add(1, Ordering::SeqCst);
        if page == "/absent" || self.refuses.load(Ordering::SeqCst) {
            return say(&mut socket, "404 Not Found", "", b"no such page");
        }
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream\r\nConnection: close\r\n\r\n";
        socket.write_all(head.as_bytes()).ok()?;
        let endpoint = match page {
            // Nothing arrives, but the stream stays open.
            "/silent" => return socket.read_to_end(&mut Vec::new()).ok().map(drop),
            "/ends" => return None,
            "/foreign" => "http://localhost:9/post".to_owned(),
            _ => format!("/post?session={session}"),
        };
        self.streams().insert(session, socket.try_clone().ok()?);
        write!(socket, ": hello\r\n\r\nevent: endpoint\r\ndata: {endpoint}\r\n\r\n").ok()?;
        // Waits until the client closes the stream.
        socket.read_to_end(&mut Vec::new()).ok().map(drop)
    }

    /// Whether a call waits for `release`.
    pub(crate) fn holds(&self) -> bool {
        self.held.lock().unwrap().is_some()
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<u64, TcpStream>> {
        self.streams.lock().unwrap()
    }

    fn event(&self, session: u64, name: &str, data: &str) -> Option<()> {
        let event = format!("event: {name}\ndata: {data}\n\n");
        self.streams().get_mut(&session)?.write_all(event.as_bytes()).ok()
    }

    fn message(&self, session: u64, message: &Value) -> Option<()> {
        self.event(session, "message", &message.to_string())
    }

    fn result(&self, session: u64, id: &Value, result: &Value) -> Option<()> {
        self.message(session, &json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    /// Answers a message on the event stream.
    fn answer(&self, socket: &mut TcpStream, session: u64, message: &Value) -> Option<()> {
        let accepted = |socket: &mut TcpStream| say(socket, "202 Accepted", "", b"Accepted");
        let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) else {
            return accepted(socket);
        };
        let result = match method {
            "initialize" => json!({
                "protocolVersion": "2024-11-05",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "events", "version": "1"},
            }),
            "ping" => json!({}),
            "tools/list" => {
                let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
                let names = ["echo", "hold", "release", "giant", "unterminated", "post_500"];
                let more = ["post_never", "second_endpoint", "close"];
                json!({"tools": names.into_iter().chain(more).map(tool).collect::<Vec<_>>()})
            }
            "tools/call" => {
                return self.call(socket, session, id, &message["params"]);
            }
            _ => {
                let error = json!({"code": -32601, "message": "unknown method"});
                self.message(session, &json!({"jsonrpc": "2.0", "id": id, "error": error}))?;
                return accepted(socket);
            }
        };
        // The answer is sent before the POST is answered, as many servers do.
        self.result(session, id, &result)?;
        accepted(socket)
    }

    fn call(&self, socket: &mut TcpStream, session: u64, id: &Value, params: &Value) -> Option<()> {
        let echo = json!({"content": [], "structuredContent": params["arguments"]});
        let start = format!(r#"data: {{"jsonrpc":"2.0","id":{id},"result":{{"content":["#);
        match params["name"].as_str()? {
            "hold" => *self.held.lock().unwrap() = Some((session, id.clone())),
            "release" => {
                let (session, held) = self.held.lock().unwrap().take()?;
                self.result(session, &held, &echo)?;
                self.result(session, id, &echo)?;
            }
            "post_500" => return say(socket, "500 Internal Server Error", "", b"stack trace"),
            "post_never" => {
                self.result(session, id, &echo)?;
                return socket.read_to_end(&mut Vec::new()).ok().map(drop);
            }
            "giant" => self.giant(session, &start)?,
            "unterminated" => self.giant(session, "")?,
            "second_endpoint" => {
                self.event(session, "endpoint", "/elsewhere")?;
                self.result(session, id, &echo)?;
            }
            "close" => self.streams().remove(&session)?.shutdown(Shutdown::Both).ok()?,
            _ => self.result(session, id, &echo)?,
        }
        say(socket, "202 Accepted", "", b"Accepted")
    }

    /// Sends an event that is much larger than the limit, and ends it.
    fn giant(&self, session: u64, start: &str) -> Option<()> {
        let mut streams = self.streams();
        let stream = streams.get_mut(&session)?;
        stream.write_all(start.as_bytes()).ok()?;
        let piece = [b'x'; 1 << 14];
        for _ in 0..GIANT / piece.len() {
            stream.write_all(&piece).ok()?;
        }
        stream.write_all(b"\n\n").ok()
    }
}
