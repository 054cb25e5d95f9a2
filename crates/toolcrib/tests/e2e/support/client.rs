//! A client for either protocol version that sends exactly what a test says, and keeps all received messages.

use std::path::Path;

use serde_json::{Value, json};

use super::Program;
use super::wire::Wire;

/// The protocol version of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// 2025-11-25: the client makes a handshake, and a server asks questions by sending requests.
    Older,
    /// 2026-07-28: every request is independent, and a server asks questions by returning a result that requires input.
    Newer,
}

/// The response to a request, and the messages received in the meantime, in order. Ids and progress tokens are removed,
/// because they differ between a direct connection and one through the gateway.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Exchange {
    pub(crate) answer: Value,
    pub(crate) messages: Vec<Value>,
}

impl Exchange {
    /// Returns the response and the messages as one value, for comparison.
    pub(crate) fn value(&self) -> Value {
        json!({"answer": self.answer, "heard": self.messages})
    }
}

/// A test client that answers questions of servers automatically.
pub(crate) struct Client {
    wire: Wire,
    era: Era,
    name: String,
    version: String,
    next: u64,
    messages: Vec<Value>,
    early: Vec<Value>,
    /// The ids of requests for roots. A server may send such a request at any time, independent of calls. If the
    /// request arrives during a call, and the call ends before the request is answered, the request is cancelled. The
    /// test client ignores that cancellation.
    asked_for_roots: Vec<Value>,
    /// The result of `initialize`; empty in the newer protocol.
    pub(crate) initialize_result: Value,
}

/// Returns the answer that every test client gives to a server's question, or `None` if the client does not know the
/// method.
fn answer(method: &str) -> Option<Value> {
    Some(match method {
        "elicitation/create" => {
            json!({"action": "accept", "content": {"word": "kiwi", "name": "Ada"}})
        }
        "sampling/createMessage" => json!({
            "role": "assistant",
            "content": {"type": "text", "text": "kiwi"},
            "model": "none",
            "stopReason": "endTurn",
        }),
        // This folder does not exist. If it existed, `server-filesystem` would serve it instead of the folder in its
        // arguments.
        "roots/list" => json!({"roots": [{"uri": "file:///no/such/root", "name": "work"}]}),
        "ping" => json!({}),
        _ => return None,
    })
}

/// Returns the capabilities of a client that can answer every question.
fn capabilities() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})
}

impl Client {
    /// Starts a program and connects a client to it over stdio.
    pub(crate) fn of(program: &Program, home: &Path, era: Era) -> Self {
        Self::named("test", Wire::stdio(program, home), era)
    }

    /// Connects a client to a server at a URL.
    pub(crate) fn at(url: &str, era: Era) -> Self {
        Self::named("test", Wire::http(url), era)
    }

    /// Connects a client with this name, or this `name@version`. Some servers behave differently depending on them.
    pub(crate) fn named(name: &str, wire: Wire, era: Era) -> Self {
        let mut client = Self::unconnected(name, wire, era);
        if era == Era::Older {
            client.initialize();
            client.say_initialized();
        }
        client
    }

    fn unconnected(name: &str, wire: Wire, era: Era) -> Self {
        let (name, version) = name.split_once('@').unwrap_or((name, "1"));
        Self {
            wire,
            era,
            name: name.to_owned(),
            version: version.to_owned(),
            next: 1,
            messages: Vec::new(),
            early: Vec::new(),
            asked_for_roots: Vec::new(),
            initialize_result: Value::Null,
        }
    }

    /// Starts a handshake without completing it: the client has not sent `initialized` yet.
    pub(crate) fn before_initialized(wire: Wire) -> Self {
        let mut client = Self::unconnected("test", wire, Era::Older);
        client.initialize();
        client
    }

