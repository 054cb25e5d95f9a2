//! Takes all servers from the pool, and combines them into one snapshot.
//!
//! Nothing here waits for a server. When a server answers, changes or disconnects, a new snapshot replaces the current
//! one. Readers keep the snapshot that they took.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use rmcp::model::LoggingLevel;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolcrib_core::TokenCounter;

use crate::ClientEnvironment;
use crate::config::{GatewayConfig, StartPolicy};
use crate::metrics::GatewayMetrics;
use crate::server_pool::{PoolKey, ServerPool};
use crate::snapshot::{SessionKind, Snapshot, SnapshotServer, disclosure_warnings};
use crate::unshared_servers::{IdentifiedClient, TooManyUnsharedServers, UnsharedServers};
use crate::upstream::{
    ConnectedClients, ResourceKey, ServerLists, SharedState, SubscriptionRegistry, Upstream,
    severity, sleep_until,
};

/// How long changes are collected before a new snapshot is built.
const DEBOUNCE: Duration = Duration::from_millis(20);

/// The servers by name, with their keys in the pool.
type Upstreams = BTreeMap<Arc<str>, (PoolKey, Arc<Upstream>)>;

type ClientSnapshots = BTreeMap<u64, Arc<Snapshot>>;

/// All servers, and the current snapshot of them.
pub(crate) struct Hub {
    pool: Arc<ServerPool>,
    /// The environment in which the references of the config are resolved.
    environment: Arc<ClientEnvironment>,
    upstreams: Mutex<Upstreams>,
    unshared_servers: UnsharedServers,
    config: Mutex<Arc<GatewayConfig>>,
    snapshot: watch::Sender<Arc<Snapshot>>,
    /// The snapshots of clients whose own processes have lists that differ from the common ones, by the ids of the clients.
    client_snapshots: Mutex<ClientSnapshots>,
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
    /// Takes every server of a config from a pool, for clients with this environment.
    pub(crate) fn start(
        config: GatewayConfig,
        pool: Arc<ServerPool>,
        environment: ClientEnvironment,
        counter: Arc<dyn TokenCounter>,
    ) -> Arc<Self> {
        Self::log_disclosure_warnings(&config);
        let config = Arc::new(config);
        let empty = Snapshot::build(None, &config, Vec::new(), &counter);
        let view_changes = pool.shared.view_changes.subscribe();
        let hub = Arc::new(Self {
            pool,
            environment: Arc::new(environment),
            upstreams: Mutex::default(),
            unshared_servers: UnsharedServers::default(),
            config: Mutex::new(Arc::clone(&config)),
            snapshot: watch::Sender::new(Arc::new(empty)),
            client_snapshots: Mutex::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
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
        hub.tasks.spawn(Arc::clone(&hub).rebuild_on_change(view_changes));
        hub
    }

    fn lock_upstreams(&self) -> MutexGuard<'_, Upstreams> {
        self.upstreams.lock()
    }

    fn shared(&self) -> &Arc<SharedState> {
        &self.pool.shared
    }

    /// Returns a server by its name in the config.
    pub(crate) fn upstream(&self, name: &str) -> Option<Arc<Upstream>> {
        self.lock_upstreams().get(name).map(|(_, upstream)| Arc::clone(upstream))
    }

    /// Returns all servers, sorted by name. Unshared processes are not included.
    pub(crate) fn upstreams(&self) -> Vec<Arc<Upstream>> {
        self.lock_upstreams().values().map(|(_, upstream)| Arc::clone(upstream)).collect()
    }

    /// Returns all servers, and all unshared processes.
    pub(crate) fn all_upstreams(&self) -> Vec<Arc<Upstream>> {
        self.upstreams().into_iter().chain(self.unshared_servers.all()).collect()
    }

    /// Returns the server that a client uses: the one that clients share, or the client's own. `client` is `None` if it
    /// cannot be told apart from other clients.
    pub(crate) fn upstream_for(
        &self,
        name: &str,
        client: Option<IdentifiedClient>,
    ) -> Option<Result<Arc<Upstream>, TooManyUnsharedServers>> {
        let common = self.upstream(name)?;
        let owner = client.filter(|client| common.client_needs_own_process(client.has_roots));
        Some(match owner {
            Some(owner) => self.unshared_servers.get_or_start(owner.id, &common, self.shared()),
            None => Ok(common),
        })
    }

    /// Returns the server that a resource belongs to.
    pub(crate) fn upstream_of(&self, resource: &ResourceKey) -> Option<Arc<Upstream>> {
        let is_owner = |upstream: &Arc<Upstream>| upstream.id == resource.upstream;
        let common = self.upstream(&resource.server).filter(is_owner);
        common.or_else(|| self.unshared_servers.all().into_iter().find(is_owner))
    }

    /// Returns the unshared processes.
    pub(crate) fn unshared_servers(&self) -> &UnsharedServers {
        &self.unshared_servers
    }

    /// Returns the resources that clients subscribe to.
    pub(crate) fn subscriptions(&self) -> &SubscriptionRegistry {
        &self.shared().subscriptions
    }

    /// Returns an id for a new client.
    pub(crate) fn unique_id(&self) -> u64 {
        self.shared().unique_id()
    }

    /// Starts this client's own processes of the eager servers that it does not share.
    pub(crate) fn start_unshared_servers(
        &self,
        client: IdentifiedClient,
        can_see: impl Fn(&str) -> bool,
    ) {
        for common in self.upstreams() {
            let is_eager = common.config().run_policy(&common.name).start == StartPolicy::Eager;
            let is_separate = common.client_needs_own_process(client.has_roots);
            if is_eager && is_separate && can_see(&common.name) {
                // If too many run, the client's first call gets the error.
                let _ = self.unshared_servers.get_or_start(client.id, &common, self.shared());
            }
        }
    }

    /// Returns what clients can see now.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.borrow())
    }

