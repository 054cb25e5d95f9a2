//! Limits the requests that a server sends to the gateway.
//!
//! A server may send pings, questions to a client (`elicitation/create`, `sampling/createMessage`, `roots/list`) and
//! unknown methods as fast as its pipe allows. The SDK would start a task for each request and queue the answers
//! without limit, so [`super::answering_transport`] answers them instead, within these limits:
//!
//! - At most `server_requests` questions wait for a client. Further questions are answered with an error, and a server
//!   that continues after many errors is disconnected.
//! - At most `server_requests` answers wait to be written to the server. When that many wait, the next request is not
//!   read, nor anything after it on the same stream, so the server cannot send more than it reads. A server that reads
//!   no answer for `server_stall` seconds is disconnected.
//!
//! There is no limit on the number of pings from a server that reads the answers.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::active_calls::RawRequest;
use super::message_budget::{MessageBudget, MessageCharge};
use crate::config::GatewayLimits;

/// Maximum number of questions in a row that are rejected before a server is disconnected, as a multiple of the limit
/// `server_requests`.
const MAX_REJECTIONS: usize = 16;

/// Maximum length of a request's id, in bytes. Requests with a longer id are dropped.
pub(super) const ID_BYTES: usize = 1_024;

/// The error code of a rejected question. JSON-RPC reserves -32000 to -32099 for implementations.
const TOO_MANY: ErrorCode = ErrorCode(-32_000);

/// The unanswered requests of one server.
#[derive(Debug)]
pub(super) struct ServerRequests {
    limit: usize,
    stall: Duration,
    questions: Arc<Semaphore>,
    answers: Arc<Semaphore>,
    /// The number of questions that were rejected since the last one was accepted.
    rejected: AtomicUsize,
    /// Open questions by their ids, so that the server can cancel them.
    open: Mutex<HashMap<RequestId, CancellationToken>>,
    /// Sends accepted requests to [`super::answering_transport`]. The channel is unbounded, because each message holds
    /// a permit of one of the semaphores.
    accepted: mpsc::UnboundedSender<ServerRequest>,
}

/// Receives the accepted requests, which must be answered.
pub(super) type AcceptedRequests = mpsc::UnboundedReceiver<ServerRequest>;

/// A permit to queue one answer.
#[derive(Debug)]
pub(crate) struct AnswerPermit(OwnedSemaphorePermit);

/// An accepted request. It holds its permit until the answer is written.
#[derive(Debug)]
pub(super) struct ServerRequest {
    pub(super) id: RequestId,
    pub(super) action: RequestAction,
    pub(super) permit: OwnedSemaphorePermit,
}

/// How a request is answered.
#[derive(Debug)]
pub(super) enum RequestAction {
    /// The request is answered with this result or error.
    Answer(Result<Value, ErrorData>),
    /// The request is answered by a client.
    AskClient(PendingQuestion),
}

/// A question that waits for a client's answer.
#[derive(Debug)]
pub(super) struct PendingQuestion {
    pub(super) request: RawRequest,
    /// The call that the question belongs to, if the transport reports it.
    pub(super) origin: Option<RequestId>,
    /// Cancelled when the server cancels the question.
    pub(super) cancelled: CancellationToken,
    pub(super) charge: MessageCharge,
}

/// A text that says how a server exceeded its limits. The server must be disconnected.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LimitViolation(pub(super) String);

impl LimitViolation {
    /// Creates the violation of a server whose waiting requests exceed the memory budget.
    pub(super) fn requests_too_large() -> Self {
        Self(
            "it does not read the answers to its requests, and the waiting requests are too large"
                .into(),
        )
    }
}

impl ServerRequests {
    pub(super) fn new(limits: &GatewayLimits) -> (Self, AcceptedRequests) {
        let (accepted, accepts) = mpsc::unbounded_channel();
        let limit = limits.server_requests.min(Semaphore::MAX_PERMITS);
        let requests = Self {
            limit,
            stall: Duration::from_secs(limits.server_stall),
            questions: Arc::new(Semaphore::new(limit)),
            answers: Arc::new(Semaphore::new(limit)),
            rejected: AtomicUsize::new(0),
            open: Mutex::default(),
            accepted,
        };
        (requests, accepts)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.open.lock()
    }

