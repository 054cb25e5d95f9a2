//! What a server says, looked at before the SDK reads it.
//!
//! The SDK's types know the fields of today and drop the rest; a gateway may not. So the result of
//! every request we send is taken here as it came, and the SDK only learns that there was one. Here
//! is also where the order of messages still stands: progress reaches its call before the answer
//! does, and ten thousand `list_changed` in a row become one mark. Requests of the server never reach the
//! SDK: see [`super::server_requests`]. Of notifications it sees the two that it needs. What waits here is limited in
//! number and charged to a [`Budget`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, GetMeta as _, JsonRpcMessage, ProgressToken, RequestId,
};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::budget::{Budget, Charge, memory_of};
use super::callers::{Asked, Callers, Said};
use super::entry_limits::URI_BYTES;
use super::secrets::Secrets;
use super::server_requests::{
    Accepted, AnswerPermit, ID_BYTES, ServerRequests, Violation, is_request,
};
use super::slots::{Answer, Progress, Slots};
use crate::config::Limits;
use crate::log_limit::LogLimit;
use crate::request_id::request_id;

/// Maximum size of the acknowledgement of a subscription in memory, in bytes: it repeats the addresses that we watch.
const ACKNOWLEDGEMENT_BYTES: usize = 256 << 10;

/// Everything that one connection's transport and its calls share.
#[derive(Debug)]
pub(crate) struct Tap {
    slots: Mutex<Slots>,
    callers: Arc<Callers>,
    /// Something of a server's lists changed, or may have.
    changed: Notify,
    /// Lines that were no message.
    noise: AtomicU64,
    /// Limits the log lines about the server, over all of its connections.
    log: Arc<LogLimit>,
    /// Cancellations on their way to the server.
    pub(super) farewells: TaskTracker,
    /// The connection is over.
    closed: CancellationToken,
    /// Why, where the transport knows it.
    why: Mutex<Option<String>>,
    /// Why we ended it, if it was us.
    violation: Mutex<Option<String>>,
    requests: ServerRequests,
    /// For everything of the server that waits.
    budget: Budget,
    /// Where the addresses of changed resources go.
    updated: mpsc::Sender<String>,
    /// What the server was given and may not be repeated.
    secrets: Secrets,
    /// When it last said something.
    heard: Mutex<Instant>,
}

/// What is to become of a message.
#[derive(Debug)]
pub(crate) enum Seen {
    /// It is the SDK's, as it came.
    Whole(Value),
    /// Its result was taken; the SDK only learns that this request was answered.
    Answered(RequestId),
    /// It is dealt with.
    Done,
}

/// The server broke its limits; nothing more of it is to be looked at.
#[derive(Debug)]
pub(crate) struct Disconnected;

