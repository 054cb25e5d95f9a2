//! A raw JSON-RPC client for both transports and both protocol versions. It uses no library, because a library would
//! hide what was really sent.
//!
//! All received messages are kept in order, and a test that waits for a message searches them.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::http::{self, Request};
use crate::probe::{DEADLINE, signal, until_true, wait_or_kill};
use crate::received_messages::{PendingRequest, ReceivedMessages};

const OLDER_VERSION: &str = "2025-11-25";
const NEWER_VERSION: &str = "2026-07-28";

/// The protocol version of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Older,
    Newer,
}

pub(crate) const ERAS: [Era; 2] = [Era::Older, Era::Newer];

pub(crate) struct RawClient {
    era: Era,
    wire: Transport,
    received: Arc<ReceivedMessages>,
    next: AtomicU64,
    /// The ids of the server's requests that [`Self::wait_for_question`] has returned.
    questions: Mutex<BTreeSet<String>>,
    capabilities: Value,
}

enum Transport {
    Stdio { child: Mutex<Child>, input: Mutex<Option<ChildStdin>> },
    Http { address: String, path: String, session: Mutex<Option<String>> },
}

impl RawClient {
    fn new(era: Era, wire: Transport) -> Self {
        Self {
            era,
            wire,
            received: Arc::default(),
            next: AtomicU64::new(1),
            questions: Mutex::default(),
            capabilities: capabilities(),
        }
    }

    /// Starts a gateway over stdio and connects a client to it.
    pub(crate) fn stdio(command: Command, era: Era) -> Self {
        Self::before_handshake(command, era).with_handshake()
    }

