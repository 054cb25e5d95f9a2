//! The gateways inside a background gateway.
//!
//! Clients with the same options, for which the config means the same servers, share a gateway. All gateways take their
//! servers from one pool, so even clients of different gateways share a server that is the same for both.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use toolcrib_mcp::background::ClientHello;
use toolcrib_mcp::config::IdleTimeout;
use toolcrib_mcp::{ClientEnvironment, Gateway, PoolClients, ServerPool};
use toolcrib_tokens::EstimateCounter;

use super::super::{SHUTDOWN_TIMEOUT, environment, watch};
use super::client_options::ClientOptions;
use crate::config::location::Location;
use crate::config::network::load_in;
use crate::deep::Embedding;
use crate::output::Failure;

/// How long a background gateway waits for its first client.
const FIRST_CLIENT_TIMEOUT: Duration = Duration::from_mins(1);

/// How long a gateway that is not the last one stays unused if `background_idle` is `never`.
const OTHER_GATEWAY_IDLE: Duration = Duration::from_mins(1);

/// All gateways, and the pool of their servers.
#[derive(Default)]
pub(super) struct SharedGateways {
    pool: Mutex<Option<Arc<ServerPool>>>,
    gateways: Mutex<Vec<Arc<SharedGateway>>>,
}

/// A gateway that several clients share.
pub(super) struct SharedGateway {
    pub(super) gateway: Arc<Gateway>,
    location: Location,
    options: ClientOptions,
    environment: ClientEnvironment,
    clients: Arc<Mutex<Vec<SharingClient>>>,
    /// When the last client left, or the gateway was started.
    unused_since: Mutex<Instant>,
    watch: AbortHandle,
}

/// A client of a shared gateway.
struct SharingClient {
    id: u64,
    environment: ClientEnvironment,
    /// Cancelled if a new config means other servers for this client than for the rest, so that it must be served by
    /// another gateway.
    must_leave: CancellationToken,
}

/// Keeps a client registered with its gateway until it is dropped.
pub(super) struct Membership {
    pub(super) shared: Arc<SharedGateway>,
    pub(super) must_leave: CancellationToken,
    id: u64,
}

impl Drop for Membership {
    fn drop(&mut self) {
        // The time comes first: a gateway without clients must not have an old one.
        *self.shared.unused_since.lock() = Instant::now();
        self.shared.clients.lock().retain(|client| client.id != self.id);
    }
}

impl SharedGateways {
    /// Returns the gateway for a client, and starts it if there is none yet. Reads the config. Blocks.
    pub(super) fn join(&self, id: u64, hello: &ClientHello) -> Result<Membership, Failure> {
        let location = if hello.is_config_named {
            Location::Named(hello.config.clone())
        } else {
            Location::UserFolder(hello.config.clone())
        };
        let options = ClientOptions::read(&hello.options);
        let folder = hello.environment.folder().cloned().unwrap_or_default();
        let config = load_in(Some(&location), &options.overrides(), &folder)?;
        if let Some(profile) = &hello.profile
            && !config.sections.gateway.profiles.contains_key(profile)
        {
            let hint = "add a table `[profiles.NAME]` to the config";
            return Err(Failure::input(format!("`{profile}`"), &"no such profile", hint));
        }
        let mut gateways = self.gateways.lock();
        let can_share = |shared: &&Arc<SharedGateway>| {
            // The file may have changed since the gateway has read it. Then a new one is started.
            let known = shared.gateway.config();
            let current = &config.sections.gateway;
            shared.location == location
                && shared.options == options
                && known.servers == current.servers
                && known.profiles == current.profiles
                && ServerPool::can_share(
                    &config.sections.gateway,
                    &shared.environment,
                    &hello.environment,
                )
        };
        if let Some(shared) = gateways.iter().find(can_share) {
            return Ok(shared.join(id, hello));
        }
        let config = config.with_vectors(&options.vectors(), None, Embedding::InBackground)?;
        let watched = watch::WatchedFile::new(location.clone());
        let pool = Arc::clone(self.pool.lock().get_or_insert_with(|| {
            ServerPool::new(&config.sections.gateway, environment(), PoolClients::Many)
        }));
        let gateway = Gateway::start_in(
            pool,
            config.sections.gateway,
            hello.environment.clone(),
            Arc::new(EstimateCounter),
        );
        let clients = Arc::<Mutex<Vec<SharingClient>>>::default();
        let watch = watch::ConfigWatch {
            http: config.sections.http,
            file: Some(watched),
            command_line: (options.overrides(), options.vectors()),
            folder,
        };
        let (sharing, own) = (Arc::clone(&clients), hello.environment.clone());
        let separate_clients = move |new: &crate::config::network::LoadedConfig| {
            for client in sharing.lock().iter() {
                if !ServerPool::can_share(&new.sections.gateway, &own, &client.environment) {
                    client.must_leave.cancel();
                }
            }
            Ok(())
        };
        let watching = watch::watch_config(Arc::clone(&gateway), watch, None, separate_clients);
        let shared = Arc::new(SharedGateway {
            gateway,
            location,
            options,
            environment: hello.environment.clone(),
            clients,
            unused_since: Mutex::new(Instant::now()),
            watch: tokio::spawn(watching).abort_handle(),
        });
        gateways.push(Arc::clone(&shared));
        Ok(shared.join(id, hello))
    }

