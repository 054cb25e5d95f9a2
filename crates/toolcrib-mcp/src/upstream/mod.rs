//! One upstream server: its connection, its lists, and the requests to it.
//!
//! Each server has a task ([`restart`]) that waits until the server is needed ([`demand`]), connects, fetches the
//! server's lists and waits until the connection ends, then connects again after a growing delay. Nothing else waits for
//! that task, because the lists and the status can be read at any time.

mod active_calls;
mod answering_transport;
mod call_permit;
mod change_listener;
mod child_server;
mod client_service;
mod connect;
mod connected_clients;
mod connection;
mod connection_failure;
mod connection_handle;
mod debounce;
mod definitions;
mod demand;
mod entry_limits;
mod error_text;
mod event_splitter;
mod first_answer_deadlines;
mod health_check;
mod http;
mod http_client;
mod http_events;
mod http_response;
mod inbound_messages;
mod log_level;
mod message_budget;
mod monitor;
mod open_requests;
mod protocol_probe;
mod question_router;
mod remote_server;
mod resource_subscriptions;
mod restart;
mod restart_backoff;
mod roots_changed;
mod secrets;
mod server_lists;
mod server_requests;
mod server_task;
mod shared_state;
mod sse_http;
mod sse_transport;
mod status;
mod stdio;
mod subscription_registry;
mod tap;
mod upstream_error;
mod write_throttle;

pub(crate) use active_calls::{ActiveCall, CLIENT_QUEUE, CallingClient, RawRequest, ServerMessage};
pub(crate) use call_permit::{CallPermit, PermitError, QueueFull};
pub(crate) use client_service::{APPS_EXTENSION, own_implementation};
pub use connect::HostEnvironment;
pub(crate) use connected_clients::{ConnectedClient, ConnectedClients};
pub(crate) use connection_handle::{ConnectionHandle, PendingRequest, RequestEvent};
pub(crate) use definitions::Definitions;
pub(crate) use entry_limits::URI_BYTES;
use error_text::error_text;
pub(crate) use first_answer_deadlines::FirstAnswerDeadlines;
pub(crate) use log_level::severity;
pub(crate) use message_budget::{MessageCharge, memory_of};
pub(crate) use monitor::sleep_until;
pub(crate) use server_lists::{ServerLists, page_request};
pub(crate) use server_task::ServerTask;
pub(crate) use shared_state::SharedState;
pub(crate) use status::CONNECTING;
pub use status::{ProtocolEra, ServerPhase, ServerStatus};
pub(crate) use subscription_registry::{ResourceKey, SubscriptionRegistry};
pub(crate) use upstream_error::UpstreamError;
#[cfg(feature = "fuzzing")]
pub use {event_splitter::events_in, stdio::messages_in};

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::ClientEnvironment;
use crate::config::{GatewayLimits, ProcessSharing, Server, SharePolicy, UnattributedQuestions};
use crate::log_limit::LogLimit;
use crate::metrics::GatewayMetrics;
use active_calls::ActiveCalls;
use demand::{Demand, Need, UsageSummary};
use write_throttle::WriteThrottle;

#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: Arc<str>,
    /// Identifies the server among all servers with the same name. A server that replaces another one after a change of
    /// the config has the same id.
    pub(crate) id: u64,
    /// The client whose own process this is, or `None` if clients share the process.
    owner: Option<u64>,
    /// The environment in which the references of the config are resolved.
    client_environment: Arc<ClientEnvironment>,
    config: ArcSwap<Server>,
    pub(crate) active_calls: Arc<ActiveCalls>,
    status: watch::Sender<ServerStatus>,
    lists: ArcSwapOption<ServerLists>,
    /// Whether `lists` come from a server with this config, in this run or an earlier one.
    lists_confirmed: AtomicBool,
    /// Notified when the lists must be fetched again.
    lists_outdated: Notify,
    /// Whether the lists were fetched on the current connection.
    has_fetched_lists: AtomicBool,
    /// Whether the first lists of a client's own process differ from those that all clients see.
    started_with_other_lists: AtomicBool,
    /// The unattributed questions of the server so far.
    questions: Arc<Mutex<UnattributedQuestions>>,
    /// Decides when `lists` is written to the state folder.
    pub(crate) write_throttle: WriteThrottle,
    /// Limits the log lines about this server.
    log: Arc<LogLimit>,
    /// The resources that clients subscribe to, by the server's own URIs.
    watched_resources: Mutex<BTreeSet<String>>,
    /// The URIs of resources whose last subscribe or unsubscribe request was dropped before the server answered.
    unconfirmed_resources: Mutex<BTreeSet<String>>,
    /// Held while a subscription changes, so that only one changes at a time.
    subscription_lock: tokio::sync::Mutex<()>,
    /// Notified when the watched resources of a server of the newer protocol have changed.
    resources_changed: Notify,
    /// Held while the server is notified that roots changed.
    roots_sending: tokio::sync::Mutex<()>,
    /// Held while a second notification about roots waits for `roots_sending`.
    roots_waiting: tokio::sync::Mutex<()>,
    connection: ArcSwapOption<ConnectionHandle>,
    /// Limits the concurrent calls to this server.
    call_permits: Arc<Semaphore>,
    /// The number of `call_permits` when no call is in progress.
    max_concurrent_calls: usize,
    /// How many calls wait for this server.
    queued_calls: AtomicUsize,
    /// Whether the next connection tries the newer protocol first.
    tries_newer_protocol: AtomicBool,
    /// Whether the server has been started again at once, because it exited on the probe for the newer protocol.
    was_started_without_probe: AtomicBool,
    /// Whether the last connection used HTTP+SSE, so that the next one tries it first.
    uses_sse: AtomicBool,
    /// Notified when the connection should be checked.
    health_check: Notify,
    /// Whether a call timed out or found the connection broken since the last successful check.
    reported_broken: AtomicBool,
    first_answer_deadlines: FirstAnswerDeadlines,
    demand: Arc<Demand>,
    /// Notified when the user wants the server to be restarted.
    restart: Notify,
    /// The id of the server's process, or 0 if it has none.
    process_id: AtomicU32,
    stop: CancellationToken,
    /// Cancelled when the server's task has ended.
    ended: CancellationToken,
    shared: Arc<SharedState>,
}

