//! What a server asks of us: how much of it at once, and what becomes of the rest.
//!
//! A server may send pings, questions to a client (`elicitation/create`, `sampling/createMessage`, `roots/list`) and
//! methods that nobody knows, as fast as a pipe carries them. The SDK starts a task for each and queues their answers
//! without limit, so none of them reaches it; [`super::answering`] answers them in its place, within these limits:
//!
//! - Questions that wait for a client, `server_requests` at most. More are answered with an error, and a server that
//!   goes on after many refusals is disconnected.
//! - Answers that wait to be written to the server, `server_requests` at most in addition. With so many waiting,
//!   nothing more is read from where the next request came, so the server cannot send more than it reads. One that
//!   reads no answer for `server_stall` seconds is disconnected.
//!
//! Rejected: refusing pings too. A server that reads its answers gets one for each, however many it sends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::budget::{Budget, Charge};
use super::callers::Asked;
use crate::config::Limits;

/// Refusals in a row, as a multiple of the limit, after which a server is disconnected.
const REFUSALS: usize = 16;

/// Maximum length of a request's id, in bytes. One that is longer cannot be answered within the limits.
pub(super) const ID_BYTES: usize = 1_024;

/// The error code of a refused request: JSON-RPC leaves -32000 to -32099 to implementations.
const TOO_MANY: ErrorCode = ErrorCode(-32_000);

/// The requests of one server that are not answered yet.
#[derive(Debug)]
pub(super) struct ServerRequests {
    limit: usize,
    stall: Duration,
    questions: Arc<Semaphore>,
    answers: Arc<Semaphore>,
    /// Refusals since a question was last let in.
    refused: AtomicUsize,
    /// Questions that the server may take back, by their ids.
    open: Mutex<HashMap<RequestId, CancellationToken>>,
    /// To [`super::answering`]. Unbounded, since everything in it holds a permit of one of the semaphores.
    accepted: mpsc::UnboundedSender<ServerRequest>,
}

/// The receiving side: what is to be answered.
pub(super) type Accepted = mpsc::UnboundedReceiver<ServerRequest>;

/// A place among the answers that may wait to be written.
#[derive(Debug)]
pub(crate) struct AnswerPermit(OwnedSemaphorePermit);

/// A request, and its place, held until the answer is written.
#[derive(Debug)]
pub(super) struct ServerRequest {
    pub(super) id: RequestId,
    pub(super) kind: Kind,
    pub(super) permit: OwnedSemaphorePermit,
}

/// What is to be done about a request.
#[derive(Debug)]
pub(super) enum Kind {
    /// The answer is known.
    Answered(Result<Value, ErrorData>),
    /// A client is to be asked.
    Question(Question),
}

/// A question for a client.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) asked: Asked,
    /// The call that it came with, if the transport tells.
    pub(super) origin: Option<RequestId>,
    /// The server took it back.
    pub(super) cancelled: CancellationToken,
    pub(super) charge: Charge,
}

/// A server broke its limits and is to be disconnected, for this reason.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Violation(pub(super) String);

impl Violation {
    /// The waiting requests exceed the memory for messages that wait.
    pub(super) fn requests_too_large() -> Self {
        Self("it does not read the answers to its requests, and the requests that wait are too large".into())
    }
}

impl ServerRequests {
    pub(super) fn new(limits: &Limits) -> (Self, Accepted) {
        let (accepted, accepts) = mpsc::unbounded_channel();
        let limit = limits.server_requests.min(Semaphore::MAX_PERMITS);
        let requests = Self {
            limit,
            stall: Duration::from_secs(limits.server_stall),
            questions: Arc::new(Semaphore::new(limit)),
            answers: Arc::new(Semaphore::new(limit)),
            refused: AtomicUsize::new(0),
            open: Mutex::default(),
            accepted,
        };
        (requests, accepts)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for the next answer, if one is free.
    pub(super) fn free_permit(&self) -> Option<AnswerPermit> {
        Arc::clone(&self.answers).try_acquire_owned().ok().map(AnswerPermit)
    }

    /// Waits for a place for the next answer. Until then nothing is to be read from where the request came.
    pub(super) async fn permit(&self) -> Result<AnswerPermit, Violation> {
        let place = Arc::clone(&self.answers).acquire_owned();
        match tokio::time::timeout(self.stall, place).await {
            Ok(Ok(permit)) => Ok(AnswerPermit(permit)),
            Ok(Err(_)) | Err(_) => Err(Violation(format!(
                "it does not read the answers to its requests: {} wait, and none was read for {} s",
                self.limit,
                self.stall.as_secs()
            ))),
        }
    }

    /// Takes a request on, or refuses it.
    pub(super) fn take(
        &self,
        (id, asked): (RequestId, Asked),
        origin: Option<&RequestId>,
        AnswerPermit(permit): AnswerPermit,
        budget: &Budget,
    ) -> Result<(), Violation> {
        let answered = |answer| Kind::Answered(answer);
        let (kind, permit) = match &*asked.method {
            "ping" => (answered(Ok(json!({}))), permit),
            "elicitation/create" | "sampling/createMessage" | "roots/list" => {
                match self.question(&id, asked, origin, budget) {
                    Ok((question, permit)) => {
                        self.refused.store(0, Ordering::Relaxed);
                        (Kind::Question(question), permit)
                    }
                    Err(error) => {
                        self.refuse()?;
                        (answered(Err(error)), permit)
                    }
                }
            }
            _ => {
                let what = "unknown method";
                (answered(Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, what, None))), permit)
            }
        };
        // Fails only once the connection is over.
        let _ = self.accepted.send(ServerRequest { id, kind, permit });
        Ok(())
    }

    fn question(
        &self,
        id: &RequestId,
        asked: Asked,
        origin: Option<&RequestId>,
        budget: &Budget,
    ) -> Result<(Question, OwnedSemaphorePermit), ErrorData> {
        let limit = self.limit;
        let permit = Arc::clone(&self.questions).try_acquire_owned().map_err(|_| {
            let why = format!("too many requests: {limit} wait for an answer already");
            ErrorData::new(TOO_MANY, why, None)
        })?;
        let charge = budget.charge(asked.params.as_ref().unwrap_or(&Value::Null));
        let charge = charge.ok_or_else(|| {
            ErrorData::new(TOO_MANY, "too large: the messages that wait are at their limit", None)
        })?;
        let cancelled = CancellationToken::new();
        let mut open = self.open();
        if open.contains_key(id) {
            let why = "another request with this id is not answered yet";
            return Err(ErrorData::new(ErrorCode::INVALID_REQUEST, why, None));
        }
        open.insert(id.clone(), cancelled.clone());
        Ok((Question { asked, origin: origin.cloned(), cancelled, charge }, permit))
    }

    fn refuse(&self) -> Result<(), Violation> {
        let (limit, most) = (self.limit, self.limit.saturating_mul(REFUSALS));
        if self.refused.fetch_add(1, Ordering::Relaxed) < most {
            return Ok(());
        }
        Err(Violation(format!(
            "it had {limit} requests open and went on after {most} were refused"
        )))
    }

    /// A question has its answer.
    pub(super) fn answered(&self, id: &RequestId) {
        self.open().remove(id);
    }

    /// The server takes a question back.
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
