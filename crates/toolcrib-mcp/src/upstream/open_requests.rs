//! The open requests on one connection: which answers are expected, and what has arrived for each request so far.

use std::collections::{HashMap, HashSet, VecDeque};

use rmcp::model::{ProgressToken, RequestId};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use super::message_budget::MessageCharge;
use super::protocol_probe;

/// Maximum number of progress notifications that wait for a slow client. Further ones are dropped, because progress is
/// optional.
const PROGRESS_QUEUE: usize = 1_024;

/// Maximum number of open requests that the SDK itself sent on one connection. These are a handshake and some
/// subscriptions.
const MAX_SDK_REQUESTS: usize = 16;

/// Maximum length of an event id that a stream can be resumed from, in bytes.
const EVENT_ID_BYTES: usize = 1_024;

/// The parameters of a progress notification, and the memory that they take.
pub(crate) type ProgressMessage = (Value, MessageCharge);

/// The open requests on one connection.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    by_id: HashMap<RequestId, OpenRequest>,
    by_token: HashMap<ProgressToken, RequestId>,
    /// The ids of requests that were cancelled before they were sent.
    cancelled_early: HashSet<RequestId>,
    /// The number of handshakes of the older protocol that were begun on this connection.
    handshakes: u32,
    /// The ids of handshakes and subscriptions, which the SDK sends itself and whose results it needs.
    sdk_requests: VecDeque<RequestId>,
}

#[derive(Debug)]
struct OpenRequest {
    result: Option<Value>,
    /// Whether the request has been handed to the transport.
    sent: bool,
    /// Whether the request was answered. A second answer is ignored.
    answered: bool,
    /// Whether the SDK also needs the result.
    sdk_needs_result: bool,
    /// A sender that is dropped together with this entry. Its drop tells the writer that the request need not be sent
    /// any more.
    cancel_signal: Option<oneshot::Sender<()>>,
    /// The id of the last event on the request's stream, over HTTP.
    last_event: Option<String>,
    token: Option<ProgressToken>,
    progress: mpsc::Sender<ProgressMessage>,
    progress_receiver: Option<mpsc::Receiver<ProgressMessage>>,
}

impl Default for OpenRequest {
    fn default() -> Self {
        let (progress, progress_receiver) = mpsc::channel(PROGRESS_QUEUE);
        Self {
            result: None,
            sent: false,
            answered: false,
            sdk_needs_result: false,
            cancel_signal: None,
            last_event: None,
            token: None,
            progress,
            progress_receiver: Some(progress_receiver),
        }
    }
}

/// What is done with an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AnswerDestination {
    /// The answer is dropped, because no request waits for it.
    Unexpected,
    /// The answer is passed to the SDK.
    ForSdk,
    /// The answer's result was stored here, for the caller that sent the request.
    Stored,
}

impl OpenRequests {
    /// Records that a handshake of the older protocol begins. Returns whether there was an earlier handshake on this
    /// connection.
    pub(super) fn begin_handshake(&mut self, id: &RequestId) -> bool {
        // Over HTTP, the SDK probes the server before the handshake, and its probe was already answered or cancelled. It
        // is removed here, because the SDK would mistake a late answer to the probe for the answer to the handshake. Our
        // own probe stays open.
        self.sdk_requests.retain(protocol_probe::is_probe);
        self.handshakes += 1;
        self.add_sdk_request(id);
        self.handshakes > 1
    }

    /// Records a request that the SDK itself is about to send.
    pub(super) fn add_sdk_request(&mut self, id: &RequestId) {
        if self.sdk_requests.len() >= MAX_SDK_REQUESTS {
            self.sdk_requests.pop_front();
        }
        self.sdk_requests.push_back(id.clone());
    }

    /// Whether this is an open request of the SDK itself.
    pub(super) fn is_sdk_request(&self, id: &RequestId) -> bool {
        self.sdk_requests.contains(id)
    }

    /// Whether any request of the SDK itself is open.
    pub(super) fn has_sdk_request(&self) -> bool {
        !self.sdk_requests.is_empty()
    }

    /// Records that a request is about to be sent. The returned receiver resolves when the request is cancelled.
    pub(super) fn begin(
        &mut self,
        id: &RequestId,
        token: Option<ProgressToken>,
        sdk_needs_result: bool,
    ) -> oneshot::Receiver<()> {
        // The request was cancelled before it was sent, so it is not recorded, and the returned receiver resolves at
        // once.
        if self.cancelled_early.remove(id) {
            return oneshot::channel().1;
        }
        if let Some(token) = &token {
            self.by_token.insert(token.clone(), id.clone());
        }
        let (cancel_signal, cancelled) = oneshot::channel();
        let request = self.by_id.entry(id.clone()).or_default();
        request.token = token;
        request.sent = true;
        request.answered = false;
        request.sdk_needs_result = sdk_needs_result;
        request.cancel_signal = Some(cancel_signal);
        cancelled
    }

