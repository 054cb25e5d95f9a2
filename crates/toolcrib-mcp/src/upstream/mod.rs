//! One server: kept connected, listed, and asked.
//!
//! Each server has a task of its own that connects, lists what there is, and waits for the connection to
//! end; then it tries again, less and less often. Nobody waits for that task: what is known of the
//! server, and what became of it, are there to be read at any time.

mod answering;
mod budget;
mod callers;
mod client;
mod connect;
mod debounce;
mod definitions;
mod entry_limits;
mod failed;
mod first_waits;
mod http;
mod http_client;
mod known;
mod leave;
mod link;
mod listen;
mod log_level;
mod not_connected;
mod reason;
mod retry;
mod saving;
mod secrets;
mod server_requests;
mod sessions;
mod slots;
mod status;
mod stdio;
mod supervise;
mod tap;
mod wanted;

pub(crate) use budget::{Charge, memory_of};
pub(crate) use callers::{Asked, Caller, Listed, QUESTIONS, Said};
pub(crate) use client::ourselves;
pub use connect::Environment;
pub(crate) use definitions::Definitions;
pub(crate) use entry_limits::URI_BYTES;
pub(crate) use failed::Failed;
pub(crate) use first_waits::FirstWaits;
pub(crate) use known::{Known, page};
pub(crate) use leave::{Leave, QueueFull, Unavailable};
pub(crate) use link::{Link, Pending, Step};
pub(crate) use log_level::rank;
use reason::reason;
pub(crate) use sessions::{Present, Sessions};
pub(crate) use status::CONNECTING;
pub use status::{Era, Phase, Status};
#[cfg(feature = "fuzzing")]
pub use stdio::messages_in;
pub(crate) use supervise::sleep_until;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arc_swap::{ArcSwap, ArcSwapOption};
use rmcp::model::LoggingLevel;
use rmcp::service::ClientLifecycleMode;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::config::{Limits, Server};
use crate::log_limit::LogLimit;
use crate::metrics::Metrics;
use callers::Callers;
use saving::Saving;

/// What all servers share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    /// Servers that may start at the same time.
    pub(crate) starting: Semaphore,
    /// Calls that may be under way, of all servers together.
    pub(crate) calls: Arc<Semaphore>,
    /// Something that clients can see changed.
    pub(crate) news: Notify,
    pub(crate) environment: Environment,
    pub(crate) sessions: Arc<Sessions>,
    /// What clients of the older era want to see of logs: the most that any of them asked for.
    pub(crate) log_level: Mutex<Option<LoggingLevel>>,
    pub(crate) metrics: Arc<Metrics>,
    /// Resources that changed: the server and the uri.
    pub(crate) updated: mpsc::Sender<(Arc<str>, String)>,
}

/// One server.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: Arc<str>,
    config: ArcSwap<Server>,
    pub(crate) callers: Arc<Callers>,
    status: watch::Sender<Status>,
    known: ArcSwapOption<Known>,
    /// Tracks when `known` is written to the state folder.
    pub(crate) saving: Saving,
    /// Limits the log lines about it.
    log: Arc<LogLimit>,
    /// Resources that clients want to hear about, by their own addresses.
    watched: Mutex<BTreeSet<String>>,
    /// Those for which the server was asked to change the subscription, and nobody waited for its answer.
    unconfirmed: Mutex<BTreeSet<String>>,
    /// One change of those at a time.
    watching: tokio::sync::Mutex<()>,
    /// Those changed.
    rewatch: Notify,
    /// Held while the server is told that roots changed.
    roots_turn: tokio::sync::Mutex<()>,
    /// Held while another message about that waits for its turn.
    roots_waiting: tokio::sync::Mutex<()>,
    link: ArcSwapOption<Link>,
    /// Calls that may be under way.
    calls: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// How many that is.
    at_once: usize,
    /// Whether the next connection begins with the newer era.
    probe: AtomicBool,
    /// The connection is to be looked at.
    suspect: Notify,
    /// Because somebody found it broken, or waited in vain.
    doubted: AtomicBool,
    first_waits: FirstWaits,
    stop: CancellationToken,
    shared: Arc<Shared>,
}

