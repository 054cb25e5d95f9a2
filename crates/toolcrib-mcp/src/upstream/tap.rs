//! Inspects every message from a server before the SDK does.
//!
//! The SDK's types drop fields that they do not know, which a gateway must not do. So the result of every request is
//! taken here unparsed, and the SDK only learns that the request was answered. The messages are still in order here, so
//! progress reaches its call before the answer does. Any number of `list_changed` notifications cause one refresh. The
//! server's requests never reach the SDK (see [`super::server_requests`]), and of its notifications only the two that
//! the SDK needs are passed on. Messages that wait here are limited in number and charged to a [`MessageBudget`].

use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, GetMeta as _, JsonRpcMessage, ProgressToken, RequestId,
};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolcrib_text::clean::one_line;
use toolcrib_text::shorten;

use super::active_calls::{ActiveCalls, RawRequest, ServerMessage};
use super::entry_limits::URI_BYTES;
use super::message_budget::{MessageBudget, MessageCharge, memory_of};
use super::open_requests::{AnswerDestination, OpenRequests, ProgressMessage};
use super::secrets::Secrets;
use super::server_requests::{
    AcceptedRequests, AnswerPermit, ID_BYTES, LimitViolation, ServerRequests, is_request,
};
use crate::config::GatewayLimits;
use crate::log_limit::LogLimit;
use crate::request_id::request_id;

/// Maximum memory of the acknowledgement of a subscription, in bytes. The acknowledgement repeats the watched URIs.
const ACKNOWLEDGEMENT_BYTES: usize = 256 << 10;

/// Maximum length of the stray text that is kept, in characters.
const STRAY_TEXT_CHARS: usize = 80;

/// The state that the transport of one connection shares with its requests.
#[derive(Debug)]
pub(crate) struct Tap {
    open_requests: Mutex<OpenRequests>,
    active_calls: Arc<ActiveCalls>,
    /// Notified when the server's lists changed, or may have changed.
    lists_changed: Notify,
    /// The number of invalid messages from the server.
    invalid_messages: AtomicU64,
    /// The beginning of the first text from the server that is not JSON.
    stray_text: OnceLock<String>,
    /// Limits the log lines about the server, over all of its connections.
    log: Arc<LogLimit>,
    /// Tracks the cancellations that are being sent to the server.
    pub(super) cancellations: TaskTracker,
    /// Cancelled when the connection is over.
    closed: CancellationToken,
    /// Why the connection is over, if known.
    close_reason: Mutex<Option<String>>,
    /// Which limit the server exceeded, if the gateway disconnected it.
    violation: Mutex<Option<String>>,
    requests: ServerRequests,
    /// The memory budget for all messages from the server that wait to be delivered.
    budget: MessageBudget,
    /// Sends the URIs of updated resources.
    resource_updates: mpsc::Sender<String>,
    /// The secrets that are masked in close reasons.
    secrets: Secrets,
    /// When the last message from the server arrived.
    last_message_at: Mutex<Instant>,
}

/// What the transport does with an inspected message.
#[derive(Debug)]
pub(crate) enum Disposition {
    /// The transport passes the message to the SDK.
    ForSdk(Value),
    /// The transport tells the SDK that this request was answered. The result was taken out.
    Answered(RequestId),
    /// The transport does nothing more, because the message was handled here.
    Consumed,
}

/// The error that the server exceeded its limits and was disconnected. No further message is inspected.
#[derive(Debug)]
pub(crate) struct LimitsExceeded;

