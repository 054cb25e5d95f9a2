//! The unshared processes of servers: each of them belongs to one client.
//!
//! Some servers cannot be shared, see [`crate::config::SharePolicy`]. Each client that uses such a server gets its own
//! process, which ends when the client disconnects.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

use crate::ClientEnvironment;
use crate::config::GatewayConfig;
use crate::server_pool::ServerPool;
use crate::upstream::{SharedState, Upstream, UpstreamContext};

/// A client whose requests can be told apart from those of other clients.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IdentifiedClient {
    /// The id of the client.
    pub(crate) id: u64,
    /// Whether the client supports roots.
    pub(crate) has_roots: bool,
}

/// An unshared process, and its part of the maximum.
#[derive(Debug)]
struct UnsharedServer {
    upstream: Arc<Upstream>,
    _permit: OwnedSemaphorePermit,
}

/// The servers of each client, by the id of the client and the name of the server.
type ServersByClient = BTreeMap<(u64, Arc<str>), UnsharedServer>;

/// The unshared processes.
#[derive(Debug, Default)]
pub(crate) struct UnsharedServers(Mutex<ServersByClient>);

/// The error that the maximum number of unshared processes is reached.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot start a process of `{server}` for this client: the maximum of {max} unshared processes is reached; disconnect a client, or raise `gateway.limits.session_servers`"
)]
pub(crate) struct TooManyUnsharedServers {
    server: Arc<str>,
    max: usize,
}

impl UnsharedServers {
    /// Returns a client's own process of a server, and starts its task if the client has none yet. `common` is the
    /// server whose lists all clients see.
    pub(crate) fn get_or_start(
        &self,
        client: u64,
        common: &Arc<Upstream>,
        shared: &Arc<SharedState>,
    ) -> Result<Arc<Upstream>, TooManyUnsharedServers> {
        let mut servers = self.0.lock();
        let key = (client, Arc::clone(&common.name));
        if let Some(own) = servers.get(&key) {
            return Ok(Arc::clone(&own.upstream));
        }
        let permit = Arc::clone(&shared.unshared_permits).try_acquire_owned();
        let permit = permit.map_err(|_| TooManyUnsharedServers {
            server: Arc::clone(&common.name),
            max: shared.limits.session_servers,
        })?;
        let context = UpstreamContext {
            id: shared.unique_id(),
            owner: Some(client),
            client_environment: Arc::clone(common.client_environment()),
            lists: common.lists(),
            lists_confirmed: true,
        };
        let (name, config) = (Arc::clone(&common.name), (*common.config()).clone());
        let own = Upstream::new(name, config, context, Arc::clone(shared));
        shared.server_tasks.spawn(Arc::clone(&own).run_with_restarts());
        servers.insert(key, UnsharedServer { upstream: Arc::clone(&own), _permit: permit });
        Ok(own)
    }

    /// Returns all unshared processes.
    pub(crate) fn all(&self) -> Vec<Arc<Upstream>> {
        self.0.lock().values().map(|own| Arc::clone(&own.upstream)).collect()
    }

    /// Returns the servers of one client.
    pub(crate) fn of_client(&self, client: u64) -> Vec<Arc<Upstream>> {
        let servers = self.0.lock();
        let own = servers.iter().filter(|((owner, _), _)| *owner == client);
        own.map(|(_, own)| Arc::clone(&own.upstream)).collect()
    }

    /// Stops the servers of a client that has disconnected.
    pub(crate) fn end_client(&self, client: u64) {
        self.stop_unless(|owner, _| owner != client);
    }

    /// Applies a new config. Stops the processes of servers that were removed, or whose new config requires another
    /// process.
    pub(crate) fn apply(&self, config: &GatewayConfig, environment: &ClientEnvironment) {
        self.stop_unless(|_, own| {
            let Some(server) = config.servers.get(&*own.name) else { return false };
            let key = |server| ServerPool::key(environment, &own.name, server);
            let is_kept = key(server) == key(&own.config());
            if is_kept {
                own.adopt_config(server);
            }
            is_kept
        });
    }

    /// Stops all servers.
    pub(crate) fn stop_all(&self) {
        self.stop_unless(|_, _| false);
    }

    fn stop_unless(&self, is_kept: impl Fn(u64, &Upstream) -> bool) {
        self.0.lock().retain(|(owner, _), own| {
            let is_kept = is_kept(*owner, &own.upstream);
            if !is_kept {
                own.upstream.stop();
            }
            is_kept
        });
    }
}