    /// Stops all gateways, and waits until their servers have ended.
    pub(super) async fn stop(&self) {
        let gateways = std::mem::take(&mut *self.gateways.lock());
        join_all(gateways.iter().map(|shared| shared.stop())).await;
        let pool = self.pool.lock().clone();
        if let Some(pool) = pool {
            pool.servers_ended(SHUTDOWN_TIMEOUT).await;
        }
    }

    /// Returns all gateways.
    pub(super) fn all(&self) -> Vec<Arc<Gateway>> {
        self.gateways.lock().iter().map(|shared| Arc::clone(&shared.gateway)).collect()
    }

    /// Returns the config file of any gateway. It is the same for all.
    pub(super) fn config_path(&self) -> Option<PathBuf> {
        self.gateways.lock().first().map(|shared| shared.location.path().to_owned())
    }

    /// Removes the gateways that no client has used for their configured time. With `at_once`, the time does not matter.
    /// Returns the removed ones, and whether any is left.
    pub(super) fn take_unused(&self, at_once: bool) -> (Vec<Arc<SharedGateway>>, bool) {
        let mut gateways = self.gateways.lock();
        let mut left = gateways.len();
        let unused = gateways
            .extract_if(.., |shared| {
                let is_unused = shared.is_unused(at_once, left == 1);
                left -= usize::from(is_unused);
                is_unused
            })
            .collect();
        (unused, !gateways.is_empty())
    }
}

impl SharedGateway {
    fn join(self: &Arc<Self>, id: u64, hello: &ClientHello) -> Membership {
        let must_leave = CancellationToken::new();
        self.clients.lock().push(SharingClient {
            id,
            environment: hello.environment.clone(),
            must_leave: must_leave.clone(),
        });
        Membership { shared: Arc::clone(self), must_leave, id }
    }

    /// Whether no client has used the gateway for the configured time. Without such a time, only the last gateway is kept:
    /// the others may be for folders that nobody works in any more.
    fn is_unused(&self, at_once: bool, is_last: bool) -> bool {
        // A client that leaves sets the time before it is removed, so the time is read last.
        if !self.clients.lock().is_empty() {
            return false;
        }
        let unused_for = self.unused_since.lock().elapsed();
        match self.gateway.config().gateway.background_idle {
            _ if at_once => true,
            IdleTimeout::Never => !is_last && unused_for >= OTHER_GATEWAY_IDLE,
            IdleTimeout::After(seconds) => unused_for.as_secs_f64() >= seconds,
        }
    }

    /// Stops the gateway, and the servers that no other gateway uses.
    pub(super) async fn stop(&self) {
        self.watch.abort();
        self.gateway.stop(SHUTDOWN_TIMEOUT).await;
    }
}

/// Whether a background gateway that has never had a client has waited long enough.
pub(super) fn has_waited_for_first_client(started: Instant) -> bool {
    started.elapsed() >= FIRST_CLIENT_TIMEOUT
}