    /// Records the id of the last event on the stream of a request.
    pub(super) fn record_event_id(&mut self, origin: &RequestId, event: &str) {
        if event.len() <= EVENT_ID_BYTES
            && let Some(request) = self.by_id.get_mut(origin)
        {
            request.last_event = Some(event.to_owned());
        }
    }

    /// Returns the id of the request whose stream is resumed from this event, if there is one.
    pub(super) fn find_by_event(&self, event: &str) -> Option<RequestId> {
        let is_resumed = |request: &OpenRequest| request.last_event.as_deref() == Some(event);
        self.by_id.iter().find(|(_, request)| is_resumed(request)).map(|(id, _)| id.clone())
    }

    /// Takes the receiver of a request's progress. It can be taken once, even before the request is sent.
    pub(super) fn take_progress(
        &mut self,
        id: &RequestId,
    ) -> Option<mpsc::Receiver<ProgressMessage>> {
        self.by_id.entry(id.clone()).or_default().progress_receiver.take()
    }

    /// Returns the queue for progress notifications with this token, if an open request has this token.
    pub(super) fn progress_queue(
        &self,
        token: &ProgressToken,
    ) -> Option<mpsc::Sender<ProgressMessage>> {
        let request = self.by_id.get(self.by_token.get(token)?)?;
        Some(request.progress.clone())
    }

    /// Records an answer, and returns what is done with it. Only the first answer to a request counts.
    pub(super) fn record_answer(
        &mut self,
        id: &RequestId,
        fields: &mut Map<String, Value>,
    ) -> AnswerDestination {
        let position = self.sdk_requests.iter().position(|sdk_id| sdk_id == id);
        if position.and_then(|at| self.sdk_requests.remove(at)).is_some() {
            return AnswerDestination::ForSdk;
        }
        let Some(request) = self.by_id.get_mut(id).filter(|request| !request.answered) else {
            return AnswerDestination::Unexpected;
        };
        request.answered = true;
        // Errors are passed to the SDK. So are invalid answers, which have both a result and an error, or neither.
        if fields.contains_key("error") || !fields.contains_key("result") {
            return AnswerDestination::ForSdk;
        }
        if request.sdk_needs_result {
            request.result = fields.get("result").cloned();
            return AnswerDestination::ForSdk;
        }
        request.result = fields.remove("result");
        AnswerDestination::Stored
    }

    /// Takes the result of an answered request.
    pub(super) fn take_result(&mut self, id: &RequestId) -> Option<Value> {
        self.by_id.get_mut(id)?.result.take()
    }

    /// Removes a request. Anything that arrives for it later is ignored.
    pub(super) fn remove(&mut self, id: &RequestId) {
        match self.by_id.remove(id) {
            Some(OpenRequest { token: Some(token), .. }) => {
                self.by_token.remove(&token);
            }
            Some(OpenRequest { sent: false, .. }) => {
                self.cancelled_early.insert(id.clone());
            }
            _ => {}
        }
    }

    /// Returns the ids of the requests that have no answer yet.
    pub(super) fn unanswered(&self) -> Vec<RequestId> {
        let open = self.by_id.iter().filter(|(_, request)| !request.answered);
        open.map(|(id, _)| id.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::NumberOrString;
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;

    /// The writer must learn of the cancellation. Otherwise it would keep a cancelled request in memory while the
    /// server does not read.
    #[test]
    fn the_writer_learns_when_a_request_is_cancelled() {
        let mut requests = OpenRequests::default();
        let (early, late) = (NumberOrString::Number(1), NumberOrString::Number(2));
        assert!(requests.take_progress(&early).is_some());
        requests.remove(&early);
        let cancel_signal = requests.begin(&early, None, false).try_recv();
        assert_eq!(cancel_signal, Err(TryRecvError::Closed), "before it is sent");
        let mut cancel_signal = requests.begin(&late, None, false);
        assert_eq!(cancel_signal.try_recv(), Err(TryRecvError::Empty));
        requests.remove(&late);
        assert_eq!(
            cancel_signal.try_recv(),
            Err(TryRecvError::Closed),
            "while it waits to be written"
        );
    }
}