    /// Returns a permit for the next answer, if one is free.
    pub(super) fn try_permit(&self) -> Option<AnswerPermit> {
        Arc::clone(&self.answers).try_acquire_owned().ok().map(AnswerPermit)
    }

    /// Waits for a permit for the next answer. While this waits, the stream that the request arrived on must not be
    /// read.
    pub(super) async fn permit(&self) -> Result<AnswerPermit, LimitViolation> {
        let acquired = Arc::clone(&self.answers).acquire_owned();
        match tokio::time::timeout(self.stall, acquired).await {
            Ok(Ok(permit)) => Ok(AnswerPermit(permit)),
            Ok(Err(_)) | Err(_) => Err(LimitViolation(format!(
                "it does not read the answers to its requests: {} wait, and none was read for {} s",
                self.limit,
                self.stall.as_secs()
            ))),
        }
    }

    /// Accepts a request, or answers it with an error.
    pub(super) fn accept(
        &self,
        (id, request): (RequestId, RawRequest),
        origin: Option<&RequestId>,
        AnswerPermit(permit): AnswerPermit,
        budget: &MessageBudget,
    ) -> Result<(), LimitViolation> {
        let answer = RequestAction::Answer;
        let (action, permit) = match &*request.method {
            "ping" => (answer(Ok(json!({}))), permit),
            "elicitation/create" | "sampling/createMessage" | "roots/list" => {
                match self.open_question(&id, request, origin, budget) {
                    Ok((question, permit)) => {
                        self.rejected.store(0, Ordering::Relaxed);
                        (RequestAction::AskClient(question), permit)
                    }
                    Err(error) => {
                        self.count_rejection()?;
                        (answer(Err(error)), permit)
                    }
                }
            }
            _ => {
                let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "unknown method", None);
                (answer(Err(error)), permit)
            }
        };
        // Sending fails only after the connection has ended.
        let _ = self.accepted.send(ServerRequest { id, action, permit });
        Ok(())
    }

    fn open_question(
        &self,
        id: &RequestId,
        request: RawRequest,
        origin: Option<&RequestId>,
        budget: &MessageBudget,
    ) -> Result<(PendingQuestion, OwnedSemaphorePermit), ErrorData> {
        let limit = self.limit;
        let permit = Arc::clone(&self.questions).try_acquire_owned().map_err(|_| {
            let problem = format!("too many requests: {limit} are already waiting for an answer");
            ErrorData::new(TOO_MANY, problem, None)
        })?;
        let charge = budget.charge(request.params.as_ref().unwrap_or(&Value::Null));
        let charge = charge.ok_or_else(|| {
            ErrorData::new(TOO_MANY, "too large: the waiting messages are at their limit", None)
        })?;
        let cancelled = CancellationToken::new();
        let mut open = self.open();
        if open.contains_key(id) {
            let problem = "another request with this id is still open";
            return Err(ErrorData::new(ErrorCode::INVALID_REQUEST, problem, None));
        }
        open.insert(id.clone(), cancelled.clone());
        Ok((PendingQuestion { request, origin: origin.cloned(), cancelled, charge }, permit))
    }

    fn count_rejection(&self) -> Result<(), LimitViolation> {
        let (limit, max) = (self.limit, self.limit.saturating_mul(MAX_REJECTIONS));
        if self.rejected.fetch_add(1, Ordering::Relaxed) < max {
            return Ok(());
        }
        Err(LimitViolation(format!(
            "it had {limit} requests open and continued after {max} were rejected"
        )))
    }

    /// Records that a question was answered.
    pub(super) fn answered(&self, id: &RequestId) {
        self.open().remove(id);
    }

    /// Cancels a question, at the server's request.
    pub(super) fn cancel(&self, id: &RequestId) {
        if let Some(cancelled) = self.open().get(id) {
            cancelled.cancel();
        }
    }
}

/// Whether a message is a request, and not an answer or a notification.
pub(super) fn is_request(message: &Value) -> bool {
    let has = |key: &str| message.get(key).is_some_and(|value| !value.is_null());
    has("id") && message.get("method").is_some_and(Value::is_string)
}
