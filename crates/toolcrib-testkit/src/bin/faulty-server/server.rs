//! The server: handles one message at a time.
//!
//! Messages are handled in order. A call that has to wait, because it is slow or sends a request to the client, waits
//! on its own thread, so that it does not block other messages.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::faults::Faults;
use crate::grandchildren::Grandchildren;
use crate::journal::Journal;
use crate::script::Script;
use crate::wire::Output;
use crate::{flood, results, tools, unknown_fields};

/// The protocol versions in which a session starts with `initialize`. If a client requests any other version, the
/// server offers the newest of these.
const REVISIONS: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

pub(crate) struct Server {
    pub(crate) faults: Faults,
    pub(crate) journal: Journal,
    pub(crate) output: Output,
    script: Option<Arc<Script>>,
    grandchildren: Option<Grandchildren>,
    /// Number of `tools/list` requests so far.
    lists: AtomicU64,
    /// Requests to the client that have not been answered yet, by id.
    pending_requests: Mutex<HashMap<u64, Sender<Value>>>,
    next: AtomicU64,
    /// Number of responses to the requests of a flood so far.
    flood_answers: AtomicU64,
    /// The client's last answer to `roots/list`.
    known_roots: Mutex<Value>,
    /// The names of the tools that were added with the tool `learn`.
    learned: Mutex<Vec<String>>,
}

impl Server {
    pub(crate) fn start(faults: Faults) -> io::Result<Self> {
        let journal = Journal::open(faults.log.as_deref())?;
        if let Some(text) = &faults.say {
            eprintln!("{text}");
        }
        journal.note(&format!("start {}", std::process::id()));
        Ok(Self {
            output: Output::new(faults.garbage),
            script: faults.script.as_deref().map(Script::read).transpose()?.map(Arc::new),
            grandchildren: faults.grandchild.then(Grandchildren::start).transpose()?,
            lists: AtomicU64::new(0),
            pending_requests: Mutex::default(),
            next: AtomicU64::new(1),
            flood_answers: AtomicU64::new(0),
            known_roots: Mutex::default(),
            learned: Mutex::default(),
            journal,
            faults,
        })
    }

    /// Exits immediately, as in a crash.
    pub(crate) fn crash(&self) -> ! {
        self.journal.note("exit");
        std::process::exit(1)
    }

