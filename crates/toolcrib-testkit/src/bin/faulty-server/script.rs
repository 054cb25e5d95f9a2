//! Responses that are read from a file, for tests of what a server may send.
//!
//! In the file, `methods` has a response for each method: a result, an object whose only field is `error`, or `null` if
//! the method is never answered. `tools` has a list of steps for each tool: `{"notify": …}` sends a notification (a progress
//! notification gets the call's progress token), `{"ask": …}` sends a request to the client and answers the call with
//! the client's response, `{"arguments": true}` answers the call with its arguments as text, and `{"result": …}` and
//! `{"error": …}` answer the call. A tool may have steps after its answer. `{"after": METHOD}` waits until a request with
//! this method has arrived. `definitions` has further fields of the definitions of tools, by the tools' names.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::results;
use crate::server::Server;

/// The content of the script file.
pub(crate) struct Script {
    content: Value,
    /// The methods of the requests that have arrived.
    received: Mutex<BTreeSet<String>>,
}

impl Script {
    pub(crate) fn read(file: &Path) -> io::Result<Self> {
        let content = serde_json::from_slice(&std::fs::read(file)?)?;
        Ok(Self { content, received: Mutex::default() })
    }

    /// Returns `greeting`, the result of `initialize`, with the fields that the script contains replaced.
    pub(crate) fn initialize_result(&self, mut greeting: Value) -> Value {
        for key in ["protocolVersion", "capabilities", "serverInfo", "instructions"] {
            if let Some(value) = self.content.get(key) {
                greeting[key] = value.clone();
            }
        }
        greeting
    }

    /// Answers a request as the script says, or leaves it unanswered if the script says so. Returns `false` if the
    /// script says nothing about the method. The script always handles `tools/list` and `tools/call`.
    pub(crate) fn answer(
        self: &Arc<Self>,
        server: &Arc<Server>,
        method: &str,
        id: &Value,
        params: &Value,
    ) -> bool {
        self.received.lock().insert(method.to_owned());
        match method {
            "resources/read" => {
                let uri = params["uri"].as_str().unwrap_or_default();
                server.journal.note(&format!("read {uri}"));
            }
            "tools/list" => {
                let tools = self.content["tools"].as_object().into_iter().flatten();
                let tools: Vec<Value> = tools.map(|(name, _)| self.definition(name)).collect();
                server.output.result(id, &json!({ "tools": tools }).to_string());
                return true;
            }
            "tools/call" => {
                let (script, server) = (Arc::clone(self), Arc::clone(server));
                let (id, params) = (id.clone(), params.clone());
                // A call runs on its own thread, because a step may wait for the client.
                thread::spawn(move || script.call(&server, &id, &params));
                return true;
            }
            _ => {}
        }
        let Some(result) = self.content["methods"].get(method) else { return false };
        if result.is_null() {
            server.journal.note(&format!("hang {method}"));
            return true;
        }
        let has_other_fields = result.as_object().is_some_and(|fields| fields.len() > 1);
        match result.get("error").filter(|_| !has_other_fields) {
            Some(error) => {
                server.output.send(&failed(id, error), 1);
            }
            None => server.output.result(id, &result.to_string()),
        }
        true
    }

    fn definition(&self, name: &str) -> Value {
        let mut tool =
            json!({"name": name, "description": name, "inputSchema": {"type": "object"}});
        for (key, value) in self.content["definitions"][name].as_object().into_iter().flatten() {
            tool[key] = value.clone();
        }
        tool
    }

    fn call(&self, server: &Server, id: &Value, params: &Value) {
        let name = params["name"].as_str().unwrap_or_default();
        for step in self.content["tools"][name].as_array().into_iter().flatten() {
            if let Some(notify) = step.get("notify") {
                let mut message = notify.clone();
                message["jsonrpc"] = "2.0".into();
                if message["method"] == "notifications/progress" {
                    message["params"]["progressToken"] = params["_meta"]["progressToken"].clone();
                }
                server.output.send(&message, 1);
            } else if let Some(ask) = step.get("ask") {
                let method = ask["method"].as_str().unwrap_or_default();
                if let Some(reply) = server.ask(method, &ask["params"]) {
                    server.journal.note(&format!("reply {reply}"));
                    server.output.result(id, &results::structured(&reply));
                }
            } else if let Some(method) = step["after"].as_str() {
                while !self.received.lock().contains(method) {
                    thread::sleep(Duration::from_millis(5));
                }
            } else if step.get("arguments").is_some() {
                server.journal.note(&format!("call {name}"));
                let text = params.get("arguments").map(Value::to_string).unwrap_or_default();
                let content = json!([{"type": "text", "text": format!("{name} {text}")}]);
                server.output.result(id, &json!({ "content": content }).to_string());
            } else if let Some(error) = step.get("error") {
                server.output.send(&failed(id, error), 1);
            } else {
                server.output.result(id, &step["result"].to_string());
            }
        }
    }
}

fn failed(id: &Value, error: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}
