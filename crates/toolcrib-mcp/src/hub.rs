//! All servers together: started side by side, and shown as one snapshot.
//!
//! Nothing here waits for a server. When one answers, changes or goes, a new snapshot takes the old one's
//! place; readers have the one they took.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::LoggingLevel;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolcrib_core::TokenCounter;

use crate::config::Config;
use crate::metrics::Metrics;
use crate::saved_lists::SavedLists;
use crate::snapshot::{SessionKind, Snapshot, SnapshotServer, disclosure_warnings};
use crate::upstream::{
    ConnectedClients, HostEnvironment, SharedState, Upstream, severity, sleep_until,
};

/// How long news are gathered before a new snapshot is made of them.
const DEBOUNCE: Duration = Duration::from_millis(20);
/// Changed resources that wait to be told.
const MAX_PENDING_UPDATES: usize = 1_024;

/// All servers.
pub(crate) struct Hub {
    upstreams: Mutex<BTreeMap<Arc<str>, Arc<Upstream>>>,
    config: Mutex<Arc<Config>>,
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
    /// Starts every server of a config. Changed resources come out of the receiver.
    pub(crate) fn start(
        config: Config,
        environment: HostEnvironment,
        counter: Arc<dyn TokenCounter>,
    ) -> (Arc<Self>, mpsc::Receiver<(Arc<str>, String)>) {
        Self::log_disclosure_warnings(&config);
        let config = Arc::new(config);
        let limits = config.gateway.limits.clone();
        let (updated, updates) = mpsc::channel(MAX_PENDING_UPDATES);
        let metrics = Arc::new(Metrics::new(config.servers.keys().map(String::as_str)));
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
        // A vocabulary takes its time to load; the first server that answers is not to wait for it.
        let counter = Arc::clone(&hub.counter);
        tokio::task::spawn_blocking(move || counter.count("a"));
        hub.rebuild_snapshot();
        let snapshot = hub.snapshot();
        tokio::task::spawn_blocking(move || snapshot.crib.prepare());
        hub.tasks.spawn(Arc::clone(&hub).rebuild_on_change());
        (hub, updates)
    }

    fn lock_upstreams(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<Upstream>>> {
        self.upstreams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One server.
    pub(crate) fn upstream(&self, name: &str) -> Option<Arc<Upstream>> {
        self.lock_upstreams().get(name).cloned()
    }

    /// All servers, in the order of their names.
    pub(crate) fn upstreams(&self) -> Vec<Arc<Upstream>> {
        self.lock_upstreams().values().cloned().collect()
    }

    /// Everything clients can see now.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.borrow())
    }

    /// News of what clients can see.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshot.subscribe()
    }

    /// Tells servers how much of their logs is wanted: never less than somebody asked for before.
    pub(crate) fn raise_log_level(&self, level: LoggingLevel) {
        {
            let mut wanted = self.shared.log_level.lock().unwrap_or_else(PoisonError::into_inner);
            if wanted.is_some_and(|wanted| severity(wanted) <= severity(level)) {
                return;
            }
            *wanted = Some(level);
        }
        for upstream in self.upstreams() {
            tokio::spawn(async move { upstream.send_log_level().await });
        }
    }

    /// The clients that are connected and may be asked.
    pub(crate) fn connected_clients(&self) -> &Arc<ConnectedClients> {
        &self.shared.clients
    }

    /// What is counted.
    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.metrics
    }

    /// The config that holds now.
    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Another config takes the place of this one. Servers that it does not change stay as they are.
    pub(crate) fn reload(&self, config: Config) {
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

    fn apply(&self, config: Arc<Config>) {
        self.shared.metrics.set_servers(config.servers.keys().map(String::as_str));
        let mut before = BTreeMap::new();
        let added: Vec<_> = {
            let mut upstreams = self.lock_upstreams();
            upstreams.retain(|name, upstream| {
                let server = config.servers.get(&**name);
                let stays = server.is_some_and(|server| upstream.adopt_config(server));
                if !stays {
                    upstream.stop();
                    before.insert(Arc::clone(name), Arc::clone(upstream));
                }
                stays
            });
            config.servers.iter().filter(|(name, _)| !upstreams.contains_key(&***name)).collect()
        };
        for (name, server) in added {
            let name: Arc<str> = Arc::from(&**name);
            // Until a server that was changed answers for itself, it has what it had.
            let before = before.get(&name);
            let known = self.saved_lists.load(&name, server).map(Arc::new);
            let known = known.or_else(|| before?.lists());
            let shared = Arc::clone(&self.shared);
            let upstream = Upstream::new(Arc::clone(&name), server.clone(), known, shared);
            if let Some(before) = before {
                upstream.adopt_subscriptions(before);
            }
            self.tasks.spawn(Arc::clone(&upstream).run_with_restarts());
            self.lock_upstreams().insert(name, upstream);
        }
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = config;
    }

    /// Logs the disclosures that the gateway replaces. Without servers it has nothing to show.
    fn log_disclosure_warnings(config: &Config) {
        if config.servers.is_empty() {
            return;
        }
        for notice in disclosure_warnings(&config.settings) {
            tracing::warn!("{notice}");
        }
    }

    async fn rebuild_on_change(self: Arc<Self>) {
        loop {
            let due = self
                .upstreams()
                .iter()
                .filter_map(|upstream| upstream.write_throttle.next_write())
                .min();
            tokio::select! {
                () = self.shared.view_changed.notified() => {}
                () = sleep_until(due) => {}
                () = self.stop.cancelled() => return,
            }
            tokio::time::sleep(DEBOUNCE).await;
            let hub = Arc::clone(&self);
            // Indexing thousands of tools is work, and no business of the threads that answer.
            let rebuild_snapshot = move || {
                hub.rebuild_snapshot();
                // Only the first search would wait for vectors that are not made yet.
                hub.snapshot().crib.prepare()
            };
            let _ = tokio::task::spawn_blocking(rebuild_snapshot).await;
        }
    }

    /// Makes a new snapshot where there is anything new.
    fn rebuild_snapshot(&self) {
        let config = self.config();
        let servers: Vec<SnapshotServer> = self
            .upstreams()
            .iter()
            .filter(|upstream| upstream.config().enabled)
            .map(|upstream| {
                let (known, status) = (upstream.lists(), upstream.status());
                SnapshotServer::new(&upstream.name, upstream.config(), known, &status)
            })
            .collect();
        // After the servers are collected and before clients see a snapshot of them: the next run then knows what a
        // client has seen, unless large lists change too fast to be written each time.
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
        // What clients will ask for first is ready when they do.
        for protocol in [SessionKind::Stateful, SessionKind::Stateless] {
            snapshot.view(None, protocol);
            for profile in config.profiles.keys() {
                snapshot.view(Some(profile), protocol);
            }
        }
        for (server, line) in snapshot.findings.lines() {
            if let Some(upstream) = self.upstream(server) {
                upstream.warn(line);
            }
        }
        self.snapshot.send_replace(Arc::new(snapshot));
    }

    /// Keeps what is known of a server. Returns the number of bytes written.
    fn save_lists(&self, upstream: &Upstream) -> usize {
        let known = upstream.lists();
        known.map_or(0, |known| self.saved_lists.save(&upstream.name, &upstream.config(), &known))
    }

    /// Ends all servers. Their processes end with their wardens, whether we wait or not.
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