impl Tap {
    /// Of a server with these calls under way, and the requests of that server that are to be answered. The addresses
    /// of changed resources go to `updated`.
    pub(super) fn new(
        callers: Arc<Callers>,
        log: Arc<LogLimit>,
        secrets: Secrets,
        limits: &Limits,
        updated: mpsc::Sender<String>,
    ) -> (Arc<Self>, Accepted) {
        let (requests, accepted) = ServerRequests::new(limits);
        let tap = Arc::new(Self {
            callers,
            secrets,
            requests,
            budget: Budget::new(limits.server_bytes),
            updated,
            violation: Mutex::default(),
            heard: Mutex::new(Instant::now()),
            slots: Mutex::default(),
            changed: Notify::new(),
            noise: AtomicU64::new(0),
            log,
            farewells: TaskTracker::new(),
            closed: CancellationToken::new(),
            why: Mutex::default(),
        });
        (tap, accepted)
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes ready for the answer to a request that is about to be sent. `shares` says of which
    /// methods the SDK needs to see the results. The receiver returned resolves when the request is given up.
    pub(crate) fn sending(
        &self,
        message: &ClientJsonRpcMessage,
        shares: fn(&str) -> bool,
    ) -> Option<oneshot::Receiver<()>> {
        let JsonRpcMessage::Request(sent) = message else { return None };
        let mut slots = self.slots();
        match sent.request {
            ClientRequest::InitializeRequest(_) => {
                // A second handshake on one connection: the server forgot the session, and may have changed.
                if slots.handshake(&sent.id) {
                    self.suspect_change();
                }
                None
            }
            ClientRequest::DiscoverRequest(_) | ClientRequest::SubscriptionsListenRequest(_) => {
                slots.sdks_own(&sent.id);
                None
            }
            _ => {
                let token = sent.request.get_meta().get_progress_token();
                Some(slots.sending(&sent.id, token, shares(sent.request.method())))
            }
        }
    }

    /// Notes the id of an event on the stream of a request: a stream that is resumed from there is that request's.
    pub(super) fn saw_event(&self, origin: &RequestId, event: &str) {
        self.slots().saw_event(origin, event);
    }

    /// The request whose stream is resumed from an event.
    pub(super) fn origin_of(&self, event: &str) -> Option<RequestId> {
        self.slots().origin_of(event)
    }

    /// The progress of a request, from its beginning.
    pub(crate) fn progress(&self, id: &RequestId) -> Option<mpsc::Receiver<Progress>> {
        self.slots().progress(id)
    }

    /// The result of a request that was answered.
    pub(crate) fn take(&self, id: &RequestId) -> Option<Value> {
        self.slots().take(id)
    }

    /// Forgets a request; what comes for it later is nobody's.
    pub(crate) fn forget(&self, id: &RequestId) {
        self.slots().forget(id);
    }

    /// The requests that wait for an answer.
    pub(crate) fn waiting(&self) -> Vec<RequestId> {
        self.slots().waiting()
    }

    /// Waits until a message may be looked at: a request of the server needs a place for its answer, which is returned.
    /// Over HTTP one request can wait on each stream, so waiting requests are charged to the budget.
    pub(super) async fn admit(
        &self,
        message: &Value,
    ) -> Result<Option<AnswerPermit>, Disconnected> {
        if !is_request(message) {
            return Ok(None);
        }
        if let Some(permit) = self.requests.free_permit() {
            return Ok(Some(permit));
        }
        let admitted = match self.budget.charge(message) {
            Some(_charge) => self.requests.permit().await,
            None => Err(Violation::requests_too_large()),
        };
        admitted.map(Some).map_err(|violation| {
            self.disconnect(violation);
            Disconnected
        })
    }

    /// Looks at a message from the server; `origin` is the call it came with, where the wire tells, and `permit` what
    /// [`Self::admit`] returned for it.
    pub(crate) fn see(
        &self,
        mut message: Value,
        origin: Option<&RequestId>,
        permit: Option<AnswerPermit>,
    ) -> Seen {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let Some(fields) = message.as_object_mut() else {
            self.noise();
            return Seen::Done;
        };
        if let Some(method) = fields.get("method").and_then(Value::as_str) {
            if let Some(permit) = permit {
                let id = fields.get("id").and_then(request_id).filter(fits);
                let asked = Asked { method: method.to_owned(), params: fields.remove("params") };
                self.requested(id.map(|id| (id, asked)), origin, permit);
                return Seen::Done;
            }
            let method = method.to_owned();
            return self.notified(&method, message, origin);
        }
        let Some(id) = fields.get("id").and_then(request_id) else {
            // An error without an id may be the answer to a handshake, and is nothing else.
            if fields.contains_key("error") && self.slots().has_sdks() {
                return Seen::Whole(message);
            }
            self.noise();
            return Seen::Done;
        };
        match self.slots().answer(&id, fields) {
            // During a handshake the SDK would take an answer to nobody's question for a refusal.
            Answer::Unexpected => {
                self.noise();
                Seen::Done
            }
            Answer::ForSdk => Seen::Whole(message),
            Answer::Taken => Seen::Answered(id),
        }
    }

    fn requested(
        &self,
        request: Option<(RequestId, Asked)>,
        origin: Option<&RequestId>,
        permit: AnswerPermit,
    ) {
        let Some(request) = request else { return self.noise() };
        if let Err(violation) = self.requests.take(request, origin, permit, &self.budget) {
            self.disconnect(violation);
        }
    }

    fn notified(&self, method: &str, mut message: Value, origin: Option<&RequestId>) -> Seen {
        let params = message.get_mut("params").map(Value::take).unwrap_or_default();
        match method {
            "notifications/progress" => self.progressed(params),
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed" => self.suspect_change(),
            // Its call must be found now: the next message may be the answer that ends the call.
            "notifications/message" => self.logged(params, origin),
            "notifications/resources/updated" => {
                let uri = params.get("uri").and_then(Value::as_str);
                if let Some(uri) = uri.filter(|uri| uri.len() <= URI_BYTES) {
                    // A full queue holds news enough.
                    let _ = self.updated.try_send(uri.to_owned());
                }
            }
            "notifications/cancelled" => {
                let id = params.get("requestId").and_then(request_id).filter(fits);
                let Some(id) = id else { return Seen::Done };
                self.requests.cancel(&id);
                // In the newer era a server ends a subscription this way.
                if self.slots().is_sdks(&id) {
                    let params = json!({"requestId": id});
                    return Seen::Whole(
                        json!({"jsonrpc": "2.0", "method": method, "params": params}),
                    );
                }
            }
            "notifications/subscriptions/acknowledged"
                if memory_of(&params) <= ACKNOWLEDGEMENT_BYTES =>
            {
                message["params"] = params;
                return Seen::Whole(message);
            }
            // Nobody reads the others.
            _ => {}
        }
        Seen::Done
    }

    fn progressed(&self, params: Value) {
        let token = params.get("progressToken").and_then(request_id).map(ProgressToken);
        // Full: this client is too slow for this server, and progress is only a courtesy.
        if let Some(token) = token
            && let Some(queue) = self.slots().progress_queue(&token)
            && let Some(charge) = self.budget.charge(&params)
        {
            let _ = queue.try_send((params, charge));
        }
    }

    fn logged(&self, params: Value, origin: Option<&RequestId>) {
        // Full: this client is too slow for this server, and a log is only a courtesy.
        if let Ok(caller) = self.callers.look(origin)
            && let Some(charge) = self.budget.charge(&params)
            && let Ok(line) = serde_json::from_value(params)
        {
            let _ = caller.questions.try_send(Said::Log(line, charge));
        }
    }

    /// Memory for a message that is to wait, if there is some left.
    pub(super) fn charge(&self, message: &Value) -> Option<Charge> {
        self.budget.charge(message)
    }

    /// A question has its answer.
    pub(super) fn answered(&self, id: &RequestId) {
        self.requests.answered(id);
    }

    /// The lists are to be fetched again, because something of them changed or may have changed unheard.
    pub(crate) fn suspect_change(&self) {
        self.changed.notify_one();
    }

    /// Waits until something changed since the last time.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Counts a line that was no message.
    pub(crate) fn noise(&self) {
        let seen = self.noise.fetch_add(1, Ordering::Relaxed);
        if seen == 0 {
            tracing::debug!("the server writes lines that are no messages; they are skipped");
        }
    }

    /// Logs that a message was skipped because of a limit, in bytes.
    pub(super) fn skipped(&self, limit: usize, why: &'static str) {
        if let Some(left_out) = self.log.admit() {
            let left_out = (left_out > 0).then_some(left_out);
            tracing::warn!(limit, left_out, "{why}; it is skipped");
        }
    }

    /// The connection is over.
    pub(crate) fn close(&self, why: Option<String>) {
        if let Some(why) = why {
            let why = self.hide(&why);
            self.why.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        }
        self.closed.cancel();
    }

    /// Ends the connection to a server that broke its limits.
    fn disconnect(&self, Violation(why): Violation) {
        self.violation
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_with(|| why.clone());
        self.close(Some(why));
    }

    /// Why we ended the connection, if it was us.
    pub(super) fn violation(&self) -> Option<String> {
        self.violation.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for the end of the connection.
    pub(crate) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// A text without what the server was given and may not be repeated.
    pub(super) fn hide(&self, text: &str) -> String {
        self.secrets.hide(text)
    }

    /// How long the server has said nothing.
    pub(super) fn silent_for(&self) -> Duration {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// Why the connection is over.
    pub(crate) fn why(&self) -> Option<String> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Whether an id is short enough to be kept.
fn fits(id: &RequestId) -> bool {
    match id {
        RequestId::Number(_) => true,
        RequestId::String(text) => text.len() <= ID_BYTES,
    }
}