/// Who uses a server, and what is known about it before it starts.
#[derive(Debug)]
pub(crate) struct UpstreamContext {
    pub(crate) id: u64,
    pub(crate) owner: Option<u64>,
    pub(crate) client_environment: Arc<ClientEnvironment>,
    /// The lists that clients see until the server has answered.
    pub(crate) lists: Option<Arc<ServerLists>>,
    /// Whether `lists` come from a server with the same resolved config. If not, the server is started to fetch them.
    pub(crate) lists_confirmed: bool,
}

impl Upstream {
    /// Creates a server.
    pub(crate) fn new(
        name: Arc<str>,
        config: Server,
        context: UpstreamContext,
        shared: Arc<SharedState>,
    ) -> Arc<Self> {
        let UpstreamContext { id, owner, client_environment, lists, lists_confirmed } = context;
        let max_concurrent_calls = if config.parallel { shared.limits.server_calls } else { 1 };
        let questions = lists.as_ref().map_or(UnattributedQuestions::None, |lists| lists.questions);
        let upstream = Self {
            active_calls: Arc::default(),
            status: watch::Sender::new(ServerStatus::new(ServerPhase::Off)),
            questions: Arc::new(Mutex::new(questions)),
            lists: ArcSwapOption::from(lists),
            lists_confirmed: AtomicBool::new(lists_confirmed),
            lists_outdated: Notify::new(),
            has_fetched_lists: AtomicBool::new(false),
            started_with_other_lists: AtomicBool::new(false),
            write_throttle: WriteThrottle::default(),
            log: Arc::default(),
            watched_resources: Mutex::default(),
            unconfirmed_resources: Mutex::default(),
            subscription_lock: tokio::sync::Mutex::default(),
            resources_changed: Notify::new(),
            roots_sending: tokio::sync::Mutex::default(),
            roots_waiting: tokio::sync::Mutex::default(),
            connection: ArcSwapOption::empty(),
            call_permits: Arc::new(Semaphore::new(max_concurrent_calls)),
            max_concurrent_calls,
            queued_calls: AtomicUsize::new(0),
            tries_newer_protocol: AtomicBool::new(true),
            was_started_without_probe: AtomicBool::new(false),
            uses_sse: AtomicBool::new(false),
            health_check: Notify::new(),
            reported_broken: AtomicBool::new(false),
            first_answer_deadlines: FirstAnswerDeadlines::default(),
            demand: Arc::default(),
            restart: Notify::new(),
            process_id: AtomicU32::new(0),
            stop: CancellationToken::new(),
            ended: CancellationToken::new(),
            config: ArcSwap::from_pointee(config),
            name,
            id,
            owner,
            client_environment,
            shared,
        };
        let phase = match upstream.need() {
            _ if !upstream.config().enabled => ServerPhase::Off,
            Need::NotNeeded => ServerPhase::Idle,
            _ => ServerPhase::Connecting,
        };
        upstream.status.send_modify(|status| status.phase = phase);
        upstream.shared.metrics.set_state(&upstream.name, phase.into());
        Arc::new(upstream)
    }

    pub(crate) fn client_environment(&self) -> &Arc<ClientEnvironment> {
        &self.client_environment
    }

    /// Returns the client whose own process this is, or `None` if clients share the process.
    pub(crate) fn owner(&self) -> Option<u64> {
        self.owner
    }

    /// Returns how much the server is used.
    pub(crate) fn usage(&self) -> UsageSummary {
        self.demand.summary()
    }

    /// Returns the id of the server's process, if it has one.
    pub(crate) fn process_id(&self) -> Option<u32> {
        Some(self.process_id.load(Ordering::Relaxed)).filter(|id| *id != 0)
    }

