//! A client that reads one line at a time. It uses no library, because a library would hide what the server really
//! sent.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A server process and its pipes. The process is killed when this value is dropped.
pub(crate) struct Peer {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Peer {
    pub(crate) fn start(program: &str, arguments: &[&str]) -> Self {
        let mut process = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, input, output }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    /// Reads the next line, including its line end. Returns an empty vector if the server has exited.
    pub(crate) fn line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        self.output.read_until(b'\n', &mut line).unwrap();
        line
    }

    pub(crate) fn receive(&mut self) -> Value {
        serde_json::from_slice(&self.line()).unwrap()
    }

    /// Sends a request and returns the next line, which must be its response.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params}));
        let answer = self.receive();
        assert_eq!(answer["id"], method, "{answer}");
        answer
    }

    /// Calls a tool and returns its result.
    pub(crate) fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": name, "arguments": arguments}))["result"].take()
    }

    pub(crate) fn initialize(&mut self) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let capabilities = json!({"elicitation": {}, "sampling": {}, "roots": {}});
        let answer = self.ask(
            "initialize",
            json!({
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities,
                "clientInfo": client,
            }),
        );
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer
    }

    /// Closes stdin and waits until the server exits. Returns the exit code and the output on stderr.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        drop(self.input.take());
        let mut written = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut written).unwrap();
        (self.process.wait().unwrap().code(), written)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