    /// Returns what a client can see now. `client` is `None` if it cannot be told apart from other clients.
    pub(crate) fn snapshot_for(&self, client: Option<u64>) -> Arc<Snapshot> {
        let own = client.and_then(|client| self.client_snapshots.lock().get(&client).cloned());
        own.unwrap_or_else(|| self.snapshot())
    }

    /// Ends the own processes of a client that has disconnected.
    pub(crate) fn end_client(&self, client: u64) {
        self.unshared_servers.end_client(client);
        self.client_snapshots.lock().remove(&client);
    }

    /// Subscribes to new snapshots, also to those of single clients.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshot.subscribe()
    }

    /// Requests log messages of this level and above from all servers, unless a client has already requested a more
    /// verbose level.
    pub(crate) fn request_log_level(&self, level: LoggingLevel) {
        let is_new = {
            let mut current = self.shared().log_level.lock();
            let is_new = !current.is_some_and(|current| severity(current) <= severity(level));
            if is_new {
                *current = Some(level);
            }
            is_new
        };
        // Another gateway of the pool may have changed the level when the unshared processes of this one were running.
        let shared = if is_new { self.pool.upstreams() } else { Vec::new() };
        for upstream in shared.into_iter().chain(self.unshared_servers.all()) {
            tokio::spawn(async move { upstream.send_log_level().await });
        }
    }

    /// Returns the connected clients, for questions that belong to no call.
    pub(crate) fn connected_clients(&self) -> &Arc<ConnectedClients> {
        &self.shared().clients
    }

    pub(crate) fn metrics(&self) -> &Arc<GatewayMetrics> {
        &self.shared().metrics
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
        self.shared().notify_view_changed();
    }

    fn apply(&self, config: Arc<GatewayConfig>) {
        self.metrics().set_servers(config.servers.keys().map(String::as_str));
        let mut before = self.lock_upstreams().clone();
        let mut upstreams = Upstreams::new();
        let mut replaced = Vec::<(PoolKey, Arc<Upstream>)>::new();
        for (name, server) in &config.servers {
            let name: Arc<str> = Arc::from(&**name);
            let key = ServerPool::key(&self.environment, &name, server);
            let kept = before.remove(&name).filter(|(before_key, upstream)| {
                let is_kept = *before_key == key;
                if is_kept {
                    upstream.adopt_config(server);
                } else {
                    replaced.push((*before_key, Arc::clone(upstream)));
                }
                is_kept
            });
            let entry = kept.unwrap_or_else(|| {
                let before = replaced.last().map(|(_, upstream)| upstream);
                let before = before.filter(|upstream| upstream.name == name);
                (key, self.pool.acquire(key, &name, server, &self.environment, before))
            });
            upstreams.insert(name, entry);
        }
        *self.lock_upstreams() = upstreams;
        for (key, _) in replaced.into_iter().chain(before.into_values()) {
            self.pool.release(&key);
        }
        self.unshared_servers.apply(&config, &self.environment);
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

    async fn rebuild_on_change(self: Arc<Self>, mut view_changes: watch::Receiver<u64>) {
        loop {
            let next_write = self
                .upstreams()
                .iter()
                .filter_map(|upstream| upstream.write_throttle.next_write())
                .min();
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                changed = view_changes.changed() => if changed.is_err() { return },
                () = sleep_until(next_write) => {}
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
        for own in self.unshared_servers.all() {
            if let Some(common) = self.upstream(&own.name) {
                common.learn_from(&own);
            }
        }
        for upstream in self.upstreams() {
            upstream.save_asked_questions();
        }
        let servers: Vec<SnapshotServer> = self
            .upstreams()
            .iter()
            .filter_map(|upstream| {
                // Another gateway of the pool may have given the server a newer config, so this one's own is used.
                let server = config.servers.get(&*upstream.name).filter(|server| server.enabled)?;
                let (lists, status) = (upstream.lists(), upstream.status());
                Some(SnapshotServer::new(&upstream.name, Arc::new(server.clone()), lists, &status))
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
            if self.rebuild_client_snapshots(&config, &servers) {
                self.snapshot.send_modify(|_| {});
            }
            return;
        }
        let snapshot = Snapshot::build(Some(&before), &config, servers.clone(), &self.counter);
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
        if self.rebuild_client_snapshots(&config, &servers) {
            self.snapshot.send_modify(|_| {});
        }
    }

    /// Builds the snapshots of clients whose own processes have lists that differ from those of `common`, the servers that all
    /// clients see. Such lists belong to the client alone: they may depend on its roots or on what it has done. Returns whether
    /// anything changed.
    fn rebuild_client_snapshots(
        &self,
        config: &Arc<GatewayConfig>,
        common: &[SnapshotServer],
    ) -> bool {
        let mut own_lists = BTreeMap::<u64, Vec<SnapshotServer>>::new();
        for own in self.unshared_servers.all() {
            let Some(client) = own.owner() else { continue };
            let Some(at) = common.iter().position(|server| server.name == own.name) else {
                continue;
            };
            let is_common = |lists: &Arc<ServerLists>| {
                common[at].lists.as_ref().is_some_and(|common| common.is_seen_as(lists))
            };
            let lists = own.lists().filter(|lists| !is_common(lists));
            if let Some(lists) = lists {
                let servers = own_lists.entry(client).or_insert_with(|| common.to_vec());
                servers[at].lists = Some(lists);
            }
        }
        let before = self.client_snapshots.lock().clone();
        let mut is_changed = before.keys().any(|client| !own_lists.contains_key(client));
        let mut now = ClientSnapshots::new();
        for (client, servers) in own_lists {
            let known = before.get(&client).filter(|known| known.is_built_from(config, &servers));
            let snapshot = known.cloned().unwrap_or_else(|| {
                is_changed = true;
                let base = before.get(&client).cloned().unwrap_or_else(|| self.snapshot());
                let snapshot = Snapshot::build(Some(&base), config, servers, &self.counter);
                snapshot.crib.prepare();
                Arc::new(snapshot)
            });
            now.insert(client, snapshot);
        }
        *self.client_snapshots.lock() = now;
        is_changed
    }

    /// Saves the lists of a server. Returns the number of bytes written.
    fn save_lists(&self, upstream: &Upstream) -> usize {
        let saved = &self.pool.saved_lists;
        let lists = upstream.lists();
        lists.map_or(0, |lists| {
            saved.save(&upstream.name, &upstream.config(), &self.environment, &lists)
        })
    }

    /// Stops all servers that no other gateway uses. This waits at most `within`, but the servers' wardens end the
    /// processes even after that.
    pub(crate) async fn stop(&self, within: Duration) {
        self.stop.cancel();
        let mut stopped = self.unshared_servers.all();
        self.unshared_servers.stop_all();
        let upstreams = std::mem::take(&mut *self.lock_upstreams());
        for (key, upstream) in upstreams.values() {
            if self.pool.release(key) {
                stopped.push(Arc::clone(upstream));
            }
        }
        self.tasks.close();
        let ended = async {
            self.tasks.wait().await;
            join_all(stopped.iter().map(|upstream| upstream.ended())).await;
        };
        let _ = tokio::time::timeout(within, ended).await;
        let unsaved = |upstream: &&Arc<Upstream>| upstream.write_throttle.begin_final_write();
        for upstream in upstreams.values().map(|(_, upstream)| upstream).filter(unsaved) {
            self.save_lists(upstream);
        }
    }
}
