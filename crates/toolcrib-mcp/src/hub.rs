//! Starts all servers concurrently, and combines them into one snapshot.
//!
//! Nothing here waits for a server. When a server answers, changes or disconnects, a new snapshot replaces the current
//! one. Readers keep the snapshot that they took.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::LoggingLevel;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolcrib_core::TokenCounter;

use crate::config::GatewayConfig;
use crate::metrics::GatewayMetrics;
use crate::saved_lists::SavedLists;
use crate::snapshot::{SessionKind, Snapshot, SnapshotServer, disclosure_warnings};
use crate::upstream::{
    ConnectedClients, HostEnvironment, SharedState, Upstream, severity, sleep_until,
};

/// How long changes are collected before a new snapshot is built.
const DEBOUNCE: Duration = Duration::from_millis(20);
/// Maximum number of changed resources that wait to be reported to clients.
const MAX_PENDING_UPDATES: usize = 1_024;

/// All servers, and the current snapshot of them.
pub(crate) struct Hub {
    upstreams: Mutex<BTreeMap<Arc<str>, Arc<Upstream>>>,
    config: Mutex<Arc<GatewayConfig>>,
    snapshot: watch::Sender<Arc<Snapshot>>,
    shared: Arc<SharedState>,
    saved_lists: SavedLists,
    counter: Arc<dyn TokenCounter>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("snapshot", &*self.snapshot.borrow()).finish_non_exhaustive()
    }
}

impl Hub {
    /// Starts every server of a config. The returned receiver yields the resources that changed.
    pub(crate) fn start(
        config: GatewayConfig,
        environment: HostEnvironment,
        counter: Arc<dyn TokenCounter>,
    ) -> (Arc<Self>, mpsc::Receiver<(Arc<str>, String)>) {
        Self::log_disclosure_warnings(&config);
        let config = Arc::new(config);
        let limits = config.gateway.limits.clone();
        let (updated, updates) = mpsc::channel(MAX_PENDING_UPDATES);
        let metrics = Arc::new(GatewayMetrics::new(config.servers.keys().map(String::as_str)));
        let saved_lists = SavedLists::new(environment.state_folder.as_ref());
        let shared = Arc::new(SharedState {
            start_permits: Semaphore::new(limits.starting),
            call_permits: Arc::new(Semaphore::new(limits.calls)),
            view_changed: Notify::new(),
            clients: Arc::default(),
            log_level: Mutex::default(),
            limits,
            environment,
            metrics,
            resource_updates: updated,
        });
        let empty = Snapshot::build(None, &config, Vec::new(), &counter);
        let hub = Arc::new(Self {
            upstreams: Mutex::default(),
            config: Mutex::new(Arc::clone(&config)),
            snapshot: watch::Sender::new(Arc::new(empty)),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            shared,
            saved_lists,
            counter,
        });
        hub.apply(config);
        // Loads the tokenizer's vocabulary ahead of time, because that is slow and would delay the first server's
        // tools.
        let counter = Arc::clone(&hub.counter);
        tokio::task::spawn_blocking(move || counter.count("a"));
        hub.rebuild_snapshot();
        let snapshot = hub.snapshot();
        tokio::task::spawn_blocking(move || snapshot.crib.prepare());
        hub.tasks.spawn(Arc::clone(&hub).rebuild_on_change());
        (hub, updates)
    }

    fn lock_upstreams(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<Upstream>>> {
        self.upstreams.lock()
    }

    /// Returns a server by its name in the config.
    pub(crate) fn upstream(&self, name: &str) -> Option<Arc<Upstream>> {
        self.lock_upstreams().get(name).cloned()
    }

    /// Returns all servers, sorted by name.
    pub(crate) fn upstreams(&self) -> Vec<Arc<Upstream>> {
        self.lock_upstreams().values().cloned().collect()
    }

    /// Returns what clients can see now.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.borrow())
    }

