//! The calls in progress on one server, and the clients that made them.
//!
//! While a server works on a call it may ask its client something: to sample a model, to fill in a form, to list its
//! roots. Many clients share one connection, so the question must reach the client whose call it is about. If the
//! transport reports which call that is, the call's client is asked. The stdio transport does not report it. Then a
//! client is asked only if no other client has a call in progress, because otherwise the question could show one user
//! another's work. An abandoned call counts as in progress for a while, because the server may still be working on it.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::{ErrorData, LoggingMessageNotificationParam, RequestId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{Notify, mpsc, oneshot};

use super::message_budget::MessageCharge;

/// Maximum number of server messages that wait for one client.
pub(crate) const CLIENT_QUEUE: usize = 16;

/// The client that made a call, and how the server's messages reach it.
#[derive(Debug, Clone)]
pub(crate) struct CallingClient {
    /// Identifies the client. All calls of one client have the same value.
    pub(crate) client: u64,
    /// In the newer protocol, identifies all clients with the same name in the same profile. There each request counts
    /// as a client of its own, so an abandoned call is attributed to this group. In the older protocol, this is the
    /// same as `client`.
    pub(crate) client_group: u64,
    /// Delivers the server's messages to the call.
    pub(crate) messages: mpsc::Sender<ServerMessage>,
}

/// A request from a server. It is not parsed into the SDK's types, because they drop fields that they do not know and
/// round numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RawRequest {
    pub(crate) method: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) params: Option<Value>,
}

/// A message from a server to a client, about one of the client's calls or about none.
#[derive(Debug)]
pub(crate) enum ServerMessage {
    /// A question, and where to send the answer.
    Question(RawRequest, oneshot::Sender<Result<Value, ErrorData>>),
    /// A log line, and the memory that it takes.
    Log(LoggingMessageNotificationParam, MessageCharge),
}

/// How long an abandoned call counts as in progress, because the server may still be working on it.
const ABANDONED_FOR: Duration = Duration::from_secs(10);
/// Maximum number of abandoned calls that are remembered.
const MAX_ABANDONED: usize = 1_024;

/// The calls in progress on one server. A call is registered before it is sent, when it has no id yet, because the
/// server may ask a question as soon as it has read the call.
#[derive(Debug, Default)]
pub(crate) struct ActiveCalls {
    table: Mutex<CallTable>,
    /// Notified when a call gets its id or ends.
    changed: Notify,
}

#[derive(Debug, Default)]
struct CallTable {
    in_progress: BTreeMap<u64, (Option<RequestId>, CallingClient)>,
    /// The client groups of abandoned calls, and when each was abandoned.
    abandoned: VecDeque<(u64, Instant)>,
}

/// The registration of one call. Dropping this value removes it.
#[derive(Debug)]
pub(crate) struct ActiveCall {
    calls: Arc<ActiveCalls>,
    key: u64,
    finished: bool,
}

/// Errors that a server gets if its question reaches no client.
const NO_CALL: &str = "no call is in progress that this could belong to";
const AMBIGUOUS: &str =
    "several clients have calls in progress, and the question does not say whose it is";

impl ActiveCalls {
    fn lock(&self) -> MutexGuard<'_, CallTable> {
        self.table.lock()
    }

    /// Registers a call that is about to be sent, until the returned value is dropped.
    pub(crate) fn register(self: &Arc<Self>, client: CallingClient) -> ActiveCall {
        let mut table = self.lock();
        let key = table.in_progress.last_key_value().map_or(0, |(key, _)| key + 1);
        table.in_progress.insert(key, (None, client));
        drop(table);
        ActiveCall { calls: Arc::clone(self), key, finished: false }
    }

    /// Finds the client that a server's question is for. `call` is the call that the question belongs to, if the
    /// transport reports it. A call that is being sent has no id yet and may be the one that the question belongs to,
    /// so this waits for its id.
    pub(crate) async fn find(
        &self,
        call: Option<&RequestId>,
    ) -> Result<CallingClient, &'static str> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let found = self.try_find(call);
            let all_sent = || self.lock().in_progress.values().all(|(id, _)| id.is_some());
            if found.is_ok() || call.is_none() || all_sent() {
                return found;
            }
            changed.await;
        }
    }

    /// Like [`Self::find`], but does not wait for ids.
    pub(super) fn try_find(&self, call: Option<&RequestId>) -> Result<CallingClient, &'static str> {
        let mut table = self.lock();
        table.abandoned.retain(|(_, since)| since.elapsed() < ABANDONED_FOR);
        let CallTable { in_progress, abandoned } = &*table;
        if call.is_some() {
            let found = in_progress.values().find(|(id, _)| id.as_ref() == call);
            return found.map(|(_, client)| client.clone()).ok_or(NO_CALL);
        }
        let (_, last) = in_progress.values().next_back().ok_or(NO_CALL)?;
        let is_only_client = in_progress.values().all(|(_, other)| other.client == last.client)
            && abandoned.iter().all(|(group, _)| *group == last.client_group);
        if is_only_client { Ok(last.clone()) } else { Err(AMBIGUOUS) }
    }
}

impl ActiveCall {
    /// Records the id that the call was sent with. A call may be sent again under another id.
    pub(crate) fn set_id(&mut self, call: RequestId) {
        self.finished = false;
        if let Some((id, _)) = self.calls.lock().in_progress.get_mut(&self.key) {
            *id = Some(call);
        }
        self.calls.changed.notify_waiters();
    }

