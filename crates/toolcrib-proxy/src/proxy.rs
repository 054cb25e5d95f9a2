//! The proxy, and the state that all requests share.

use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use bytes::Bytes;
use toolcrib_core::Settings;
use toolcrib_dialect::capability::LearnedUnsupported;
use toolcrib_dialect::translate::adapter;
use toolcrib_dialect::{Api, RecordKey};
use toolcrib_server::access::AccessControl;
use toolcrib_server::admin::AdminAccess;
use toolcrib_server::metrics::Registry;
use toolcrib_server::{GatewayTotals, MemoryBudget};
use toolcrib_store::{
    ConfiguredStore, MemoryLimits, MemoryStore, RedisOptions, RedisStore, Store as _,
};

use crate::allowed_paths::InvalidPathEntry;
use crate::caller::{Callers, StatsView};
use crate::config::{self, ProxyConfig};
use crate::metrics::ProxyMetrics;
use crate::route::{InvalidUpstreamUrl, Routes};
use crate::toolset_cache::ToolsetCache;
use crate::totals::{RunningTotals, Totals};
use crate::unsupported_modes::unsupported_mode_notices;

/// Maximum time to connect to an upstream.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time that an idle connection to an upstream is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// The LLM proxy.
#[derive(Debug)]
pub struct Proxy {
    pub(crate) config: ProxyConfig,
    pub(crate) settings: Arc<Settings>,
    pub(crate) routes: Routes,
    callers: ArcSwap<Callers>,
    admin: Arc<AdminAccess>,
    pub(crate) store: ConfiguredStore,
    pub(crate) client: reqwest::Client,
    pub(crate) toolsets: ToolsetCache,
    /// The memory budget for the responses of all requests.
    pub(crate) responses: MemoryBudget,
    learned: Mutex<LearnedUnsupported>,
    pub(crate) metrics: ProxyMetrics,
    pub(crate) running_totals: RunningTotals,
    gateway_totals: OnceLock<ReadGatewayTotals>,
    started: Instant,
}

/// Reads the numbers of the gateway in the same process.
struct ReadGatewayTotals(Box<dyn Fn() -> GatewayTotals + Send + Sync>);

impl std::fmt::Debug for ReadGatewayTotals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReadGatewayTotals")
    }
}

/// Why a config cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProxyConfigError {
    /// The URL of an upstream is invalid.
    #[error(transparent)]
    Url(#[from] InvalidUpstreamUrl),
    /// The URL of Redis is invalid.
    #[error(transparent)]
    Redis(#[from] toolcrib_store::InvalidRedisUrl),
    /// Requests of other APIs cannot be translated to the API in `speaks` of a route.
    #[error("`speaks = \"{0}\"`: requests of no other API can be translated to it")]
    Speaks(Api),
    /// Two callers have the same name or key, or a key is empty.
    #[error("the caller `{0}` has the name or key of another caller, or an empty key")]
    Callers(String),
    /// An entry of `paths` is invalid.
    #[error(transparent)]
    Paths(#[from] InvalidPathEntry),
    /// The HTTP client cannot be created.
    #[error("the HTTP client cannot be created: {0}")]
    Client(reqwest::Error),
}

impl ProxyConfigError {
    /// What the operator can do about the error.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Url(_) => {
                "write the URL of an upstream without the version: `https://api.openai.com`"
            }
            Self::Redis(_) => "set `proxy.state.redis` to a URL such as `redis://localhost:6379`",
            Self::Speaks(_) => {
                "use `chat`: requests of Messages and Responses can be translated to it"
            }
            Self::Callers(_) => "give each of `proxy.callers` its own name and key",
            Self::Paths(_) => {
                "write a path or a pattern as paths appear in the log: without `..`, `//` or a trailing slash"
            }
            Self::Client(_) => "check that the system's CA certificates are installed",
        }
    }
}

impl Proxy {
    /// Creates a proxy with this config and these settings of the engine. Callers without a key of their own must send
    /// `shared_key`, which may change while the proxy runs; no key is required if only this machine can reach the
    /// proxy. `admin` may see the statistics of all callers.
    pub fn new(
        config: ProxyConfig,
        settings: Settings,
        shared_key: impl Into<AccessControl>,
        admin: Arc<AdminAccess>,
    ) -> Result<Self, ProxyConfigError> {
        for speaks in config.routes.iter().filter_map(|route| route.speaks) {
            if !Api::ALL.iter().any(|from| adapter(*from, speaks).is_some()) {
                return Err(ProxyConfigError::Speaks(speaks));
            }
        }
        check_callers(&config)?;
        let idle_expiry = Duration::from_secs(config.state.hours.saturating_mul(3600));
        let store = if let Some(url) = &config.state.redis {
            let timeout = Duration::from_millis(config.state.timeout_ms.max(1));
            let options = RedisOptions {
                idle_expiry,
                connect_timeout: timeout,
                response_timeout: timeout,
                ..RedisOptions::default()
            };
            ConfiguredStore::Redis(RedisStore::open(url.expose(), options)?)
        } else {
            let limits = MemoryLimits {
                total_bytes: config.state.bytes,
                idle_expiry,
                ..MemoryLimits::default()
            };
            ConfiguredStore::Memory(MemoryStore::new(limits))
        };
        let client = toolcrib_tls::client_builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .tcp_nodelay(true)
            // Redirects are left to the client: only the client may decide to send the credential to another host.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(ProxyConfigError::Client)?;
        for notice in unsupported_mode_notices(&config, &settings) {
            tracing::warn!("{notice}");
        }
        let callers = Callers::new(&config, shared_key, Arc::clone(&admin), None)?;
        admin.set_has_callers(!config.callers.is_empty());
        Ok(Self {
            routes: Routes::new(&config)?,
            callers: ArcSwap::from_pointee(callers),
            admin,
            responses: MemoryBudget::new(config.total_response_bytes),
            config,
            settings: Arc::new(settings),
            store,
            client,
            toolsets: ToolsetCache::default(),
            learned: Mutex::default(),
            metrics: ProxyMetrics::default(),
            running_totals: RunningTotals::default(),
            gateway_totals: OnceLock::new(),
            started: Instant::now(),
        })
    }

