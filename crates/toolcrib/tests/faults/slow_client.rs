//! A client on stdio that reads an answer only when the test asks for it, so that a test can let messages pile up.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::environment::TestEnvironment;

pub(crate) struct SlowClient {
    gateway: Child,
    /// `None` once the client has closed its side of the pipe.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl SlowClient {
    /// Starts a gateway and makes the handshake.
    pub(crate) fn start(environment: &TestEnvironment) -> Self {
        Self::start_with(environment.toolcrib(&["mcp", "--own"]))
    }

    /// Like [`Self::start`], with this command.
    pub(crate) fn start_with(mut command: Command) -> Self {
        let mut gateway = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = gateway.stdin.take();
        let output = BufReader::new(gateway.stdout.take().unwrap());
        let mut client = Self { gateway, input, output };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "slow", "version": "1"}});
        client.send(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client.next_answer();
        client
    }

    /// Returns the process id of the gateway.
    pub(crate) fn gateway(&self) -> u32 {
        self.gateway.id()
    }

    pub(crate) fn send(&mut self, message: Value) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    /// Closes the client's side of the pipe. Answers can still be read.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Reads messages until an answer arrives. Returns the answer and the length of the answer's line in bytes.
    pub(crate) fn next_answer(&mut self) -> (Value, usize) {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the gateway ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message.get("method").is_none() {
                return (message, line.len());
            }
        }
    }

    /// Sends a request. Returns its answer and the length of the answer's line in bytes.
    pub(crate) fn ask(&mut self, id: u64, method: &str, params: Value) -> (Value, usize) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let (answer, length) = self.next_answer();
        assert_eq!(answer["id"], id, "{answer}");
        (answer, length)
    }

    /// Closes the pipe and waits until the gateway has ended because of that.
    pub(crate) fn end(mut self) {
        self.close_input();
        crate::probe::wait_or_kill(&mut self.gateway);
    }
}
