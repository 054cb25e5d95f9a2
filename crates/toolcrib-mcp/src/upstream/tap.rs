//! What a server says, looked at before the SDK reads it.
//!
//! The SDK's types know the fields of today and drop the rest; a gateway may not. So the result of
//! every request we send is taken here as it came, and the SDK only learns that there was one. Here
//! is also where the order of messages still stands: progress reaches its call before the answer
//! does, and ten thousand `list_changed` in a row become one mark. Questions keep their words too.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, GetMeta as _, JsonRpcMessage, ProgressToken, RequestId,
};
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::callers::{Callers, Said};
use super::secrets::Secrets;
use crate::request_id::request_id;

/// Progress messages that wait for one slow client; what comes beyond is dropped, as progress may.
const PROGRESS_QUEUE: usize = 1_024;

/// Requests of the SDK's own that may be open on one connection: a handshake and some subscriptions.
const SDKS: usize = 16;

/// Stands before the method of a question on its way through the SDK, which then has no type for it and
/// leaves it as it is.
pub(super) const UNTYPED: &str = "toolcrib/";

/// Everything that one connection's transport and its calls share.
#[derive(Debug)]
pub(crate) struct Tap {
    slots: Mutex<Slots>,
    callers: Arc<Callers>,
    /// Something of a server's lists changed, or may have.
    changed: Notify,
    /// Lines that were no message.
    noise: AtomicU64,
    /// Cancellations on their way to the server.
    pub(super) farewells: TaskTracker,
    /// The connection is over.
    closed: CancellationToken,
    /// Why, where the transport knows it.
    why: Mutex<Option<String>>,
    /// What the server was given and may not be repeated.
    secrets: Secrets,
    /// When it last said something.
    heard: Mutex<Instant>,
}

#[derive(Debug, Default)]
struct Slots {
    by_id: HashMap<RequestId, Slot>,
    by_token: HashMap<ProgressToken, RequestId>,
    /// Requests that were given up before they were sent.
    early: HashSet<RequestId>,
    /// How often the older era's handshake was begun.
    handshakes: u32,
    /// Requests of the SDK's own, whose results are its business: handshakes and subscriptions.
    sdks: VecDeque<RequestId>,
}

impl Slots {
    /// Whether an answer to this is waited for. The SDK's own are answered once.
    fn expects(&mut self, id: &RequestId) -> bool {
        let own = self.sdks.iter().position(|known| known == id);
        own.and_then(|at| self.sdks.remove(at)).is_some() || self.by_id.contains_key(id)
    }
}

#[derive(Debug)]
struct Slot {
    result: Option<Value>,
    /// Whether the request is on its way.
    sent: bool,
    /// Whether the SDK is to see the result too.
    shared: bool,
    token: Option<ProgressToken>,
    progress: mpsc::Sender<Value>,
    listener: Option<mpsc::Receiver<Value>>,
}

