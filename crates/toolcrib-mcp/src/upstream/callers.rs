//! Who is behind the calls under way on one server.
//!
//! A server may ask its client something while it works: to sample a model, to fill in a form, to name
//! its roots. Many clients share one connection, so the question must find the client whose call it is
//! about. Where the wire tells which call that is, it is that one. Where it does not (stdio), it is the
//! only client with a call under way; with several, nobody is asked, since a question put to the wrong
//! person would show them another's work. A call that was given up counts for a while: its server may
//! still be at it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{ErrorData, LoggingMessageNotificationParam, RequestId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{Notify, mpsc, oneshot};

use super::budget::Charge;

/// Questions that may wait for one caller.
pub(crate) const QUESTIONS: usize = 16;

/// One client, as far as a server's questions go.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The same for all calls of one client.
    pub(crate) client: u64,
    /// The same for all clients of one name in one profile. In the newer era each request is a client of its
    /// own; what one of them gave up is its kin's.
    pub(crate) kin: u64,
    /// Where its call takes questions.
    pub(crate) questions: mpsc::Sender<Said>,
}

/// What a server asks, in its own words: the SDK's types drop fields they do not know and round numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) method: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) params: Option<Value>,
}

/// What a server says to the client whose call it works on.
#[derive(Debug)]
pub(crate) enum Said {
    /// A question, and where the answer goes.
    Question(Asked, oneshot::Sender<Result<Value, ErrorData>>),
    /// A line of its log, and the memory that it takes.
    Log(LoggingMessageNotificationParam, Charge),
}

/// How long a call that was given up may still be worked on.
const LINGERS: Duration = Duration::from_secs(10);
/// Calls given up that are remembered.
const REMEMBERED: usize = 1_024;

/// The calls under way on one server. One is listed before it is sent, and so before it has an id: a server
/// may ask as soon as it reads the call.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    calls: Mutex<Calls>,
    /// A call got its id, or is over.
    settled: Notify,
}

#[derive(Debug, Default)]
struct Calls {
    under_way: BTreeMap<u64, (Option<RequestId>, Caller)>,
    /// The kin of clients whose calls were given up, and when.
    given_up: VecDeque<(u64, Instant)>,
}

/// Takes its call off the list when dropped.
#[derive(Debug)]
pub(crate) struct Listed {
    callers: Arc<Callers>,
    at: u64,
    over: bool,
}

/// Why nobody can be asked.
const NOBODY: &str = "no call is under way that this could belong to";
const SEVERAL: &str =
    "several clients have calls under way, and the question does not say whose it is";

impl Callers {
    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists a call that is about to be sent, for as long as the returned value lives.
    pub(crate) fn list(self: &Arc<Self>, caller: Caller) -> Listed {
        let mut calls = self.lock();
        let at = calls.under_way.last_key_value().map_or(0, |(at, _)| at + 1);
        calls.under_way.insert(at, (None, caller));
        drop(calls);
        Listed { callers: Arc::clone(self), at, over: false }
    }

    /// The client that a server's question is for, where `call` is what the wire tells of it. While a call
    /// is being sent it may be the one, and its id is waited for.
    pub(crate) async fn find(&self, call: Option<&RequestId>) -> Result<Caller, &'static str> {
        loop {
            let mut settled = std::pin::pin!(self.settled.notified());
            settled.as_mut().enable();
            let found = self.look(call);
            let sent = || self.lock().under_way.values().all(|(id, _)| id.is_some());
            if found.is_ok() || call.is_none() || sent() {
                return found;
            }
            settled.await;
        }
    }

    /// The same, as far as it is known now.
    pub(super) fn look(&self, call: Option<&RequestId>) -> Result<Caller, &'static str> {
        let mut calls = self.lock();
        calls.given_up.retain(|(_, since)| since.elapsed() < LINGERS);
        let Calls { under_way, given_up } = &*calls;
        if call.is_some() {
            let found = under_way.values().find(|(id, _)| id.as_ref() == call);
            return found.map(|(_, caller)| caller.clone()).ok_or(NOBODY);
        }
        let (_, last) = under_way.values().next_back().ok_or(NOBODY)?;
        let alone = under_way.values().all(|(_, caller)| caller.client == last.client)
            && given_up.iter().all(|(kin, _)| *kin == last.kin);
        if alone { Ok(last.clone()) } else { Err(SEVERAL) }
    }
}

impl Listed {
    /// The call was sent, under this id; perhaps not for the first time.
    pub(crate) fn sent(&mut self, call: RequestId) {
        self.over = false;
        if let Some((id, _)) = self.callers.lock().under_way.get_mut(&self.at) {
            *id = Some(call);
        }
        self.callers.settled.notify_waiters();
    }