    /// Makes the server exit after `delay` milliseconds. Returns immediately.
    pub(crate) fn crash_after(self: &Arc<Self>, delay: u64) {
        let server = Arc::clone(self);
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(delay));
            server.crash();
        });
    }

    /// Starts a thread that notifies the client whenever the file that defines the tools changes.
    pub(crate) fn watch_definitions(self: &Arc<Self>) {
        let server = Arc::clone(self);
        // The file is first read here, before any request is answered. If the thread did the first read, it might do so
        // after the test has already changed the file, and miss that change.
        let mut known = tools::defined(&server.faults);
        thread::spawn(move || {
            loop {
                thread::sleep(Duration::from_millis(5));
                let now = tools::defined(&server.faults);
                if now != known {
                    known = now;
                    server.output.send(&list_changed(), 1);
                }
            }
        });
    }

    pub(crate) fn receive(self: &Arc<Self>, line: &[u8]) {
        let Ok(message) = serde_json::from_slice::<Value>(line) else { return };
        let params = message.get("params").unwrap_or(&Value::Null);
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some(method), Some(id)) => self.request(method, id, params),
            (Some("notifications/cancelled"), None) => {
                let id = &params["requestId"];
                self.journal.note(&format!("cancelled {id}"));
                eprintln!("cancelled {id}");
            }
            (Some("notifications/initialized" | "notifications/roots/list_changed"), None)
                if self.faults.asks_for_roots =>
            {
                let server = Arc::clone(self);
                thread::spawn(move || {
                    let answer = server.ask("roots/list", &json!({})).unwrap_or_default();
                    *server.known_roots.lock() = answer;
                    server.journal.note("roots");
                });
            }
            (_, None) => {}
            (None, Some(id)) => {
                self.journal.note("answered");
                self.handle_response(id, &message);
            }
        }
    }

    fn request(self: &Arc<Self>, method: &str, id: &Value, params: &Value) {
        match method {
            "initialize" => self.journal.note("initialize"),
            "tools/list" => {
                self.lists.fetch_add(1, Ordering::SeqCst);
                self.journal.note("list");
            }
            "tools/call" => {
                self.journal.note(&format!("call {}", params["name"].as_str().unwrap_or_default()));
            }
            _ => {}
        }
        if self.faults.never_answer {
            return;
        }
        match method {
            "initialize" => {
                thread::sleep(Duration::from_millis(self.faults.start_delay));
                while self.faults.start_when.as_ref().is_some_and(|file| !file.exists()) {
                    thread::sleep(Duration::from_millis(5));
                }
                let greeting = initialize_result(params["protocolVersion"].as_str(), &self.faults);
                let greeting = match &self.script {
                    Some(script) => script.initialize_result(greeting),
                    None => greeting,
                };
                self.output.result(id, &greeting.to_string());
            }
            _ if self
                .script
                .as_ref()
                .is_some_and(|script| script.answer(self, method, id, params)) => {}
            "ping" => self.output.result(id, "{}"),
            "logging/setLevel" if self.faults.logging => {
                self.journal.note(&format!("level {}", params["level"].as_str().unwrap_or("?")));
                self.output.result(id, "{}");
            }
            "tools/list"
                if self
                    .faults
                    .refuse_list
                    .is_some_and(|n| self.lists.load(Ordering::SeqCst) >= n) =>
            {
                let text = self.faults.say.as_deref().unwrap_or_default();
                self.output.error(id, -32603, &format!("no list today: {text}"));
            }
            "tools/list" => {
                if self.faults.flood_before_list {
                    flood::flood(&self.faults, &self.output, &Value::Null);
                }
                let learned = self.learned.lock().clone();
                let cursor = params["cursor"].as_str();
                self.output.result(id, &tools::list(&self.faults, &learned, cursor));
                if let Some(delay) = self.faults.die_after_list {
                    self.crash_after(delay);
                }
            }
            "tools/call" => self.call(id, params),
            _ => {
                let text = self.faults.say.as_deref().unwrap_or_default();
                self.output.error(id, -32601, &format!("unknown method: `{method}`{text}"));
            }
        }
    }

    fn call(self: &Arc<Self>, id: &Value, params: &Value) {
        let name = params["name"].as_str().unwrap_or_default();
        if self.faults.die_on.as_deref() == Some(name) {
            self.crash();
        }
        if self.faults.hang.as_deref() == Some(name) {
            return;
        }
        let floods = name == "flood" && !self.faults.deaf;
        if self.faults.slow == 0 && self.question(name).is_none() && !floods {
            return self.answer(id, name, params);
        }
        let (server, id, name, params) =
            (Arc::clone(self), id.clone(), name.to_owned(), params.clone());
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(server.faults.slow));
            server.answer(&id, &name, &params);
        });
    }

    fn answer(&self, id: &Value, name: &str, params: &Value) {
        let is_learned = self.learned.lock().iter().any(|learned| learned == name);
        if !is_learned && !tools::is_known(&self.faults, name) {
            return self.output.error(id, -32602, &format!("unknown tool: `{name}`"));
        }
        if let Some((method, request_params)) = self.question(name) {
            let Some(reply) = self.ask(method, &request_params) else { return };
            return self.output.result(id, &results::structured(&reply));
        }
        match name {
            _ if self.faults.define.is_some() => self.echo(id, params),
            "cargo" => self.output.result(id, unknown_fields::RESULT),
            "env" => self.output.result(id, &results::structured(&results::environment())),
            "cwd" => self.output.result(id, &results::structured(&results::directory())),
            "huge" => self.output.huge(id, self.faults.huge_line.unwrap_or(0)),
            "objects" => self.output.tiny_objects(id, self.faults.tiny_objects.unwrap_or(0)),
            "storm" => {
                self.output.result(id, &results::text("Here it comes."));
                self.output.send(&list_changed(), self.faults.storm.unwrap_or(0));
            }
            "lists" => {
                let lists = self.lists.load(Ordering::SeqCst);
                self.output.result(id, &results::structured(&json!({"lists": lists})));
            }
            "pids" => {
                let pids = self.grandchildren.as_ref().map_or(Value::Null, Grandchildren::pids);
                self.output.result(id, &results::structured(&pids));
            }
            "flood" => {
                flood::flood(&self.faults, &self.output, &params["_meta"]["progressToken"]);
                self.journal.note("flooded");
                while !self.faults.deaf
                    && self.flood_answers.load(Ordering::SeqCst) < flood::requests(&self.faults)
                {
                    thread::sleep(Duration::from_millis(5));
                }
                self.output.result(id, &results::text("It is over."));
            }
            "learn" if self.faults.learns => {
                let name = params["arguments"]["name"].as_str().unwrap_or_default().to_owned();
                self.learned.lock().push(name);
                self.echo(id, params);
                self.output.send(&list_changed(), 1);
            }
            "known_roots" => {
                self.output.result(id, &results::structured(&self.known_roots.lock()));
            }
            "progress" => {
                self.report(&params["_meta"]["progressToken"]);
                self.output.result(id, &results::text("It is done."));
            }
            _ => self.echo(id, params),
        }
    }

    fn echo(&self, id: &Value, params: &Value) {
        let arguments = params.get("arguments").cloned().unwrap_or_else(|| json!({}));
        self.output.result(id, &results::structured(&arguments));
    }

    /// Returns the method and the parameters of the request that a tool sends to the client before the tool answers.
    /// `None` if the tool sends no request. Tools that are defined in a file never send one, even if they have the name
    /// of a tool that does.
    fn question(&self, name: &str) -> Option<(&'static str, Value)> {
        results::question(name).filter(|_| self.faults.define.is_none())
    }

    fn report(&self, token: &Value) {
        if token.is_null() {
            return;
        }
        let total = self.faults.progress.unwrap_or(0);
        for done in 1..=total {
            let report = json!({
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {"progressToken": token, "progress": done, "total": total},
            });
            self.output.send(&report, 1);
        }
    }

    /// Sends a request to the client and waits for the response, without a time limit. Returns an object with the
    /// `result` or the `error` of the response.
    pub(crate) fn ask(&self, method: &str, params: &Value) -> Option<Value> {
        let id = self.next.fetch_add(1, Ordering::SeqCst);
        let (sender, receiver) = channel();
        self.pending_requests.lock().insert(id, sender);
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.output.send(&request, 1);
        receiver.recv().ok()
    }

    fn handle_response(&self, id: &Value, message: &Value) {
        if self.faults.flood.is_some() {
            let outcome = if message.get("error").is_some() { "refused" } else { "granted" };
            self.journal.note(&format!("{outcome} {id}"));
            self.flood_answers.fetch_add(1, Ordering::SeqCst);
        }
        let waiting = id.as_u64().and_then(|id| self.pending_requests.lock().remove(&id));
        let reply = message.get("result").map_or_else(
            || json!({"error": message.get("error")}),
            |result| json!({"result": result}),
        );
        if let Some(waiting) = waiting {
            // Sending fails if the call no longer waits for the response.
            let _ = waiting.send(reply);
        }
    }
}

fn list_changed() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
}

fn initialize_result(asked: Option<&str>, faults: &Faults) -> Value {
    let revision = asked.filter(|asked| REVISIONS.contains(asked)).unwrap_or(REVISIONS[0]);
    let mut capabilities = json!({"tools": {"listChanged": true}});
    if faults.logging {
        capabilities["logging"] = json!({});
    }
    json!({
        "protocolVersion": revision,
        "capabilities": capabilities,
        "serverInfo": {"name": faults.say.as_deref().unwrap_or("toolcrib-faulty"), "version": env!("CARGO_PKG_VERSION")},
    })
}
