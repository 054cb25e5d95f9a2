//! The proxy's metrics.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use toolcrib_dialect::{Api, TurnSummary};
use toolcrib_server::metrics::Registry;

/// The labels of a request. Clients cannot choose the values of labels, so a client cannot create new time series.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    api: &'static str,
    mode: &'static str,
}

/// The metrics of the proxy.
#[derive(Debug, Default)]
pub(crate) struct ProxyMetrics {
    requests: Family<RequestLabels, Counter>,
    rounds: Family<RequestLabels, Counter>,
    searches: Family<RequestLabels, Counter>,
    before: Family<RequestLabels, Counter>,
    after: Family<RequestLabels, Counter>,
    fallbacks: Family<RequestLabels, Counter>,
    failures: Counter,
    state_lost: Counter,
    open: Gauge,
}

impl ProxyMetrics {
    /// Adds the metrics to a registry, with names that begin with `proxy_`.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("proxy");
        let mut family = |name, help, family: &Family<RequestLabels, Counter>| {
            registry.register(name, help, family.clone());
        };
        family("requests", "Requests of clients to an API that has tools", &self.requests);
        family("upstream_rounds", "Requests to upstreams, including hidden rounds", &self.rounds);
        family("searches", "Searches answered", &self.searches);
        family("tool_tokens_before", "Tokens of tools as clients sent them", &self.before);
        family("tool_tokens_after", "Tokens of tools as sent to upstreams", &self.after);
        family(
            "fallbacks",
            "Requests sent again because the upstream does not support a native feature",
            &self.fallbacks,
        );
        registry.register(
            "upstream_failures",
            "Upstreams that could not be reached, or whose response was cut off",
            self.failures.clone(),
        );
        registry.register("state_lost", "Times the store was unavailable", self.state_lost.clone());
        registry.register("open_requests", "Requests in progress", self.open.clone());
    }

    pub(crate) fn request(
        &self,
        api: Api,
        mode: &'static str,
        tokens: (usize, usize),
        summary: &TurnSummary,
    ) {
        let labels = RequestLabels { api: api.name(), mode };
        self.requests.get_or_create(&labels).inc();
        self.rounds.get_or_create(&labels).inc_by(summary.rounds as u64);
        self.searches.get_or_create(&labels).inc_by(summary.searches as u64);
        self.before.get_or_create(&labels).inc_by(tokens.0 as u64);
        self.after.get_or_create(&labels).inc_by(tokens.1 as u64);
    }

    pub(crate) fn fallback(&self, api: Api, mode: &'static str) {
        self.fallbacks.get_or_create(&RequestLabels { api: api.name(), mode }).inc();
    }

    pub(crate) fn failure(&self) {
        self.failures.inc();
    }

    pub(crate) fn state_lost(&self) {
        self.state_lost.inc();
    }

    /// Counts a request as open until the returned value is dropped.
    pub(crate) fn open(&self) -> OpenRequestGuard {
        self.open.inc();
        OpenRequestGuard(self.open.clone())
    }
}

/// A request that is counted as open.
#[derive(Debug)]
pub(crate) struct OpenRequestGuard(Gauge);

impl Drop for OpenRequestGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}