impl Default for Slot {
    fn default() -> Self {
        let (progress, listener) = mpsc::channel(PROGRESS_QUEUE);
        Self {
            result: None,
            sent: false,
            shared: false,
            token: None,
            progress,
            listener: Some(listener),
        }
    }
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

impl Tap {
    /// Of a server with these calls under way.
    pub(super) fn new(callers: Arc<Callers>, secrets: Secrets) -> Arc<Self> {
        Arc::new(Self {
            callers,
            secrets,
            heard: Mutex::new(Instant::now()),
            slots: Mutex::default(),
            changed: Notify::new(),
            noise: AtomicU64::new(0),
            farewells: TaskTracker::new(),
            closed: CancellationToken::new(),
            why: Mutex::default(),
        })
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes ready for the answer to a request that is about to be sent. `shares` says of which
    /// methods the SDK needs to see the results.
    pub(crate) fn sending(&self, message: &ClientJsonRpcMessage, shares: fn(&str) -> bool) {
        let JsonRpcMessage::Request(sent) = message else { return };
        if matches!(
            sent.request,
            ClientRequest::InitializeRequest(_)
                | ClientRequest::DiscoverRequest(_)
                | ClientRequest::SubscriptionsListenRequest(_)
        ) {
            let mut slots = self.slots();
            if matches!(sent.request, ClientRequest::InitializeRequest(_)) {
                // The probe was answered, or given up: an answer to it would now be taken for one to this.
                slots.sdks.clear();
                slots.handshakes += 1;
                // A second handshake on one connection: the server forgot the session, and may have changed.
                if slots.handshakes > 1 {
                    self.suspect_change();
                }
            }
            if slots.sdks.len() >= SDKS {
                slots.sdks.pop_front();
            }
            slots.sdks.push_back(sent.id.clone());
            return;
        }
        let token = sent.request.get_meta().get_progress_token();
        let mut slots = self.slots();
        // Given up before it was even sent: its answer is nobody's.
        if slots.early.remove(&sent.id) {
            return;
        }
        if let Some(token) = &token {
            slots.by_token.insert(token.clone(), sent.id.clone());
        }
        let slot = slots.by_id.entry(sent.id.clone()).or_default();
        slot.token = token;
        slot.sent = true;
        slot.shared = shares(sent.request.method());
    }

    /// The progress of a request, from its beginning.
    pub(crate) fn progress(&self, id: &RequestId) -> Option<mpsc::Receiver<Value>> {
        self.slots().by_id.entry(id.clone()).or_default().listener.take()
    }

    /// The result of a request that was answered.
    pub(crate) fn take(&self, id: &RequestId) -> Option<Value> {
        self.slots().by_id.get_mut(id)?.result.take()
    }

    /// Forgets a request; what comes for it later is nobody's.
    pub(crate) fn forget(&self, id: &RequestId) {
        let mut slots = self.slots();
        match slots.by_id.remove(id) {
            Some(Slot { token: Some(token), .. }) => {
                slots.by_token.remove(&token);
            }
            Some(Slot { sent: false, .. }) => {
                slots.early.insert(id.clone());
            }
            _ => {}
        }
    }

    /// The requests that wait for an answer.
    pub(crate) fn waiting(&self) -> Vec<RequestId> {
        let slots = self.slots();
        slots
            .by_id
            .iter()
            .filter(|(_, slot)| slot.result.is_none())
            .map(|(id, _)| id.clone())
            .collect()
    }

    /// Looks at a message from the server; `origin` is the call it came with, where the wire tells.
    pub(crate) fn see(&self, mut message: Value, origin: Option<&RequestId>) -> Seen {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let Some(fields) = message.as_object_mut() else {
            self.noise();
            return Seen::Done;
        };
        if let Some(method) = fields.get("method").and_then(Value::as_str) {
            match method {
                "notifications/progress" => {
                    if let Some(params) = fields.remove("params") {
                        self.progressed(params);
                    }
                    return Seen::Done;
                }
                "notifications/tools/list_changed"
                | "notifications/prompts/list_changed"
                | "notifications/resources/list_changed" => {
                    self.suspect_change();
                    return Seen::Done;
                }
                // Whose it is must be told now: behind it may stand the answer that ends the call.
                "notifications/message" => {
                    if let Some(params) = fields.remove("params") {
                        self.logged(params, origin);
                    }
                    return Seen::Done;
                }
                "elicitation/create" | "sampling/createMessage" | "roots/list" => {
                    let untyped = format!("{UNTYPED}{method}");
                    fields.insert("method".into(), untyped.into());
                    return Seen::Whole(message);
                }
                _ => return Seen::Whole(message),
            }
        }
        let Some(id) = fields.get("id").and_then(request_id) else { return Seen::Whole(message) };
        let mut slots = self.slots();
        // Answers to nobody's question: during a handshake the SDK would take one for a refusal.
        if !slots.expects(&id) {
            drop(slots);
            self.noise();
            return Seen::Done;
        }
        let Some(slot) = slots.by_id.get_mut(&id).filter(|_| fields.contains_key("result")) else {
            return Seen::Whole(message);
        };
        // An answer that says both is for the SDK to refuse.
        if fields.contains_key("error") {
            return Seen::Whole(message);
        }
        if slot.shared {
            slot.result = fields.get("result").cloned();
            return Seen::Whole(message);
        }
        slot.result = fields.remove("result");
        Seen::Answered(id)
    }

    fn progressed(&self, params: Value) {
        let token = params.get("progressToken").and_then(request_id).map(ProgressToken);
        let slots = self.slots();
        let slot = token.and_then(|token| slots.by_id.get(slots.by_token.get(&token)?));
        if let Some(slot) = slot {
            // Full: this client is too slow for this server, and progress is only a courtesy.
            let _ = slot.progress.try_send(params);
        }
    }

    fn logged(&self, params: Value, origin: Option<&RequestId>) {
        if let Ok(caller) = self.callers.look(origin)
            && let Ok(line) = serde_json::from_value(params)
        {
            // Full: this client is too slow for this server, and a log is only a courtesy.
            let _ = caller.questions.try_send(Said::Log(line));
        }
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

    /// The connection is over.
    pub(crate) fn close(&self, why: Option<String>) {
        if let Some(why) = why {
            let why = self.hide(&why);
            self.why.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        }
        self.closed.cancel();
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
