//! A client over HTTP, in either era: a session after a handshake, or each request for itself.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use serde_json::{Value, json};

use crate::client::{Answer, Call, Client, Schedule, since, wait};
use toolcrib_bench::{Connection, Failed};

/// Connections that carry the calls of a schedule, or keep a server busy.
const CONNECTIONS: u32 = 16;

const PATH: &str = "/mcp";
const ACCEPT: &str = "Accept: application/json, text/event-stream\r\n";

/// How a client says who it is.
#[derive(Debug, Clone)]
enum Era {
    /// By the session that its handshake began.
    Session(String),
    /// With every request.
    Stateless,
}

/// A client of one server.
pub(crate) struct Http {
    address: String,
    era: Era,
    /// Of the next request: within a session no two may be under way with the same.
    next: AtomicU32,
}

impl Http {
    /// A client that shakes hands.
    pub(crate) fn session(address: &str) -> Result<Self, Failed> {
        let mut connection = Connection::open(address)?;
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }});
        let session = connection.post(PATH, ACCEPT, &hello.to_string())?;
        let session = session.header("mcp-session-id").ok_or("no session")?.to_owned();
        let client = Self::new(address, Era::Session(session));
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        connection.post(PATH, &client.headers("", None), &ready.to_string())?;
        Ok(client)
    }

    /// A client that does not.
    pub(crate) fn stateless(address: &str) -> Self {
        Self::new(address, Era::Stateless)
    }

    fn new(address: &str, era: Era) -> Self {
        Self { address: address.to_owned(), era, next: AtomicU32::new(1) }
    }

    fn headers(&self, method: &str, name: Option<&str>) -> String {
        match &self.era {
            Era::Session(session) => {
                format!("{ACCEPT}MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n")
            }
            Era::Stateless => {
                let name = name.map(|name| format!("Mcp-Name: {name}\r\n")).unwrap_or_default();
                format!(
                    "{ACCEPT}MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}"
                )
            }
        }
    }

    /// A request, and the headers that go with it.
    fn request(&self, method: &str, params: &Value) -> (String, String) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut params = params.clone();
        if matches!(self.era, Era::Stateless) {
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

    /// Runs one thread for each connection and puts together what they bring.
    fn together<T: Send>(
        &self,
        work: impl Fn(u32, Connection) -> Result<T, Failed> + Sync,
    ) -> Result<Vec<T>, Failed> {
        let work = &work;
        std::thread::scope(|threads| {
            let threads: Vec<_> = (0..CONNECTIONS)
                .map(|i| threads.spawn(move || work(i, Connection::open(&self.address)?)))
                .collect();
            let ended = |thread: std::thread::ScopedJoinHandle<'_, Result<T, Failed>>| {
                thread.join().map_err(|_| "a connection ended")?
            };
            threads.into_iter().map(ended).collect()
        })
    }
}

impl Client for Http {
    fn ask(&self, method: &str, params: &Value) -> Result<Value, Failed> {
        let (headers, body) = self.request(method, params);
        let response = Connection::open(&self.address)?.post(PATH, &headers, &body)?;
        let mut answer: Value = serde_json::from_slice(message(&response.body)?)?;
        match answer["result"].take() {
            Value::Null => Err(answer.to_string().into()),
            result => Ok(result),
        }
    }

    fn open_loop(&self, call: &Call, schedule: Schedule) -> Result<Vec<f64>, Failed> {
        let params = call.params();
        let begin = Instant::now();
        let took = self.together(|first, mut connection| {
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

    fn saturate(&self, call: &Call, calls: u32) -> Result<f64, Failed> {
        let params = call.params();
        let begin = Instant::now();
        self.together(|_, mut connection| {
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

/// The message of a body: the last event that has one, or all of it.
fn message(body: &[u8]) -> Result<&[u8], Failed> {
    let events = body.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
    let last = events.map(<[u8]>::trim_ascii).rfind(|data| !data.is_empty());
    let message = last.unwrap_or(body);
    if message.is_empty() { Err("an empty answer".into()) } else { Ok(message) }
}
