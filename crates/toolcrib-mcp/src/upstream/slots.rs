//! The requests under way on one connection: whose answers are expected, and what came for them so far.

use std::collections::{HashMap, HashSet, VecDeque};

use rmcp::model::{ProgressToken, RequestId};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use super::budget::Charge;

/// Progress messages that wait for one slow client; what comes beyond is dropped, as progress may.
const PROGRESS_QUEUE: usize = 1_024;

/// Requests of the SDK's own that may be open on one connection: a handshake and some subscriptions.
const SDKS: usize = 16;

/// Maximum length of the id of an event that a stream can be resumed from, in bytes.
const EVENT_ID_BYTES: usize = 1_024;

/// The parameters of a progress notification, and the memory that they take.
pub(crate) type Progress = (Value, Charge);

/// The requests under way.
#[derive(Debug, Default)]
pub(super) struct Slots {
    by_id: HashMap<RequestId, Slot>,
    by_token: HashMap<ProgressToken, RequestId>,
    /// Requests that were given up before they were sent.
    early: HashSet<RequestId>,
    /// How often the older era's handshake was begun.
    handshakes: u32,
    /// Requests of the SDK's own, whose results are its business: handshakes and subscriptions.
    sdks: VecDeque<RequestId>,
}

#[derive(Debug)]
struct Slot {
    result: Option<Value>,
    /// Whether the request is on its way.
    sent: bool,
    /// Whether there was an answer. A second one is nobody's.
    answered: bool,
    /// Whether the SDK is to see the result too.
    shared: bool,
    /// Dropped with the slot, which tells the writer that the request need not be sent any more.
    given_up: Option<oneshot::Sender<()>>,
    /// The id of the last event on the request's stream, over HTTP.
    last_event: Option<String>,
    token: Option<ProgressToken>,
    progress: mpsc::Sender<Progress>,
    listener: Option<mpsc::Receiver<Progress>>,
}

impl Default for Slot {
    fn default() -> Self {
        let (progress, listener) = mpsc::channel(PROGRESS_QUEUE);
        Self {
            result: None,
            sent: false,
            answered: false,
            shared: false,
            given_up: None,
            last_event: None,
            token: None,
            progress,
            listener: Some(listener),
        }
    }
}

/// What is to become of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Nobody waits for it.
    Unexpected,
    /// The SDK is to see it.
    ForSdk,
    /// Its result was taken.
    Taken,
}

impl Slots {
    /// A handshake of the older era begins; returns whether it is not the first.
    pub(super) fn handshake(&mut self, id: &RequestId) -> bool {
        // The probe was answered, or given up: an answer to it would now be taken for one to this.
        self.sdks.clear();
        self.handshakes += 1;
        self.sdks_own(id);
        self.handshakes > 1
    }

    /// A request of the SDK's own is about to be sent.
    pub(super) fn sdks_own(&mut self, id: &RequestId) {
        if self.sdks.len() >= SDKS {
            self.sdks.pop_front();
        }
        self.sdks.push_back(id.clone());
    }

    /// Whether a request is the SDK's own, and not answered.
    pub(super) fn is_sdks(&self, id: &RequestId) -> bool {
        self.sdks.contains(id)
    }

    /// Whether the SDK waits for an answer to a request of its own.
    pub(super) fn has_sdks(&self) -> bool {
        !self.sdks.is_empty()
    }

    /// A request is about to be sent. The receiver resolves when it is given up.
    pub(super) fn sending(
        &mut self,
        id: &RequestId,
        token: Option<ProgressToken>,
        shared: bool,
    ) -> oneshot::Receiver<()> {
        // Given up before it was even sent: its answer is nobody's.
        if self.early.remove(id) {
            return oneshot::channel().1;
        }
        if let Some(token) = &token {
            self.by_token.insert(token.clone(), id.clone());
        }
        let (given_up, when_given_up) = oneshot::channel();
        let slot = self.by_id.entry(id.clone()).or_default();
        slot.token = token;
        slot.sent = true;
        slot.answered = false;
        slot.shared = shared;
        slot.given_up = Some(given_up);
        when_given_up
    }

    /// Notes the id of the last event on the stream of a request.
    pub(super) fn saw_event(&mut self, origin: &RequestId, event: &str) {
        if event.len() <= EVENT_ID_BYTES
            && let Some(slot) = self.by_id.get_mut(origin)
        {
            slot.last_event = Some(event.to_owned());
        }
    }

    /// The request whose stream is resumed from an event.
    pub(super) fn origin_of(&self, event: &str) -> Option<RequestId> {
        let is_it = |slot: &Slot| slot.last_event.as_deref() == Some(event);
        self.by_id.iter().find(|(_, slot)| is_it(slot)).map(|(id, _)| id.clone())
    }

    /// The progress of a request, from its beginning.
    pub(super) fn progress(&mut self, id: &RequestId) -> Option<mpsc::Receiver<Progress>> {
        self.by_id.entry(id.clone()).or_default().listener.take()
    }

    /// Where the progress of a request goes.
    pub(super) fn progress_queue(&self, token: &ProgressToken) -> Option<mpsc::Sender<Progress>> {
        let slot = self.by_id.get(self.by_token.get(token)?)?;
        Some(slot.progress.clone())
    }

    /// An answer came. Each request has one: the first.
    pub(super) fn answer(&mut self, id: &RequestId, fields: &mut Map<String, Value>) -> Answer {
        let own = self.sdks.iter().position(|known| known == id);
        if own.and_then(|at| self.sdks.remove(at)).is_some() {
            return Answer::ForSdk;
        }
        let Some(slot) = self.by_id.get_mut(id).filter(|slot| !slot.answered) else {
            return Answer::Unexpected;
        };
        slot.answered = true;
        // Errors go to the SDK, and so do answers with both a result and an error or neither, which it refuses.
        if fields.contains_key("error") || !fields.contains_key("result") {
            return Answer::ForSdk;
        }
        if slot.shared {
            slot.result = fields.get("result").cloned();
            return Answer::ForSdk;
        }
        slot.result = fields.remove("result");
        Answer::Taken
    }

    /// The result of a request that was answered.
    pub(super) fn take(&mut self, id: &RequestId) -> Option<Value> {
        self.by_id.get_mut(id)?.result.take()
    }

    /// Forgets a request; what comes for it later is nobody's.
    pub(super) fn forget(&mut self, id: &RequestId) {
        match self.by_id.remove(id) {
            Some(Slot { token: Some(token), .. }) => {
                self.by_token.remove(&token);
            }
            Some(Slot { sent: false, .. }) => {
                self.early.insert(id.clone());
            }
            _ => {}
        }
    }

    /// The requests that wait for an answer.
    pub(super) fn waiting(&self) -> Vec<RequestId> {
        let open = self.by_id.iter().filter(|(_, slot)| !slot.answered);
        open.map(|(id, _)| id.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::NumberOrString;
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;

    /// Otherwise the writer would keep the request for a server that does not read.
    #[test]
    fn the_writer_is_told_when_a_request_is_given_up() {
        let mut slots = Slots::default();
        let (early, late) = (NumberOrString::Number(1), NumberOrString::Number(2));
        assert!(slots.progress(&early).is_some());
        slots.forget(&early);
        let given_up = slots.sending(&early, None, false).try_recv();
        assert_eq!(given_up, Err(TryRecvError::Closed), "before it was sent");
        let mut given_up = slots.sending(&late, None, false);
        assert_eq!(given_up.try_recv(), Err(TryRecvError::Empty));
        slots.forget(&late);
        assert_eq!(given_up.try_recv(), Err(TryRecvError::Closed), "while it waits");
    }
}
