//! All messages that a client has received, and the requests that wait for their responses.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::probe::DEADLINE;

/// All received messages, with their time of arrival.
#[derive(Default)]
pub(crate) struct ReceivedMessages {
    pub(crate) messages: Mutex<Vec<(Value, Instant)>>,
    arrived: Condvar,
}

/// A request that was sent. Its response may not have arrived yet.
pub(crate) struct PendingRequest {
    pub(crate) id: u64,
    pub(crate) received: Arc<ReceivedMessages>,
    pub(crate) socket: Option<TcpStream>,
}

impl ReceivedMessages {
    pub(crate) fn put(&self, message: Value) {
        self.messages.lock().unwrap().push((message, Instant::now()));
        self.arrived.notify_all();
    }

    pub(crate) fn wait(
        &self,
        within: Duration,
        fits: impl Fn(&Value) -> bool,
    ) -> Option<(Value, Instant)> {
        let deadline = Instant::now() + within;
        let mut messages = self.messages.lock().unwrap();
        loop {
            if let Some(found) = messages.iter().find(|(message, _)| fits(message)) {
                return Some(found.clone());
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            messages = self.arrived.wait_timeout(messages, left).unwrap().0;
        }
    }
}

impl PendingRequest {
    /// Waits for the complete response, and returns it with its time of arrival. Returns `None` if it does not arrive
    /// in the time `within`.
    pub(crate) fn answer(&self, within: Duration) -> Option<(Value, Instant)> {
        self.received
            .wait(within, |message| message["id"] == self.id && message.get("method").is_none())
    }

    /// Waits for the response, and returns its `result` or `error`.
    pub(crate) fn end(&self) -> Value {
        let (answer, _) =
            self.answer(DEADLINE).unwrap_or_else(|| panic!("no answer to {}", self.id));
        body(answer)
    }

    /// Closes the connection on which the response would arrive.
    pub(crate) fn close_connection(&self) {
        self.socket.as_ref().unwrap().shutdown(Shutdown::Both).unwrap();
    }
}

fn body(mut answer: Value) -> Value {
    match answer.get_mut("result") {
        Some(result) => result.take(),
        None => json!({"error": answer["error"].take()}),
    }
}