impl Tap {
    /// Creates the tap of one connection. Also returns the receiver of the server's requests, which the caller must
    /// answer. The URIs of updated resources are sent to `resource_updates`.
    pub(super) fn new(
        active_calls: Arc<ActiveCalls>,
        log: Arc<LogLimit>,
        secrets: Secrets,
        limits: &GatewayLimits,
        resource_updates: mpsc::Sender<String>,
    ) -> (Arc<Self>, AcceptedRequests) {
        let (requests, accepted) = ServerRequests::new(limits);
        let tap = Arc::new(Self {
            active_calls,
            secrets,
            requests,
            budget: MessageBudget::new(limits.server_bytes),
            resource_updates,
            violation: Mutex::default(),
            last_message_at: Mutex::new(Instant::now()),
            open_requests: Mutex::default(),
            lists_changed: Notify::new(),
            invalid_messages: AtomicU64::new(0),
            stray_text: OnceLock::new(),
            log,
            cancellations: TaskTracker::new(),
            closed: CancellationToken::new(),
            close_reason: Mutex::default(),
        });
        (tap, accepted)
    }

    fn open_requests(&self) -> MutexGuard<'_, OpenRequests> {
        self.open_requests.lock()
    }

    /// Registers a request that is about to be sent. `sdk_needs_result` returns whether the SDK needs the results of a
    /// method. The returned receiver resolves when the request is cancelled. Returns `None` for handshakes and
    /// subscriptions, and for messages that are not requests.
    pub(crate) fn register_request(
        &self,
        message: &ClientJsonRpcMessage,
        sdk_needs_result: fn(&str) -> bool,
    ) -> Option<oneshot::Receiver<()>> {
        let JsonRpcMessage::Request(sent) = message else { return None };
        let mut open_requests = self.open_requests();
        match sent.request {
            ClientRequest::InitializeRequest(_) => {
                // A second handshake on one connection means that the server lost the session, so its lists may have
                // changed.
                if open_requests.begin_handshake(&sent.id) {
                    self.mark_lists_changed();
                }
                None
            }
            ClientRequest::DiscoverRequest(_) | ClientRequest::SubscriptionsListenRequest(_) => {
                open_requests.add_sdk_request(&sent.id);
                None
            }
            _ => {
                let token = sent.request.get_meta().get_progress_token();
                Some(open_requests.begin(&sent.id, token, sdk_needs_result(sent.request.method())))
            }
        }
    }

    /// Records the id of an event on the stream of a request. A stream that resumes from this event belongs to the same
    /// request.
    pub(super) fn record_event_id(&self, origin: &RequestId, event: &str) {
        self.open_requests().record_event_id(origin, event);
    }

    /// Returns the id of the request whose stream is resumed from this event, if there is one.
    pub(super) fn find_by_event(&self, event: &str) -> Option<RequestId> {
        self.open_requests().find_by_event(event)
    }

    /// Takes the receiver of a request's progress.
    pub(crate) fn take_progress(&self, id: &RequestId) -> Option<mpsc::Receiver<ProgressMessage>> {
        self.open_requests().take_progress(id)
    }

    /// Takes the result of an answered request.
    pub(crate) fn take_result(&self, id: &RequestId) -> Option<Value> {
        self.open_requests().take_result(id)
    }

    /// Forgets a request. Anything that arrives for it later is ignored.
    pub(crate) fn forget_request(&self, id: &RequestId) {
        self.open_requests().remove(id);
    }

    /// Returns the ids of the requests that have no answer yet.
    pub(crate) fn unanswered(&self) -> Vec<RequestId> {
        self.open_requests().unanswered()
    }

    /// Waits until a message may be inspected. If it is a request from the server, returns the permit that its answer
    /// needs. Over HTTP one request can wait on each stream, so waiting requests are charged to the budget.
    pub(super) async fn admit(
        &self,
        message: &Value,
    ) -> Result<Option<AnswerPermit>, LimitsExceeded> {
        if !is_request(message) {
            return Ok(None);
        }
        if let Some(permit) = self.requests.try_permit() {
            return Ok(Some(permit));
        }
        let admitted = match self.budget.charge(message) {
            Some(_charge) => self.requests.permit().await,
            None => Err(LimitViolation::requests_too_large()),
        };
        admitted.map(Some).map_err(|violation| {
            self.disconnect(violation);
            LimitsExceeded
        })
    }

    /// Inspects a message from the server. `origin` is the call that the message belongs to, if the transport reports
    /// it. `permit` is what [`Self::admit`] returned for the message.
    pub(crate) fn inspect(
        &self,
        mut message: Value,
        origin: Option<&RequestId>,
        permit: Option<AnswerPermit>,
    ) -> Disposition {
        *self.last_message_at.lock() = Instant::now();
        let Some(fields) = message.as_object_mut() else {
            self.count_invalid();
            return Disposition::Consumed;
        };
        if let Some(method) = fields.get("method").and_then(Value::as_str) {
            if let Some(permit) = permit {
                let id = fields.get("id").and_then(request_id).filter(is_short_id);
                let request =
                    RawRequest { method: method.to_owned(), params: fields.remove("params") };
                self.accept_request(id.map(|id| (id, request)), origin, permit);
                return Disposition::Consumed;
            }
            let method = method.to_owned();
            return self.handle_notification(&method, message, origin);
        }
        let Some(id) = fields.get("id").and_then(request_id) else {
            // An error without an id may be the answer to a request of the SDK itself, such as a handshake.
            if fields.contains_key("error") && self.open_requests().has_sdk_request() {
                return Disposition::ForSdk(message);
            }
            self.count_invalid();
            return Disposition::Consumed;
        };
        match self.open_requests().record_answer(&id, fields) {
            // An unexpected answer is not passed on, because during a handshake the SDK would treat it as a rejection.
            AnswerDestination::Unexpected => {
                self.count_invalid();
                Disposition::Consumed
            }
            AnswerDestination::ForSdk => Disposition::ForSdk(message),
            AnswerDestination::Stored => Disposition::Answered(id),
        }
    }

    fn accept_request(
        &self,
        request: Option<(RequestId, RawRequest)>,
        origin: Option<&RequestId>,
        permit: AnswerPermit,
    ) {
        let Some(request) = request else { return self.count_invalid() };
        if let Err(violation) = self.requests.accept(request, origin, permit, &self.budget) {
            self.disconnect(violation);
        }
    }

    fn handle_notification(
        &self,
        method: &str,
        mut message: Value,
        origin: Option<&RequestId>,
    ) -> Disposition {
        let params = message.get_mut("params").map(Value::take).unwrap_or_default();
        match method {
            "notifications/progress" => self.forward_progress(params),
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed" => self.mark_lists_changed(),
            // The call that the message belongs to must be looked up now, because the next message may be the answer
            // that ends the call.
            "notifications/message" => self.forward_log(params, origin),
            "notifications/resources/updated" => {
                let uri = params.get("uri").and_then(Value::as_str);
                if let Some(uri) = uri.filter(|uri| uri.len() <= URI_BYTES) {
                    // If the queue is full, the update is dropped.
                    let _ = self.resource_updates.try_send(uri.to_owned());
                }
            }
            "notifications/cancelled" => {
                let id = params.get("requestId").and_then(request_id).filter(is_short_id);
                let Some(id) = id else { return Disposition::Consumed };
                self.requests.cancel(&id);
                // In the newer protocol a server ends a subscription this way.
                if self.open_requests().is_sdk_request(&id) {
                    let params = json!({"requestId": id});
                    return Disposition::ForSdk(
                        json!({"jsonrpc": "2.0", "method": method, "params": params}),
                    );
                }
            }
            "notifications/subscriptions/acknowledged"
                if memory_of(&params) <= ACKNOWLEDGEMENT_BYTES =>
            {
                message["params"] = params;
                return Disposition::ForSdk(message);
            }
            // All other notifications are ignored.
            _ => {}
        }
        Disposition::Consumed
    }

    fn forward_progress(&self, params: Value) {
        let token = params.get("progressToken").and_then(request_id).map(ProgressToken);
        // If the queue is full, the client is too slow, and the progress is dropped, because it is optional.
        if let Some(token) = token
            && let Some(queue) = self.open_requests().progress_queue(&token)
            && let Some(charge) = self.budget.charge(&params)
        {
            let _ = queue.try_send((params, charge));
        }
    }

    fn forward_log(&self, params: Value, origin: Option<&RequestId>) {
        // If the queue is full, the client is too slow, and the log line is dropped, because it is optional.
        if let Ok(client) = self.active_calls.try_find(origin)
            && let Some(charge) = self.budget.charge(&params)
            && let Ok(line) = serde_json::from_value(params)
        {
            let _ = client.messages.try_send(ServerMessage::Log(line, charge));
        }
    }

    /// Charges the memory of a message to the budget. Returns `None` if not enough is left.
    pub(super) fn charge(&self, message: &Value) -> Option<MessageCharge> {
        self.budget.charge(message)
    }

    /// Records that a question was answered.
    pub(super) fn question_answered(&self, id: &RequestId) {
        self.requests.answered(id);
    }

    /// Causes a refresh of the lists, because they changed or may have changed without notice.
    pub(crate) fn mark_lists_changed(&self) {
        self.lists_changed.notify_one();
    }

    /// Waits until the lists have changed since the last call of this method.
    pub(crate) async fn lists_changed(&self) {
        self.lists_changed.notified().await;
    }

    /// Records text from the server that is not JSON. Only the first such text is kept.
    pub(super) fn record_stray_text(&self, text: &[u8]) {
        self.count_invalid();
        self.stray_text.get_or_init(|| {
            // A character takes at most four bytes. The rest of a long text is not read.
            let start = &text[..text.len().min(4 * STRAY_TEXT_CHARS)];
            let line = one_line(&String::from_utf8_lossy(start));
            self.mask(&shorten(&line, STRAY_TEXT_CHARS))
        });
    }

    /// Returns the beginning of the first text from the server that is not JSON, with secrets masked.
    pub(crate) fn stray_text(&self) -> Option<&str> {
        self.stray_text.get().map(String::as_str).filter(|text| !text.trim().is_empty())
    }

    pub(crate) fn count_invalid(&self) {
        let before = self.invalid_messages.fetch_add(1, Ordering::Relaxed);
        if before == 0 {
            tracing::debug!("the server writes invalid messages; they are skipped");
        }
    }

    /// Logs that a message was skipped because it exceeded a limit. `limit` is in bytes.
    pub(super) fn warn_skipped(&self, limit: usize, problem: &'static str) {
        if let Some(left_out) = self.log.admit() {
            let left_out = (left_out > 0).then_some(left_out);
            tracing::warn!(limit, left_out, "{problem}; it is skipped");
        }
    }

    /// Marks the connection as closed. If this is called several times, the first reason is kept.
    pub(crate) fn close(&self, reason: Option<String>) {
        if let Some(reason) = reason {
            let reason = self.mask(&reason);
            self.close_reason.lock().get_or_insert(reason);
        }
        self.closed.cancel();
    }

    /// Ends the connection to a server that exceeded its limits.
    fn disconnect(&self, LimitViolation(reason): LimitViolation) {
        self.violation.lock().get_or_insert_with(|| reason.clone());
        self.close(Some(reason));
    }

    /// Returns which limit the server exceeded, if the gateway disconnected it.
    pub(super) fn violation(&self) -> Option<String> {
        self.violation.lock().clone()
    }

    /// Waits until the connection is over.
    pub(crate) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Masks the server's secrets in a text.
    pub(super) fn mask(&self, text: &str) -> String {
        self.secrets.mask(text)
    }

    /// Returns the time since the last message from the server.
    pub(super) fn silent_for(&self) -> Duration {
        self.last_message_at.lock().elapsed()
    }

    /// Returns why the connection is over, if known.
    pub(crate) fn close_reason(&self) -> Option<String> {
        self.close_reason.lock().clone()
    }
}

/// Whether an id is short enough to be stored.
fn is_short_id(id: &RequestId) -> bool {
    match id {
        RequestId::Number(_) => true,
        RequestId::String(text) => text.len() <= ID_BYTES,
    }
}
