//! An MCP client over HTTP. It either opens a session with a handshake, or is stateless.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use serde_json::{Value, json};

use crate::client::{Answer, Call, Client, Schedule, since, wait};
use toolcrib_bench::{BenchError, Connection};

/// Number of concurrent connections in [`Client::open_loop`] and [`Client::saturate`].
const CONNECTIONS: u32 = 16;

const PATH: &str = "/mcp";
const ACCEPT: &str = "Accept: application/json, text/event-stream\r\n";

/// How the server learns which client sent a request.
#[derive(Debug, Clone)]
enum Identification {
    /// The client sends the id of the session that its handshake opened.
    Session(String),
    /// The client describes itself in every request.
    Stateless,
}

pub(crate) struct HttpClient {
    address: String,
    era: Identification,
    /// The id of the next request. Concurrent requests of a session must have different ids.
    next: AtomicU32,
}

impl HttpClient {
    /// Creates a client and performs the handshake, which opens a session.
    pub(crate) fn session(address: &str) -> Result<Self, BenchError> {
        let mut connection = Connection::open(address)?;
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }});
        let session = connection.post(PATH, ACCEPT, &hello.to_string())?;
        let session = session.header("mcp-session-id").ok_or("no session")?.to_owned();
        let client = Self::new(address, Identification::Session(session));
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        connection.post(PATH, &client.headers("", None), &ready.to_string())?;
        Ok(client)
    }

    pub(crate) fn stateless(address: &str) -> Self {
        Self::new(address, Identification::Stateless)
    }

    fn new(address: &str, era: Identification) -> Self {
        Self { address: address.to_owned(), era, next: AtomicU32::new(1) }
    }

    fn headers(&self, method: &str, name: Option<&str>) -> String {
        match &self.era {
            Identification::Session(session) => {
                format!("{ACCEPT}MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n")
            }
            Identification::Stateless => {
                let name = name.map(|name| format!("Mcp-Name: {name}\r\n")).unwrap_or_default();
                format!(
                    "{ACCEPT}MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}"
                )
            }
        }
    }

    /// Returns the headers and the body of a request.
    fn request(&self, method: &str, params: &Value) -> (String, String) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut params = params.clone();
        if matches!(self.era, Identification::Stateless) {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let headers = self.headers(method, params["name"].as_str());
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        (headers, body.to_string())
    }

    /// Opens all connections, calls `work` in a separate thread for each connection with its index, and returns the
    /// results.
    fn run_on_all_connections<T: Send>(
        &self,
        work: impl Fn(u32, Connection) -> Result<T, BenchError> + Sync,
    ) -> Result<Vec<T>, BenchError> {
        let work = &work;
        std::thread::scope(|threads| {
            let threads: Vec<_> = (0..CONNECTIONS)
                .map(|i| threads.spawn(move || work(i, Connection::open(&self.address)?)))
                .collect();
            let ended = |thread: std::thread::ScopedJoinHandle<'_, Result<T, BenchError>>| {
                thread.join().map_err(|_| "a connection ended")?
            };
            threads.into_iter().map(ended).collect()
        })
    }
}

impl Client for HttpClient {
    fn ask(&self, method: &str, params: &Value) -> Result<Value, BenchError> {
        let (headers, body) = self.request(method, params);
        let response = Connection::open(&self.address)?.post(PATH, &headers, &body)?;
        let mut answer: Value = serde_json::from_slice(message(&response.body)?)?;
        match answer["result"].take() {
            Value::Null => Err(answer.to_string().into()),
            result => Ok(result),
        }
    }

    fn open_loop(&self, call: &Call, schedule: Schedule) -> Result<Vec<f64>, BenchError> {
        let params = call.params();
        let begin = Instant::now();
        let took = self.run_on_all_connections(|first, mut connection| {
            let mut took = Vec::new();
            for i in (first..schedule.calls).step_by(CONNECTIONS as usize) {
                let (headers, body) = self.request("tools/call", &params);
                let due = schedule.due(begin, i);
                wait(due);
                let response = connection.post(PATH, &headers, &body)?;
                Answer::id(message(&response.body)?)?.ok_or("no answer")?;
                took.push(since(due));
            }
            Ok(took)
        })?;
        Ok(took.concat())
    }

    fn saturate(&self, call: &Call, calls: u32) -> Result<f64, BenchError> {
        let params = call.params();
        let begin = Instant::now();
        self.run_on_all_connections(|_, mut connection| {
            for _ in 0..calls / CONNECTIONS {
                let (headers, body) = self.request("tools/call", &params);
                let response = connection.post(PATH, &headers, &body)?;
                Answer::id(message(&response.body)?)?.ok_or("no answer")?;
            }
            Ok(())
        })?;
        Ok(f64::from(calls) / begin.elapsed().as_secs_f64())
    }
}

/// Returns the JSON message of a response body: the data of the last event that contains data, or the entire body if
/// the body is not an event stream.
fn message(body: &[u8]) -> Result<&[u8], BenchError> {
    let events = body.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
    let last = events.map(<[u8]>::trim_ascii).rfind(|data| !data.is_empty());
    let message = last.unwrap_or(body);
    if message.is_empty() { Err("an empty answer".into()) } else { Ok(message) }
}
