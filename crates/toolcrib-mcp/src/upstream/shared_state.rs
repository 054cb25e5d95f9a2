//! The state that all servers of a pool share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rmcp::model::LoggingLevel;
use tokio::sync::{Semaphore, watch};
use tokio_util::task::TaskTracker;

use super::{ConnectedClients, HostEnvironment, SubscriptionRegistry};
use crate::PoolClients;
use crate::config::GatewayLimits;
use crate::metrics::GatewayMetrics;

/// State that all servers share.
#[derive(Debug)]
pub(crate) struct SharedState {
    pub(crate) limits: GatewayLimits,
    /// Limits how many servers start at the same time.
    pub(crate) start_permits: Semaphore,
    /// Limits the concurrent calls to all servers together.
    pub(crate) call_permits: Arc<Semaphore>,
    /// Limits the unshared processes of all servers and clients together.
    pub(crate) unshared_permits: Arc<Semaphore>,
    /// The tasks of all servers. Each ends when its server has ended.
    pub(crate) server_tasks: TaskTracker,
    /// Counts changes of anything that clients can see. Every hub waits for the next change.
    pub(crate) view_changes: watch::Sender<u64>,
    pub(crate) environment: HostEnvironment,
    pub(crate) clients: Arc<ConnectedClients>,
    /// The most verbose log level that a client of the older protocol has set.
    pub(crate) log_level: Mutex<Option<LoggingLevel>>,
    pub(crate) metrics: Arc<GatewayMetrics>,
    /// Whether there may be several clients. If there is only one, it uses every process.
    pub(crate) has_many_clients: bool,
    /// Whether a server that fails is started again after a delay.
    pub(crate) restarts_servers: bool,
    pub(crate) subscriptions: SubscriptionRegistry,
    /// The id of the next client or server. The ids of clients distinguish their calls.
    pub(crate) next_id: AtomicU64,
}

impl SharedState {
    pub(crate) fn new(
        limits: GatewayLimits,
        environment: HostEnvironment,
        metrics: Arc<GatewayMetrics>,
        clients: PoolClients,
    ) -> Self {
        Self {
            start_permits: Semaphore::new(limits.starting),
            call_permits: Arc::new(Semaphore::new(limits.calls)),
            unshared_permits: Arc::new(Semaphore::new(limits.session_servers)),
            server_tasks: TaskTracker::new(),
            view_changes: watch::Sender::new(0),
            clients: Arc::default(),
            log_level: Mutex::default(),
            subscriptions: SubscriptionRegistry::default(),
            next_id: AtomicU64::new(0),
            limits,
            environment,
            metrics,
            has_many_clients: clients == PoolClients::Many,
            restarts_servers: clients != PoolClients::None,
        }
    }

    /// Returns an id that no other client or server has.
    pub(crate) fn unique_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Tells the hubs that something that clients can see has changed.
    pub(crate) fn notify_view_changed(&self) {
        self.view_changes.send_modify(|count| *count = count.wrapping_add(1));
    }
}
