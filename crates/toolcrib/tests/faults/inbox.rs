//! Everything that a client heard, and the requests that wait for something in it.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::probe::DEADLINE;

/// Everything that came in, and when.
#[derive(Default)]
pub(crate) struct Inbox {
    pub(crate) messages: Mutex<Vec<(Value, Instant)>>,
    news: Condvar,
}

/// A request that is under way.
pub(crate) struct Pending {
    pub(crate) id: u64,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) socket: Option<TcpStream>,
}

impl Inbox {
    pub(crate) fn put(&self, message: Value) {
        self.messages.lock().unwrap().push((message, Instant::now()));
        self.news.notify_all();
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
            messages = self.news.wait_timeout(messages, left).unwrap().0;
        }
    }
}

impl Pending {
    /// The whole answer, and when it came.
    pub(crate) fn answer(&self, within: Duration) -> Option<(Value, Instant)> {
        self.inbox
            .wait(within, |message| message["id"] == self.id && message.get("method").is_none())
    }

    /// The answer without what frames it: `result` or `error`.
    pub(crate) fn end(&self) -> Value {
        let (answer, _) =
            self.answer(DEADLINE).unwrap_or_else(|| panic!("no answer to {}", self.id));
        body(answer)
    }

    /// Closes the connection that the answer would come on.
    pub(crate) fn hang_up(&self) {
        self.socket.as_ref().unwrap().shutdown(Shutdown::Both).unwrap();
    }
}

fn body(mut answer: Value) -> Value {
    match answer.get_mut("result") {
        Some(result) => result.take(),
        None => json!({"error": answer["error"].take()}),
    }
}
