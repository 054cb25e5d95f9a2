//! The servers that several gateways share.
//!
//! A background gateway has clients in different folders and with different variables, so a config may mean different
//! servers for them. Each distinct set of resolved servers has its own [`crate::Gateway`]. All of these gateways take
//! their servers from one pool, which has one [`Upstream`] for each distinct resolved server.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::ClientEnvironment;
use crate::PoolClients;
use crate::config::{GatewayConfig, Server};
use crate::metrics::GatewayMetrics;
use crate::saved_lists::SavedLists;
use crate::upstream::{HostEnvironment, SharedState, Upstream, UpstreamContext};

/// Identifies a server in the pool by a hash of its resolved config.
pub(crate) type PoolKey = blake3::Hash;

/// The servers that several gateways share.
#[derive(Debug)]
pub struct ServerPool {
    pub(crate) shared: Arc<SharedState>,
    pub(crate) saved_lists: SavedLists,
    servers: Mutex<HashMap<PoolKey, PooledServer>>,
}

#[derive(Debug)]
struct PooledServer {
    upstream: Arc<Upstream>,
    /// The number of gateways that use the server.
    users: usize,
}

impl ServerPool {
    /// Creates an empty pool. The limits are those of `config`.
    pub fn new(
        config: &GatewayConfig,
        environment: HostEnvironment,
        clients: PoolClients,
    ) -> Arc<Self> {
        let metrics = Arc::new(GatewayMetrics::new(config.servers.keys().map(String::as_str)));
        let saved_lists = SavedLists::new(environment.state_folder.as_ref());
        let limits = config.gateway.limits.clone();
        Arc::new(Self {
            shared: Arc::new(SharedState::new(limits, environment, metrics, clients)),
            saved_lists,
            servers: Mutex::default(),
        })
    }

    /// Whether two clients with these environments can share all servers of a config.
    pub fn can_share(
        config: &GatewayConfig,
        one: &ClientEnvironment,
        other: &ClientEnvironment,
    ) -> bool {
        let key = |environment, name: &String, server| Self::key(environment, name, server);
        let mut servers = config.servers.iter();
        one == other
            || servers.all(|(name, server)| key(one, name, server) == key(other, name, server))
    }

    /// Returns the key of a server for clients with this environment.
    pub(crate) fn key(environment: &ClientEnvironment, name: &str, server: &Server) -> PoolKey {
        let mut hasher = blake3::Hasher::new();
        hasher.update(environment.process_hash(name, server).as_bytes());
        hasher.update(&[u8::from(server.enabled), u8::from(server.parallel)]);
        hasher.finalize()
    }

    /// Waits until all servers have ended, after the gateways of the pool were stopped. Waits at most `within`.
    pub async fn servers_ended(&self, within: Duration) {
        self.shared.server_tasks.close();
        let _ = tokio::time::timeout(within, self.shared.server_tasks.wait()).await;
    }

    /// Returns all servers.
    pub(crate) fn upstreams(&self) -> Vec<Arc<Upstream>> {
        self.servers.lock().values().map(|pooled| Arc::clone(&pooled.upstream)).collect()
    }

    /// Returns the server with this key for one more gateway, and starts its task if no gateway uses it yet. A new server
    /// takes over the subscriptions of `before`, the server that it replaces. If no lists are saved, it also shows the
    /// lists of `before` until it has answered.
    pub(crate) fn acquire(
        &self,
        key: PoolKey,
        name: &Arc<str>,
        server: &Server,
        environment: &Arc<ClientEnvironment>,
        before: Option<&Arc<Upstream>>,
    ) -> Arc<Upstream> {
        let mut servers = self.servers.lock();
        if let Some(pooled) = servers.get_mut(&key) {
            pooled.users += 1;
            pooled.upstream.adopt_config(server);
            return Arc::clone(&pooled.upstream);
        }
        let (lists, are_confirmed) = match self.saved_lists.load(name, server, environment) {
            Some((lists, are_confirmed)) => (Some(Arc::new(lists)), are_confirmed),
            None => (None, false),
        };
        // The new server gets the id of the old one, so that subscriptions stay valid. If another gateway uses the old one
        // too, it may replace it by a different server, and messages of the two must not be confused.
        let is_only_user = |before: &Arc<Upstream>| {
            let mut pooled = servers.values();
            pooled.any(|pooled| Arc::ptr_eq(&pooled.upstream, before) && pooled.users == 1)
        };
        let inherited_id = before.filter(|before| is_only_user(before)).map(|before| before.id);
        let context = UpstreamContext {
            id: inherited_id.unwrap_or_else(|| self.shared.unique_id()),
            owner: None,
            client_environment: Arc::clone(environment),
            lists: lists.or_else(|| before.and_then(|before| before.lists())),
            lists_confirmed: are_confirmed,
        };
        let shared = Arc::clone(&self.shared);
        let upstream = Upstream::new(Arc::clone(name), server.clone(), context, shared);
        if let Some(before) = before {
            upstream.adopt_subscriptions(before);
        }
        self.shared.server_tasks.spawn(Arc::clone(&upstream).run_with_restarts());
        servers.insert(key, PooledServer { upstream: Arc::clone(&upstream), users: 1 });
        upstream
    }

    /// Records that one gateway no longer uses a server. Stops the server if no gateway uses it. Returns whether it was
    /// stopped.
    pub(crate) fn release(&self, key: &PoolKey) -> bool {
        let mut servers = self.servers.lock();
        let Some(pooled) = servers.get_mut(key) else { return false };
        pooled.users -= 1;
        if pooled.users > 0 {
            return false;
        }
        pooled.upstream.stop();
        servers.remove(key);
        true
    }
}