    /// Decides which clients share a process of the server.
    pub(crate) fn share_policy(&self) -> SharePolicy {
        self.config().share_policy(&self.name, *self.questions.lock())
    }

    /// Whether a client uses its own process instead of this one.
    pub(crate) fn client_needs_own_process(&self, client_has_roots: bool) -> bool {
        if self.owner.is_some() || !self.shared.has_many_clients {
            return false;
        }
        self.share_policy().gives_own_process(client_has_roots) || self.knows_roots_of_a_client()
    }

    /// Whether the process belongs to one client, so that it may learn the roots of that client.
    pub(crate) fn has_only_one_client(&self) -> bool {
        self.owner.is_some() || !self.shared.has_many_clients
    }

    /// Whether every client uses its own process instead of this one, now and after the next start.
    pub(crate) fn every_client_needs_own_process(&self) -> bool {
        self.owner.is_none()
            && self.shared.has_many_clients
            && self.share_policy().sharing == ProcessSharing::NotShared
    }

    /// Whether the running process must not serve further clients, because it has learned the roots of one client.
    fn knows_roots_of_a_client(&self) -> bool {
        self.owner.is_none()
            && self.shared.has_many_clients
            && self.share_policy().sharing == ProcessSharing::ClientsWithoutRoots
            && self.connection().is_some_and(|connection| connection.knows_roots())
    }

    /// Adds to the lists, which are saved, what the server has asked its client. Its next run then knows it from the
    /// start.
    pub(crate) fn save_asked_questions(&self) {
        let questions = *self.questions.lock();
        if let Some(lists) = self.lists().filter(|lists| lists.questions < questions) {
            self.replace_lists(ServerLists { questions, ..(*lists).clone() });
        }
    }

    /// Takes over what a client's own process of the same server has shown about the server itself: what it asks, and that
    /// its lists have changed since they were fetched for all clients. The lists themselves are not taken over, because
    /// they may depend on what the client has done.
    pub(crate) fn learn_from(&self, own: &Self) {
        let questions = *own.questions.lock();
        {
            let mut known = self.questions.lock();
            *known = questions.max(*known);
        }
        if own.started_with_other_lists.swap(false, Ordering::Relaxed) {
            if self.connection().is_some() {
                self.lists_outdated.notify_one();
            } else {
                self.lists_confirmed.store(false, Ordering::Relaxed);
                self.demand.notify();
            }
        }
    }

    fn replace_lists(&self, lists: ServerLists) {
        self.lists.store(Some(Arc::new(lists)));
        self.write_throttle.mark_changed();
        self.shared.notify_view_changed();
    }

    pub(crate) fn config(&self) -> Arc<Server> {
        self.config.load_full()
    }

    /// Replaces the config with one that needs no new connection.
    pub(crate) fn adopt_config(&self, config: &Server) {
        if *self.config() != *config {
            self.config.store(Arc::new(config.clone()));
            // `start` or `idle` may have changed.
            self.demand.notify();
        }
    }

    pub(crate) fn status(&self) -> ServerStatus {
        self.status.borrow().clone()
    }

    /// Subscribes to changes of the status.
    pub(crate) fn subscribe_status(&self) -> watch::Receiver<ServerStatus> {
        self.status.subscribe()
    }

    /// Returns the server's lists, from this run or an earlier one, or `None` if the server has never answered.
    pub(crate) fn lists(&self) -> Option<Arc<ServerLists>> {
        self.lists.load_full()
    }

    /// Logs a warning about this server, unless too many were logged recently.
    pub(crate) fn warn(&self, line: impl fmt::Display) {
        if let Some(left_out) = self.log.admit() {
            let left_out = (left_out > 0).then_some(left_out);
            tracing::warn!(server = %self.name, left_out, "{line}");
        }
    }

    /// Returns the connection, if there is one.
    pub(crate) fn connection(&self) -> Option<Arc<ConnectionHandle>> {
        self.connection.load_full()
    }

    /// Returns the limits on what the server sends.
    pub(crate) fn limits(&self) -> &GatewayLimits {
        &self.shared.limits
    }

    pub(crate) fn metrics(&self) -> &GatewayMetrics {
        &self.shared.metrics
    }

    /// Returns the deadlines of the requests that wait for the server's first answer.
    pub(crate) fn first_answer_deadlines(&self) -> &FirstAnswerDeadlines {
        &self.first_answer_deadlines
    }

    /// Stops the server permanently.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until the server's task has ended, after [`Self::stop`].
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Requests a check of the connection, after a call timed out or found it broken.
    pub(crate) fn request_health_check(&self) {
        self.reported_broken.store(true, Ordering::Relaxed);
        self.health_check.notify_one();
    }

    fn set_status(&self, change: impl FnOnce(&mut ServerStatus)) {
        self.status.send_modify(change);
        self.shared.metrics.set_state(&self.name, self.status().phase.into());
        self.shared.notify_view_changed();
    }
}