    pub(crate) fn callers(&self) -> arc_swap::Guard<Arc<Callers>> {
        self.callers.load()
    }

    /// Applies the callers of a reloaded config, with their keys, scopes and paths. If a caller was removed or its key
    /// was changed, its open requests end. Returns the names of the other settings that were changed, which take effect
    /// only after a restart.
    pub fn reload(&self, config: &ProxyConfig) -> Result<Vec<&'static str>, ProxyConfigError> {
        check_callers(config)?;
        let before = self.callers.load_full();
        let admin = Arc::clone(&self.admin);
        let now = Arc::new(Callers::new(config, before.shared_key(), admin, Some(&before))?);
        self.admin.set_has_callers(!config.callers.is_empty());
        self.callers.store(Arc::clone(&now));
        before.revoke_missing(&now);
        Ok(self.config.changed_keys(config))
    }

    /// Adds the numbers of the gateway in the same process to the statistics.
    pub fn include_gateway(&self, totals: impl Fn() -> GatewayTotals + Send + Sync + 'static) {
        let _ = self.gateway_totals.set(ReadGatewayTotals(Box::new(totals)));
    }

    /// Returns the current totals that `view` includes. A caller of the proxy does not see the gateway's numbers, because
    /// they are those of all clients.
    pub(crate) fn totals(&self, view: &StatsView) -> Totals {
        let gateway = self.gateway_totals.get().filter(|_| *view == StatsView::All);
        let gateway = gateway.map(|ReadGatewayTotals(read)| read());
        Totals { gateway, ..self.running_totals.totals(view) }
    }

    /// Adds the proxy's metrics to a registry.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.metrics.register(registry);
    }

    /// Returns the features that upstreams have so far turned out not to support.
    pub(crate) fn learned(&self) -> LearnedUnsupported {
        self.learned.lock().clone()
    }

    /// Remembers features that an upstream does not support.
    pub(crate) fn learn(&self, unsupported: LearnedUnsupported) {
        self.learned.lock().merge(unsupported);
    }

    /// Returns the number of seconds since the proxy was created. It is the clock that decides how long an unsupported
    /// feature is remembered.
    pub(crate) fn now(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// Returns the records under these keys, in the same order, with `None` for a key without a record. Returns an
    /// empty list if the store is unavailable.
    pub(crate) async fn load(&self, keys: &[RecordKey]) -> Vec<Option<Vec<u8>>> {
        let keys: Vec<_> = keys.iter().map(|key| toolcrib_store::Key::new(key.0)).collect();
        match self.store.get(&keys).await {
            Ok(found) => found.into_iter().map(|bytes| bytes.map(|bytes| bytes.to_vec())).collect(),
            Err(error) => {
                tracing::warn!(%error, "state cannot be read; the conversation continues without it");
                self.metrics.state_lost();
                Vec::new()
            }
        }
    }

    /// Stores records. If the store is unavailable, the request continues and the records are lost.
    pub(crate) async fn store(&self, records: Vec<(RecordKey, Vec<u8>)>) {
        let key = |key: RecordKey| toolcrib_store::Key::new(key.0);
        let records = records.into_iter().map(|(at, bytes)| (key(at), Bytes::from(bytes)));
        if let Err(error) = self.store.put(records.collect()).await {
            tracing::warn!(%error, "state cannot be stored; the conversation continues without it");
            self.metrics.state_lost();
        }
    }
}

/// Checks that no two callers have the same name or key, and that no key is empty.
fn check_callers(config: &ProxyConfig) -> Result<(), ProxyConfigError> {
    for (at, caller) in config.callers.iter().enumerate() {
        let same =
            |other: &config::CallerConfig| other.name == caller.name || other.key == caller.key;
        if caller.key.expose().is_empty() || config.callers[..at].iter().any(same) {
            return Err(ProxyConfigError::Callers(caller.name.clone()));
        }
    }
    Ok(())
}