    fn initialize(&mut self) {
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities(),
            "clientInfo": {"name": self.name, "version": self.version},
        });
        self.initialize_result = self.result("initialize", &hello);
    }

    /// Completes the handshake.
    pub(crate) fn say_initialized(&mut self) {
        self.wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        self.wire.listen();
    }

    fn meta(&self) -> Value {
        json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": self.name, "version": self.version},
            "io.modelcontextprotocol/clientCapabilities": capabilities(),
        })
    }

    /// Sends a request and returns its id. [`Self::finish`] waits for the response.
    pub(crate) fn start(&mut self, method: &str, params: Value) -> u64 {
        let message = self.message(method, params);
        self.wire.send(&message);
        message["id"].as_u64().unwrap()
    }

    /// Calls a tool with arguments that are sent exactly as written.
    pub(crate) fn call_with_text(&mut self, tool: &str, arguments: &str) -> Value {
        let params = json!({"name": tool, "arguments": "ARGUMENTS"});
        let message = self.message("tools/call", params);
        let text = message.to_string().replacen("\"ARGUMENTS\"", arguments, 1);
        self.wire.send_text(&message, &text);
        self.finish(message["id"].as_u64().unwrap())
    }

    fn message(&mut self, method: &str, mut params: Value) -> Value {
        let id = self.next;
        self.next += 1;
        if self.era == Era::Newer {
            let mut meta = self.meta();
            for (key, value) in params["_meta"].as_object().into_iter().flatten() {
                meta[key] = value.clone();
            }
            params["_meta"] = meta;
        }
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    }

    /// Waits for the response to a request, and answers questions in the meantime.
    pub(crate) fn finish(&mut self, id: u64) -> Value {
        loop {
            let at = self.early.iter().position(|message| message["id"] == id);
            if let Some(at) = at {
                return self.early.remove(at);
            }
            self.read_message();
        }
    }

    /// Reads the next message. Answers it if it is a request, and stores it for the test.
    fn read_message(&mut self) {
        let mut message = self.wire.receive();
        let Some(method) = message["method"].as_str().map(str::to_owned) else {
            return self.early.push(message);
        };
        if let Some(id) = message.get("id") {
            let reply = match answer(&method) {
                Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                None => {
                    json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": method}})
                }
            };
            self.wire.send(&reply);
            if method == "roots/list" {
                self.asked_for_roots.push(id.clone());
            }
        }
        let cancelled = &message["params"]["requestId"];
        if method == "notifications/cancelled" && self.asked_for_roots.contains(cancelled) {
            return;
        }
        self.remember(&method, message["params"].take());
    }

    fn remember(&mut self, method: &str, mut params: Value) {
        if let Some(params) = params.as_object_mut() {
            params.remove("progressToken");
            params.remove("_meta");
            // The SDK writes 1 as 1.0 here, so all numbers are converted to floats before they are compared.
            for (_, value) in params.iter_mut().filter(|_| method == "notifications/progress") {
                *value = value.as_f64().map_or_else(|| value.take(), Value::from);
            }
        }
        self.messages.push(json!({"method": method, "params": params}));
    }

    /// Sends a request, and answers questions in either protocol version until the final response arrives.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Exchange {
        let mut params_with_input = params.clone();
        self.messages.clear();
        loop {
            let id = self.start(method, params_with_input);
            let mut answer = self.finish(id);
            let fields = answer.as_object_mut().unwrap();
            fields.remove("jsonrpc");
            fields.remove("id");
            if answer["result"]["resultType"] != "input_required" {
                return Exchange { answer, messages: std::mem::take(&mut self.messages) };
            }
            params_with_input = params.clone();
            params_with_input["requestState"] = answer["result"]["requestState"].take();
            params_with_input["inputResponses"] = self.answers(&answer["result"]["inputRequests"]);
        }
    }

    fn answers(&mut self, questions: &Value) -> Value {
        let mut answers = json!({});
        for (key, question) in questions.as_object().unwrap() {
            let method = question["method"].as_str().unwrap();
            answers[key] = answer(method).unwrap();
            self.remember(method, question["params"].clone());
        }
        answers
    }

    /// Sends a request that must succeed, and returns its result.
    pub(crate) fn result(&mut self, method: &str, params: &Value) -> Value {
        let mut exchange = self.ask(method, params);
        assert!(exchange.answer.get("result").is_some(), "{method} {params}: {}", exchange.answer);
        exchange.answer["result"].take()
    }

    /// Calls a tool with a progress token.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Exchange {
        let meta = json!({"progressToken": format!("p{}", self.next)});
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments, "_meta": meta}))
    }

    /// Calls a tool through the bridge.
    pub(crate) fn bridge(&mut self, tool: &str, arguments: &Value) -> Exchange {
        self.call("tool_call", &json!({"name": tool, "arguments": arguments}))
    }

    pub(crate) fn tools(&mut self) -> Vec<Value> {
        let mut list = self.result("tools/list", &json!({}));
        serde_json::from_value(list["tools"].take()).unwrap()
    }

    /// Waits for a message with this method, and returns it.
    pub(crate) fn wait_for_message(&mut self, method: &str) -> Value {
        loop {
            let at = self.messages.iter().position(|message| message["method"] == method);
            if let Some(at) = at {
                return self.messages.remove(at);
            }
            self.read_message();
        }
    }

    /// Returns the number of messages with this method since the last [`Self::ask`].
    pub(crate) fn messages(&self, method: &str) -> usize {
        self.messages.iter().filter(|message| message["method"] == method).count()
    }

    /// Kills the program that the client is connected to.
    pub(crate) fn kill(&mut self) {
        self.wire.kill();
    }
}