    /// Records that the server has answered or is gone, so that the call does not count as abandoned when this value is
    /// dropped.
    pub(crate) fn finish(&mut self) {
        self.finished = true;
    }

    /// Records that the server has answered with a task, so that the call is still in progress.
    pub(crate) fn go_on(&mut self) {
        self.finished = false;
    }
}

impl Drop for ActiveCall {
    fn drop(&mut self) {
        {
            let mut table = self.calls.lock();
            let call = table.in_progress.remove(&self.key);
            // A call that was never sent is not abandoned, because the server does not work on it.
            if let Some((Some(_), client)) = call.filter(|_| !self.finished) {
                if table.abandoned.len() >= MAX_ABANDONED {
                    table.abandoned.pop_front();
                }
                table.abandoned.push_back((client.client_group, Instant::now()));
            }
        }
        self.calls.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn client(client: u64) -> CallingClient {
        CallingClient { client, client_group: client, messages: mpsc::channel(1).0 }
    }

    fn finish(mut call: ActiveCall) {
        call.finish();
    }

    /// A call whose server has answered with a task.
    fn with_task(mut call: ActiveCall) -> ActiveCall {
        call.finish();
        call.go_on();
        call
    }

    fn registered(calls: &Arc<ActiveCalls>, id: i64, client_id: u64) -> ActiveCall {
        let mut call = calls.register(client(client_id));
        call.set_id(RequestId::Number(id));
        call
    }

    async fn found(calls: &ActiveCalls, call: Option<i64>) -> Result<u64, &'static str> {
        let call = call.map(RequestId::Number);
        calls.find(call.as_ref()).await.map(|client| client.client)
    }

    #[tokio::test]
    async fn a_question_may_belong_to_an_abandoned_call() {
        let calls = Arc::<ActiveCalls>::default();
        drop(registered(&calls, 7, 1));
        let mine = registered(&calls, 8, 2);
        assert_eq!(found(&calls, None).await, Err(AMBIGUOUS));
        assert_eq!(found(&calls, Some(8)).await, Ok(2));
        drop(mine);
        let _again = registered(&calls, 9, 1);
        assert_eq!(found(&calls, None).await, Err(AMBIGUOUS), "two clients abandoned calls");
    }

    #[tokio::test]
    async fn a_question_reaches_the_client_whose_call_it_is_about() {
        let calls = Arc::<ActiveCalls>::default();
        assert_eq!(found(&calls, None).await, Err(NO_CALL));
        let first = registered(&calls, 7, 1);
        let second = registered(&calls, 8, 2);
        assert_eq!(found(&calls, Some(7)).await, Ok(1));
        assert_eq!(found(&calls, None).await, Err(AMBIGUOUS), "stdio does not tell the call");
        finish(first);
        assert_eq!(found(&calls, None).await, Ok(2));
        finish(second);
        assert_eq!(found(&calls, Some(8)).await, Err(NO_CALL));
    }

    #[tokio::test]
    async fn a_question_may_arrive_before_its_call_has_an_id() {
        let calls = Arc::<ActiveCalls>::default();
        let mut first = calls.register(client(1));
        assert_eq!(found(&calls, None).await, Ok(1));
        let (result, ()) = tokio::join!(found(&calls, Some(7)), async {
            tokio::task::yield_now().await;
            first.set_id(RequestId::Number(7));
        });
        assert_eq!(result, Ok(1));
        let second = calls.register(client(2));
        let (result, ()) = tokio::join!(found(&calls, Some(8)), async {
            tokio::task::yield_now().await;
            drop(second);
        });
        assert_eq!(result, Err(NO_CALL), "a call that was never sent");
    }

    proptest! {
        /// In any order of starting, finishing and abandoning calls, no client receives a question about another
        /// client's call.
        #[test]
        fn no_client_receives_another_clients_question(steps in prop::collection::vec((0_u8..4, 0_u64..3, any::<prop::sample::Index>()), 0..60)) {
            let calls = Arc::<ActiveCalls>::default();
            let (mut open, mut abandoned, mut next) = (Vec::<(i64, u64, ActiveCall)>::new(), Vec::new(), 0);
            for (step, client, at) in steps {
                match step {
                    0 => {
                        open.push((next, client, registered(&calls, next, client)));
                        next += 1;
                    }
                    1 if !open.is_empty() => finish(open.remove(at.index(open.len())).2),
                    2 if !open.is_empty() => {
                        let (id, client, call) = open.remove(at.index(open.len()));
                        open.push((id, client, with_task(call)));
                    }
                    3 if !open.is_empty() => abandoned.push(open.remove(at.index(open.len())).1),
                    _ => {}
                }
                for call in 0..next {
                    let found = calls.try_find(Some(&RequestId::Number(call))).ok().map(|client| client.client);
                    prop_assert_eq!(found, open.iter().find(|(id, ..)| *id == call).map(|(_, client, _)| *client));
                }
                let mut clients: Vec<u64> = open.iter().map(|(_, client, _)| *client).collect();
                let any = clients.first().copied();
                clients.extend(&abandoned);
                let only = any.filter(|any| clients.iter().all(|client| client == any));
                prop_assert_eq!(calls.try_find(None).ok().map(|client| client.client), only);
            }
        }
    }
}