    /// Subscribes to new snapshots.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshot.subscribe()
    }

    /// Requests log messages of this level and above from all servers, unless a client has already requested a more
    /// verbose level.
    pub(crate) fn request_log_level(&self, level: LoggingLevel) {
        {
            let mut current = self.shared.log_level.lock();
            if current.is_some_and(|current| severity(current) <= severity(level)) {
                return;
            }
            *current = Some(level);
        }
        for upstream in self.upstreams() {
            tokio::spawn(async move { upstream.send_log_level().await });
        }
    }

    /// Returns the connected clients, for questions that belong to no call.
    pub(crate) fn connected_clients(&self) -> &Arc<ConnectedClients> {
        &self.shared.clients
    }

    pub(crate) fn metrics(&self) -> &Arc<GatewayMetrics> {
        &self.shared.metrics
    }

    pub(crate) fn config(&self) -> Arc<GatewayConfig> {
        Arc::clone(&self.config.lock())
    }

    /// Replaces the config. Servers whose config stays the same keep running.
    pub(crate) fn reload(&self, config: GatewayConfig) {
        let before = self.config();
        if *before == config {
            return;
        }
        if (before.settings.disclosure, before.settings.fallback)
            != (config.settings.disclosure, config.settings.fallback)
        {
            Self::log_disclosure_warnings(&config);
        }
        self.apply(Arc::new(config));
        self.shared.view_changed.notify_one();
    }

    fn apply(&self, config: Arc<GatewayConfig>) {
        self.shared.metrics.set_servers(config.servers.keys().map(String::as_str));
        let mut replaced = BTreeMap::new();
        let added: Vec<_> = {
            let mut upstreams = self.lock_upstreams();
            upstreams.retain(|name, upstream| {
                let server = config.servers.get(&**name);
                let is_kept = server.is_some_and(|server| upstream.adopt_config(server));
                if !is_kept {
                    upstream.stop();
                    replaced.insert(Arc::clone(name), Arc::clone(upstream));
                }
                is_kept
            });
            config.servers.iter().filter(|(name, _)| !upstreams.contains_key(&***name)).collect()
        };
        for (name, server) in added {
            let name: Arc<str> = Arc::from(&**name);
            // Until a reconfigured server has answered, its saved or previous lists are used.
            let before = replaced.get(&name);
            let lists = self.saved_lists.load(&name, server).map(Arc::new);
            let shared = Arc::clone(&self.shared);
            let upstream = Upstream::new(Arc::clone(&name), server.clone(), lists, shared);
            if let Some(before) = before {
                upstream.adopt_lists(before);
                upstream.adopt_subscriptions(before);
            }
            self.tasks.spawn(Arc::clone(&upstream).run_with_restarts());
            self.lock_upstreams().insert(name, upstream);
        }
        *self.config.lock() = config;
    }

    /// Logs which configured disclosures the gateway replaces. Logs nothing if there are no servers, because
    /// disclosures do not matter then.
    fn log_disclosure_warnings(config: &GatewayConfig) {
        if config.servers.is_empty() {
            return;
        }
        for notice in disclosure_warnings(&config.settings) {
            tracing::warn!("{notice}");
        }
    }

    async fn rebuild_on_change(self: Arc<Self>) {
        loop {
            let next_write = self
                .upstreams()
                .iter()
                .filter_map(|upstream| upstream.write_throttle.next_write())
                .min();
            tokio::select! {
                () = self.shared.view_changed.notified() => {}
                () = sleep_until(next_write) => {}
                () = self.stop.cancelled() => return,
            }
            tokio::time::sleep(DEBOUNCE).await;
            let hub = Arc::clone(&self);
            // Indexing thousands of tools takes CPU time, so it must not run on the threads that answer requests.
            let rebuild_snapshot = move || {
                hub.rebuild_snapshot();
                // Prepares the vectors now. Otherwise the first search would wait until they are computed.
                hub.snapshot().crib.prepare()
            };
            let _ = tokio::task::spawn_blocking(rebuild_snapshot).await;
        }
    }

    /// Builds a new snapshot if anything changed.
    fn rebuild_snapshot(&self) {
        let config = self.config();
        let servers: Vec<SnapshotServer> = self
            .upstreams()
            .iter()
            .filter(|upstream| upstream.config().enabled)
            .map(|upstream| {
                let (lists, status) = (upstream.lists(), upstream.status());
                SnapshotServer::new(&upstream.name, upstream.config(), lists, &status)
            })
            .collect();
        // Lists are saved after `servers` is collected and before clients see the snapshot, so the saved lists are
        // never older than those that clients see. The exception is large lists that change too fast to be saved each
        // time.
        for upstream in self.upstreams() {
            if upstream.write_throttle.begin_write() {
                upstream.write_throttle.record_write(self.save_lists(&upstream));
            }
        }
        let before = self.snapshot();
        if before.is_built_from(&config, &servers) {
            return;
        }
        let snapshot = Snapshot::build(Some(&before), &config, servers, &self.counter);
        // Clients will request these views first, so they are computed ahead of time.
        for session_kind in [SessionKind::Stateful, SessionKind::Stateless] {
            snapshot.view(None, session_kind);
            for profile in config.profiles.keys() {
                snapshot.view(Some(profile), session_kind);
            }
        }
        for (server, line) in snapshot.warnings.lines() {
            if let Some(upstream) = self.upstream(server) {
                upstream.warn(line);
            }
        }
        self.snapshot.send_replace(Arc::new(snapshot));
    }

    /// Saves the lists of a server. Returns the number of bytes written.
    fn save_lists(&self, upstream: &Upstream) -> usize {
        let lists = upstream.lists();
        lists.map_or(0, |lists| self.saved_lists.save(&upstream.name, &upstream.config(), &lists))
    }

    /// Stops all servers. This waits at most `within`, but the servers' wardens end the processes even after that.
    pub(crate) async fn stop(&self, within: Duration) {
        self.stop.cancel();
        for upstream in self.upstreams() {
            upstream.stop();
        }
        self.tasks.close();
        let _ = tokio::time::timeout(within, self.tasks.wait()).await;
        for upstream in
            self.upstreams().iter().filter(|upstream| upstream.write_throttle.begin_final_write())
        {
            self.save_lists(upstream);
        }
    }
}