    /// The server has answered, or is gone.
    pub(crate) fn over(&mut self) {
        self.over = true;
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        {
            let mut calls = self.callers.lock();
            let call = calls.under_way.remove(&self.at);
            // One that was never sent is nobody's work.
            if let Some((Some(_), caller)) = call.filter(|_| !self.over) {
                if calls.given_up.len() >= REMEMBERED {
                    calls.given_up.pop_front();
                }
                calls.given_up.push_back((caller.kin, Instant::now()));
            }
        }
        self.callers.settled.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn caller(client: u64) -> Caller {
        Caller { client, kin: client, questions: mpsc::channel(1).0 }
    }

    fn over(mut listed: Listed) {
        listed.over();
    }

    #[tokio::test]
    async fn a_call_that_was_given_up_may_still_ask() {
        let callers = Arc::<Callers>::default();
        drop(listed(&callers, 7, 1));
        let mine = listed(&callers, 8, 2);
        assert_eq!(found(&callers, None).await, Err(SEVERAL));
        assert_eq!(found(&callers, Some(8)).await, Ok(2));
        drop(mine);
        let _again = listed(&callers, 9, 1);
        assert_eq!(found(&callers, None).await, Err(SEVERAL), "two gave up");
    }

    fn listed(callers: &Arc<Callers>, call: i64, client: u64) -> Listed {
        let mut listed = callers.list(caller(client));
        listed.sent(RequestId::Number(call));
        listed
    }

    async fn found(callers: &Callers, call: Option<i64>) -> Result<u64, &'static str> {
        let call = call.map(RequestId::Number);
        callers.find(call.as_ref()).await.map(|caller| caller.client)
    }

    #[tokio::test]
    async fn a_question_finds_the_client_whose_call_it_is_about() {
        let callers = Arc::<Callers>::default();
        assert_eq!(found(&callers, None).await, Err(NOBODY));
        let first = listed(&callers, 7, 1);
        let second = listed(&callers, 8, 2);
        assert_eq!(found(&callers, Some(7)).await, Ok(1));
        assert_eq!(found(&callers, None).await, Err(SEVERAL), "stdio does not tell whose it is");
        over(first);
        assert_eq!(found(&callers, None).await, Ok(2));
        over(second);
        assert_eq!(found(&callers, Some(8)).await, Err(NOBODY));
    }

    #[tokio::test]
    async fn a_question_may_come_before_its_call_has_an_id() {
        let callers = Arc::<Callers>::default();
        let mut first = callers.list(caller(1));
        assert_eq!(found(&callers, None).await, Ok(1));
        let (told, ()) = tokio::join!(found(&callers, Some(7)), async {
            tokio::task::yield_now().await;
            first.sent(RequestId::Number(7));
        });
        assert_eq!(told, Ok(1));
        let second = callers.list(caller(2));
        let (told, ()) = tokio::join!(found(&callers, Some(8)), async {
            tokio::task::yield_now().await;
            drop(second);
        });
        assert_eq!(told, Err(NOBODY), "a call that was never sent");
    }

    proptest! {
        /// However calls come, end and are given up, nobody is ever asked what another's call wants to
        /// know.
        #[test]
        fn nobody_hears_anothers_question(steps in prop::collection::vec((0_u8..3, 0_u64..3, any::<prop::sample::Index>()), 0..60)) {
            let callers = Arc::<Callers>::default();
            let (mut open, mut gone, mut next) = (Vec::<(i64, u64, Listed)>::new(), Vec::new(), 0);
            for (step, client, at) in steps {
                match step {
                    0 => {
                        open.push((next, client, listed(&callers, next, client)));
                        next += 1;
                    }
                    1 if !open.is_empty() => over(open.remove(at.index(open.len())).2),
                    2 if !open.is_empty() => gone.push(open.remove(at.index(open.len())).1),
                    _ => {}
                }
                for call in 0..next {
                    let found = callers.look(Some(&RequestId::Number(call))).ok().map(|caller| caller.client);
                    prop_assert_eq!(found, open.iter().find(|(id, ..)| *id == call).map(|(_, client, _)| *client));
                }
                let mut clients: Vec<u64> = open.iter().map(|(_, client, _)| *client).collect();
                let any = clients.first().copied();
                clients.extend(&gone);
                let alone = any.filter(|any| clients.iter().all(|client| client == any));
                prop_assert_eq!(callers.look(None).ok().map(|caller| caller.client), alone);
            }
        }
    }
}