    /// Starts a gateway over stdio, for a client that has not begun its handshake.
    pub(crate) fn before_handshake(mut command: Command, era: Era) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let peer =
            Self::new(era, Transport::Stdio { child: Mutex::new(child), input: Mutex::new(input) });
        let received = Arc::clone(&peer.received);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                received.put(serde_json::from_str(&line).unwrap());
            }
        });
        peer
    }

    /// Connects a client to a running gateway over HTTP.
    pub(crate) fn http(address: &str, path: &str, era: Era) -> Self {
        let (address, path) = (address.to_owned(), path.to_owned());
        Self::new(era, Transport::Http { address, path, session: Mutex::default() })
            .with_handshake()
    }

    /// Connects a client to a running gateway over HTTP. The client shows the user interfaces of tools.
    pub(crate) fn host_over_http(address: &str, era: Era) -> Self {
        let (address, path) = (address.to_owned(), "/mcp".to_owned());
        Self::new(era, Transport::Http { address, path, session: Mutex::default() })
            .showing_apps()
            .with_handshake()
    }

    /// Announces that the client shows the user interfaces of tools.
    pub(crate) fn showing_apps(mut self) -> Self {
        let settings = json!({"mimeTypes": ["text/html;profile=mcp-app"]});
        self.capabilities["extensions"] = json!({"io.modelcontextprotocol/ui": settings});
        self
    }

    /// Announces that the client has no roots.
    pub(crate) fn without_roots(mut self) -> Self {
        self.capabilities.as_object_mut().unwrap().remove("roots");
        self
    }

    /// Performs the handshake, if the client's protocol version has one.
    pub(crate) fn with_handshake(self) -> Self {
        if self.era == Era::Older {
            let hello = json!({
                "protocolVersion": OLDER_VERSION,
                "capabilities": self.capabilities,
                "clientInfo": {"name": "faults", "version": "1"},
            });
            let answer = self.ask("initialize", hello);
            assert_eq!(answer["protocolVersion"], OLDER_VERSION, "{answer}");
            self.notify("notifications/initialized", json!({}));
        }
        self
    }

    /// Sends a request without waiting for its response.
    pub(crate) fn start(&self, method: &str, params: Value) -> PendingRequest {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let params = self.complete(params);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let socket = self.send(&message, method);
        PendingRequest { id, received: Arc::clone(&self.received), socket }
    }

    /// Adds the `_meta` that a request of the newer protocol needs.
    fn complete(&self, mut params: Value) -> Value {
        if self.era == Era::Newer {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = NEWER_VERSION.into();
            let info = json!({"name": "faults", "version": "1"});
            for (key, value) in
                [("clientInfo", info), ("clientCapabilities", self.capabilities.clone())]
            {
                let field = &mut meta[format!("io.modelcontextprotocol/{key}")];
                if field.is_null() {
                    *field = value;
                }
            }
        }
        params
    }

    /// Sends a notification.
    pub(crate) fn notify(&self, method: &str, params: Value) {
        let params = self.complete(params);
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}), method);
    }

    /// Answers a request that the server sent.
    pub(crate) fn reply(&self, id: &Value, result: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}), "");
    }

    /// Sends bytes exactly as they are. Only for stdio.
    pub(crate) fn write(&self, bytes: &[u8]) {
        let Transport::Stdio { input, .. } = &self.wire else { panic!("stdio only") };
        input.lock().unwrap().as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Waits for the response to a request that was sent as bytes.
    pub(crate) fn answer_to(&self, id: u64) -> Value {
        let pending = PendingRequest { id, received: Arc::clone(&self.received), socket: None };
        pending.answer(DEADLINE).unwrap_or_else(|| panic!("no answer to {id}")).0
    }

    /// Posts bytes exactly as they are, and returns the status. Only for HTTP.
    pub(crate) fn post(&self, body: &[u8]) -> u16 {
        let Transport::Http { address, path, .. } = &self.wire else { panic!("HTTP only") };
        let headers = self.headers("", &Value::Null);
        http::ask(address, &Request { method: "POST", path, headers, body }).unwrap().0
    }

    fn send(&self, message: &Value, method: &str) -> Option<TcpStream> {
        match &self.wire {
            Transport::Stdio { .. } => {
                self.write(format!("{message}\n").as_bytes());
                None
            }
            Transport::Http { address, path, session } => {
                let headers = self.headers(method, &message["params"]);
                let body = message.to_string();
                let request = Request { method: "POST", path, headers, body: body.as_bytes() };
                let socket = http::send(address, &request).unwrap();
                let copy = socket.try_clone().unwrap();
                if message.get("id").is_none() || method.is_empty() {
                    http::receive(socket).unwrap();
                } else if method == "initialize" {
                    let response = http::receive(socket).unwrap();
                    *session.lock().unwrap() = response.header("mcp-session-id").map(str::to_owned);
                    read(response, &self.received, &message["id"]);
                } else {
                    let (received, id) = (Arc::clone(&self.received), message["id"].clone());
                    std::thread::spawn(move || {
                        if let Ok(response) = http::receive(socket) {
                            read(response, &received, &id);
                        }
                    });
                }
                Some(copy)
            }
        }
    }

    fn headers(&self, method: &str, params: &Value) -> Vec<(&'static str, String)> {
        let Transport::Http { session, .. } = &self.wire else { return Vec::new() };
        let mut headers = vec![
            ("Accept", "application/json, text/event-stream".to_owned()),
            ("Content-Type", "application/json".to_owned()),
        ];
        if self.era == Era::Newer {
            headers.push(("Mcp-Protocol-Version", NEWER_VERSION.to_owned()));
            headers.push(("Mcp-Method", method.to_owned()));
            let named = match method {
                "tools/call" | "prompts/get" => Some(&params["name"]),
                "resources/read" => Some(&params["uri"]),
                "tasks/get" | "tasks/update" | "tasks/cancel" => Some(&params["taskId"]),
                _ => None,
            };
            headers.extend(named.and_then(Value::as_str).map(|name| ("Mcp-Name", name.to_owned())));
        } else if let Some(session) = &*session.lock().unwrap() {
            headers.push(("Mcp-Protocol-Version", OLDER_VERSION.to_owned()));
            headers.push(("Mcp-Session-Id", session.clone()));
        }
        headers
    }

    /// Opens the stream on which a client with a session receives messages that belong to none of its requests.
    pub(crate) fn listen(&self) {
        let Transport::Http { address, path, .. } = &self.wire else { panic!("HTTP only") };
        let headers = self.headers("", &Value::Null);
        let request = Request { method: "GET", path, headers, body: b"" };
        let response = http::receive(http::send(address, &request).unwrap()).unwrap();
        assert_eq!(response.status, 200);
        let received = Arc::clone(&self.received);
        std::thread::spawn(move || read(response, &received, &Value::Null));
    }

    /// Ends the session, and returns the status.
    pub(crate) fn delete(&self) -> u16 {
        let Transport::Http { address, path, .. } = &self.wire else { panic!("HTTP only") };
        let headers = self.headers("", &Value::Null);
        http::ask(address, &Request { method: "DELETE", path, headers, body: b"" }).unwrap().0
    }

    /// Sends a request and waits for its response.
    pub(crate) fn ask(&self, method: &str, params: Value) -> Value {
        self.start(method, params).end()
    }

    /// Calls a tool without waiting for the result.
    pub(crate) fn begin(&self, tool: &str, arguments: Value) -> PendingRequest {
        self.start("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool and waits for its result.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Value {
        self.begin(tool, arguments).end()
    }

    /// Waits until a server answers. `tool` must be a tool that returns its arguments.
    pub(crate) fn ready(&self, tool: &str) {
        until_true(tool, || self.call(tool, json!({}))["structuredContent"] == json!({}));
    }

    /// Returns the names of the listed tools.
    pub(crate) fn names(&self) -> Vec<String> {
        let list = self.ask("tools/list", json!({}));
        let tools = list["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Searches, and returns the structured reply.
    pub(crate) fn search(&self, query: &str) -> Value {
        self.call("tool_search", json!({"query": query}))["structuredContent"].take()
    }

    /// Waits for a request or a notification with this method. Returns `None` if none arrives before the deadline.
    pub(crate) fn wait_for_message(&self, method: &str) -> Option<Value> {
        self.received
            .wait(DEADLINE, |message| message["method"] == method)
            .map(|(message, _)| message)
    }

    /// Waits for a request of the server with this method that was not returned before.
    pub(crate) fn wait_for_question(&self, method: &str) -> Option<Value> {
        let mut returned = self.questions.lock().unwrap();
        let is_new = |message: &Value| {
            message["method"] == method && !returned.contains(&message["id"].to_string())
        };
        let (question, _) = self.received.wait(DEADLINE, is_new)?;
        returned.insert(question["id"].to_string());
        Some(question)
    }

    /// Answers all requests of the server with this method that arrived and were not answered before.
    pub(crate) fn reply_to_all(&self, method: &str, result: &Value) {
        let mut returned = self.questions.lock().unwrap();
        for question in self.messages_so_far() {
            if question["method"] == method && returned.insert(question["id"].to_string()) {
                self.reply(&question["id"], result);
            }
        }
    }

    /// Returns all messages received so far.
    pub(crate) fn messages_so_far(&self) -> Vec<Value> {
        self.received.messages.lock().unwrap().iter().map(|(message, _)| message.clone()).collect()
    }

    /// Closes the client's side of the pipe. Only for stdio.
    pub(crate) fn close(&self) {
        let Transport::Stdio { input, .. } = &self.wire else { panic!("stdio only") };
        input.lock().unwrap().take();
    }

    /// Returns the process id of the gateway that this client started.
    pub(crate) fn gateway(&self) -> u32 {
        let Transport::Stdio { child, .. } = &self.wire else { panic!("stdio only") };
        child.lock().unwrap().id()
    }
}

impl Drop for RawClient {
    fn drop(&mut self) {
        if let Transport::Stdio { child, input } = &mut self.wire {
            let child = child.get_mut().unwrap();
            input.get_mut().unwrap().take();
            if let Ok(None) = child.try_wait() {
                signal(child.id(), "-TERM");
            }
            // Waits for the exit, so that no process of this test remains.
            wait_or_kill(child);
        }
    }
}

fn capabilities() -> Value {
    json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {}})
}

/// Reads a complete response, and stores its messages in `received`. The response is a stream of events, one JSON
/// document, or an error that is not JSON.
fn read(mut response: http::Response, received: &ReceivedMessages, id: &Value) {
    let status = response.status;
    let events = response.header("content-type").is_some_and(|kind| kind.contains("event-stream"));
    let mut rest = String::new();
    while let Some(line) = response.line() {
        match line.strip_prefix("data:") {
            Some(data) if events => {
                if let Ok(message) = serde_json::from_str(data) {
                    received.put(message);
                }
            }
            _ => rest += &line,
        }
    }
    if events {
        return;
    }
    let status_alone = || json!({"id": id, "error": {"status": status, "body": rest}});
    let mut message: Value = serde_json::from_str(&rest).unwrap_or_else(|_| status_alone());
    if message["id"].is_null() {
        message["id"] = id.clone();
    }
    received.put(message);
}