impl Upstream {
    /// A server with what was known of it before.
    pub(crate) fn new(
        name: Arc<str>,
        config: Server,
        remembered: Option<Arc<Known>>,
        shared: Arc<Shared>,
    ) -> Arc<Self> {
        let at_once = if config.parallel { shared.limits.server_calls } else { 1 };
        let phase = if config.enabled { Phase::Connecting } else { Phase::Off };
        Arc::new(Self {
            callers: Arc::default(),
            status: watch::Sender::new(Status::new(phase)),
            known: ArcSwapOption::from(remembered),
            saving: Saving::default(),
            log: Arc::default(),
            watched: Mutex::default(),
            unconfirmed: Mutex::default(),
            watching: tokio::sync::Mutex::default(),
            rewatch: Notify::new(),
            roots_turn: tokio::sync::Mutex::default(),
            roots_waiting: tokio::sync::Mutex::default(),
            link: ArcSwapOption::empty(),
            calls: Arc::new(Semaphore::new(at_once)),
            at_once,
            probe: AtomicBool::new(true),
            waiting: AtomicUsize::new(0),
            suspect: Notify::new(),
            doubted: AtomicBool::new(false),
            first_waits: FirstWaits::default(),
            stop: CancellationToken::new(),
            config: ArcSwap::from_pointee(config),
            name,
            shared,
        })
    }

    /// What its config says now.
    pub(crate) fn config(&self) -> Arc<Server> {
        self.config.load_full()
    }

    /// Takes another config, if that needs no new connection.
    pub(crate) fn adopt(&self, config: &Server) -> bool {
        let now = self.config();
        let same = now.transport == config.transport
            && now.enabled == config.enabled
            && now.parallel == config.parallel;
        if same && *now != *config {
            self.config.store(Arc::new(config.clone()));
        }
        same
    }

    /// What became of it.
    pub(crate) fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// News of what became of it.
    pub(crate) fn watch(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    /// What is known of it, from now or from before.
    pub(crate) fn known(&self) -> Option<Arc<Known>> {
        self.known.load_full()
    }

    /// Logs a warning about this server, unless there were too many.
    pub(crate) fn warn(&self, line: impl fmt::Display) {
        if let Some(left_out) = self.log.admit() {
            let left_out = (left_out > 0).then_some(left_out);
            tracing::warn!(server = %self.name, left_out, "{line}");
        }
    }

    /// The connection, if there is one.
    pub(crate) fn link(&self) -> Option<Arc<Link>> {
        self.link.load_full()
    }

    /// The limits on what it sends.
    pub(crate) fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// What is counted.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// How the next connection begins.
    fn lifecycle(&self) -> ClientLifecycleMode {
        if self.probe.load(Ordering::Relaxed) {
            connect::probing()
        } else {
            ClientLifecycleMode::Initialize
        }
    }

    fn probe_next(&self, probe: bool) {
        self.probe.store(probe, Ordering::Relaxed);
    }

    /// Calls that may be under way at once.
    pub(crate) fn at_once(&self) -> usize {
        self.at_once
    }

    /// Whether no call is under way.
    fn is_idle(&self) -> bool {
        self.calls.available_permits() == self.at_once
    }

    /// How long requests wait for its first answer.
    pub(crate) fn first_waits(&self) -> &FirstWaits {
        &self.first_waits
    }

    /// Ends it for good.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Somebody found the connection broken, or waited in vain.
    pub(crate) fn suspect(&self) {
        self.doubted.store(true, Ordering::Relaxed);
        self.suspect.notify_one();
    }

    fn set(&self, change: impl FnOnce(&mut Status)) {
        self.status.send_modify(change);
        self.shared.metrics.set_state(&self.name, self.status().phase.into());
        self.shared.news.notify_one();
    }
}
