//! One upstream server: its connection, its lists, and the requests to it.
//!
//! Each server has a task ([`restart`]) that waits until the server is needed ([`demand`]), connects, fetches the
//! server's lists and waits until the connection ends, then connects again after a growing delay. Nothing else waits for that task, because the lists and the status can be
//! read at any time.

mod active_calls;
mod answering_transport;
mod call_permit;
mod change_listener;
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
mod first_answer_deadlines;
mod health_check;
mod http;
mod http_client;
mod http_events;
mod log_level;
mod message_budget;
mod monitor;
mod open_requests;
mod question_router;
mod resource_subscriptions;
mod restart;
mod restart_backoff;
mod roots_changed;
mod secrets;
mod server_lists;
mod server_requests;
mod status;
mod stdio;
mod tap;
mod upstream_error;
mod write_throttle;

pub(crate) use active_calls::{ActiveCall, CLIENT_QUEUE, CallingClient, RawRequest, ServerMessage};
pub(crate) use call_permit::{CallPermit, PermitError, QueueFull};
pub(crate) use client_service::own_implementation;
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
pub(crate) use status::CONNECTING;
pub use status::{ProtocolEra, ServerPhase, ServerStatus};
#[cfg(feature = "fuzzing")]
pub use stdio::messages_in;
pub(crate) use upstream_error::UpstreamError;

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use rmcp::model::LoggingLevel;
use rmcp::service::ClientLifecycleMode;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::config::{GatewayLimits, Server, StartPolicy};
use crate::log_limit::LogLimit;
use crate::metrics::GatewayMetrics;
use active_calls::ActiveCalls;
use demand::Demand;
use write_throttle::WriteThrottle;

/// State that all servers share.
#[derive(Debug)]
pub(crate) struct SharedState {
    pub(crate) limits: GatewayLimits,
    /// Limits how many servers start at the same time.
    pub(crate) start_permits: Semaphore,
    /// Limits the concurrent calls to all servers together.
    pub(crate) call_permits: Arc<Semaphore>,
    /// Notified when something that clients can see has changed.
    pub(crate) view_changed: Notify,
    pub(crate) environment: HostEnvironment,
    pub(crate) clients: Arc<ConnectedClients>,
    /// The most verbose log level that a client of the older protocol has set.
    pub(crate) log_level: Mutex<Option<LoggingLevel>>,
    pub(crate) metrics: Arc<GatewayMetrics>,
    /// Sends the server's name and the resource's URI for every updated resource.
    pub(crate) resource_updates: mpsc::Sender<(Arc<str>, String)>,
}

#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: Arc<str>,
    config: ArcSwap<Server>,
    pub(crate) active_calls: Arc<ActiveCalls>,
    status: watch::Sender<ServerStatus>,
    lists: ArcSwapOption<ServerLists>,
    /// Whether `lists` come from a server with this config, in this run or an earlier one.
    lists_confirmed: AtomicBool,
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
    /// Notified when the connection should be checked.
    health_check: Notify,
    /// Whether a call timed out or found the connection broken since the last successful check.
    reported_broken: AtomicBool,
    first_answer_deadlines: FirstAnswerDeadlines,
    demand: Arc<Demand>,
    stop: CancellationToken,
    shared: Arc<SharedState>,
}

impl Upstream {
    /// Creates a server. `saved_lists` are the lists of a server with the same config from an earlier run.
    pub(crate) fn new(
        name: Arc<str>,
        config: Server,
        saved_lists: Option<Arc<ServerLists>>,
        shared: Arc<SharedState>,
    ) -> Arc<Self> {
        let max_concurrent_calls = if config.parallel { shared.limits.server_calls } else { 1 };
        let lists_confirmed = saved_lists.is_some();
        let phase = match config.run_policy(&name).start {
            _ if !config.enabled => ServerPhase::Off,
            StartPolicy::Lazy if lists_confirmed => ServerPhase::Idle,
            _ => ServerPhase::Connecting,
        };
        Arc::new(Self {
            active_calls: Arc::default(),
            status: watch::Sender::new(ServerStatus::new(phase)),
            lists: ArcSwapOption::from(saved_lists),
            lists_confirmed: AtomicBool::new(lists_confirmed),
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
            health_check: Notify::new(),
            reported_broken: AtomicBool::new(false),
            first_answer_deadlines: FirstAnswerDeadlines::default(),
            demand: Arc::default(),
            stop: CancellationToken::new(),
            config: ArcSwap::from_pointee(config),
            name,
            shared,
        })
    }

    pub(crate) fn config(&self) -> Arc<Server> {
        self.config.load_full()
    }

    /// Replaces the config if this needs no new connection. Returns whether the config was replaced.
    pub(crate) fn adopt_config(&self, config: &Server) -> bool {
        let current = self.config();
        let same_connection = current.transport == config.transport
            && current.enabled == config.enabled
            && current.parallel == config.parallel;
        if same_connection && *current != *config {
            self.config.store(Arc::new(config.clone()));
            // `start` or `idle` may have changed.
            self.demand.notify();
        }
        same_connection
    }

    /// Uses the lists of `before`, the server that this server replaces, until this server has answered.
    pub(crate) fn adopt_lists(&self, before: &Self) {
        if self.lists().is_none() {
            self.lists.store(before.lists());
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

    /// Returns the mode that determines which protocol the next connection tries first.
    fn lifecycle(&self) -> ClientLifecycleMode {
        if self.tries_newer_protocol.load(Ordering::Relaxed) {
            connect::newer_then_older()
        } else {
            ClientLifecycleMode::Initialize
        }
    }

    fn set_tries_newer_protocol(&self, probe: bool) {
        self.tries_newer_protocol.store(probe, Ordering::Relaxed);
    }

    /// Returns the maximum number of concurrent calls to this server.
    pub(crate) fn max_concurrent_calls(&self) -> usize {
        self.max_concurrent_calls
    }

    /// Whether no call is in progress.
    fn is_idle(&self) -> bool {
        self.call_permits.available_permits() == self.max_concurrent_calls
    }

    /// Returns the deadlines of the requests that wait for the server's first answer.
    pub(crate) fn first_answer_deadlines(&self) -> &FirstAnswerDeadlines {
        &self.first_answer_deadlines
    }

    /// Stops the server permanently.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Requests a check of the connection, after a call timed out or found it broken.
    pub(crate) fn request_health_check(&self) {
        self.reported_broken.store(true, Ordering::Relaxed);
        self.health_check.notify_one();
    }

    fn set_status(&self, change: impl FnOnce(&mut ServerStatus)) {
        self.status.send_modify(change);
        self.shared.metrics.set_state(&self.name, self.status().phase.into());
        self.shared.view_changed.notify_one();
    }
}
