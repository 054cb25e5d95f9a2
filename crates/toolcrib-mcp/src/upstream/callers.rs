//! Who is behind the calls under way on one server.
//!
//! A server may ask its client something while it works: to sample a model, to fill in a form, to name
//! its roots. Many clients share one connection, so the question must find the client whose call it is
//! about. Where the wire tells which call that is, it is that one. Where it does not (stdio), it is the
//! only client with a call under way; with several, nobody is asked, since a question put to the wrong
//! person would show them another's work.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{ErrorData, LoggingMessageNotificationParam, RequestId, ServerRequest};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// Questions that may wait for one caller.
pub(crate) const QUESTIONS: usize = 16;

/// One client, as far as a server's questions go.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The same for all calls of one client.
    pub(crate) client: u64,
    /// Where its call takes questions.
    pub(crate) questions: mpsc::Sender<Said>,
}

/// What a server says to the client whose call it works on.
#[derive(Debug)]
pub(crate) enum Said {
    /// A question, and where the answer goes.
    Question(ServerRequest, oneshot::Sender<Result<Value, ErrorData>>),
    /// A line of its log.
    Log(LoggingMessageNotificationParam),
}

/// The calls under way on one server.
#[derive(Debug, Default)]
pub(crate) struct Callers(Mutex<BTreeMap<u64, (RequestId, Caller)>>);

/// Takes its call off the list when dropped.
#[derive(Debug)]
pub(crate) struct Listed {
    callers: Arc<Callers>,
    at: u64,
}

/// Why nobody can be asked.
const NOBODY: &str = "no call is under way that this could belong to";
const SEVERAL: &str =
    "several clients have calls under way, and the question does not say whose it is";

impl Callers {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, (RequestId, Caller)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists a call for as long as the returned value lives.
    pub(crate) fn list(self: &Arc<Self>, call: RequestId, caller: Caller) -> Listed {
        let mut calls = self.lock();
        let at = calls.last_key_value().map_or(0, |(at, _)| at + 1);
        calls.insert(at, (call, caller));
        drop(calls);
        Listed { callers: Arc::clone(self), at }
    }

    /// The client that a server's question is for, where `call` is what the wire tells of it.
    pub(crate) fn find(&self, call: Option<&RequestId>) -> Result<Caller, &'static str> {
        let calls = self.lock();
        if let Some(call) = call {
            let found = calls.values().find(|(id, _)| id == call);
            return found.map(|(_, caller)| caller.clone()).ok_or(NOBODY);
        }
        let (_, last) = calls.values().next_back().ok_or(NOBODY)?;
        let alone = calls.values().all(|(_, caller)| caller.client == last.client);
        if alone { Ok(last.clone()) } else { Err(SEVERAL) }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.callers.lock().remove(&self.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(client: u64) -> Caller {
        Caller { client, questions: mpsc::channel(1).0 }
    }

    #[test]
    fn a_question_finds_the_client_whose_call_it_is_about() {
        let callers = Arc::<Callers>::default();
        assert_eq!(callers.find(None).unwrap_err(), NOBODY);
        let first = callers.list(RequestId::Number(7), caller(1));
        let second = callers.list(RequestId::Number(8), caller(2));
        assert_eq!(callers.find(Some(&RequestId::Number(7))).unwrap().client, 1);
        assert_eq!(callers.find(None).unwrap_err(), SEVERAL, "stdio does not tell whose it is");
        drop(first);
        assert_eq!(callers.find(None).unwrap().client, 2);
        drop(second);
        assert_eq!(callers.find(Some(&RequestId::Number(8))).unwrap_err(), NOBODY);
    }
}
