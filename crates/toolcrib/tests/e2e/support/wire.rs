//! The two transports, implemented without a library, because a library would hide what is really sent.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;

use serde_json::Value;

use super::http::HttpEndpoint;
use super::{DEADLINE, Program};

/// The sending half of a connection.
enum Outgoing {
    Stdio(ChildStdin),
    Http(HttpEndpoint),
}

/// A connection, which sends messages and receives them in order of arrival.
pub(crate) struct Wire {
    out: Outgoing,
    inbox: Receiver<Value>,
    sender: Sender<Value>,
    process: Option<Process>,
}

/// A child process that is killed when dropped.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Wire {
    /// Starts a program and exchanges messages with it, one per line. The program's standard error is written to a
    /// file.
    pub(crate) fn stdio(program: &Program, home: &Path) -> Self {
        let log = File::options().create(true).append(true).open(home.join("stderr")).unwrap();
        let mut child = Command::new(&program[0])
            .args(&program[1..])
            .env("HOME", home)
            .env("XDG_STATE_HOME", home.join("state"))
            .env_remove("TZ")
            .current_dir(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("{program:?}: {error}"));
        let (sender, inbox) = channel();
        let input = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let arrived = sender.clone();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // A line that is not JSON is an error, so it is passed on as a string for the test to see.
                let message = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if arrived.send(message).is_err() {
                    return;
                }
            }
        });
        Self { out: Outgoing::Stdio(input), inbox, sender, process: Some(Process(child)) }
    }

    /// Connects to a URL over HTTP.
    pub(crate) fn http(url: &str) -> Self {
        let (sender, inbox) = channel();
        Self { out: Outgoing::Http(HttpEndpoint::at(url)), inbox, sender, process: None }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_text(message, &message.to_string());
    }

    /// Sends a message with exactly this text.
    pub(crate) fn send_text(&mut self, message: &Value, text: &str) {
        match &mut self.out {
            Outgoing::Stdio(input) => {
                writeln!(input, "{text}").unwrap();
                input.flush().unwrap();
            }
            Outgoing::Http(transport) => transport.post_text(message, text, self.sender.clone()),
        }
    }

    /// Opens the stream for messages that an HTTP server sends on its own. Stdio needs no separate stream.
    pub(crate) fn listen(&self) {
        if let Outgoing::Http(transport) = &self.out {
            transport.listen(self.sender.clone());
        }
    }

    /// Waits for the next message.
    pub(crate) fn receive(&self) -> Value {
        match self.inbox.recv_timeout(DEADLINE) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => panic!("no message within {DEADLINE:?}"),
            Err(RecvTimeoutError::Disconnected) => panic!("the peer has closed the connection"),
        }
    }

    /// Kills the process that the wire is connected to.
    pub(crate) fn kill(&mut self) {
        self.process = None;
    }
}
