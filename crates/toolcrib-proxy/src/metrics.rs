//! What is counted.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use toolcrib_dialect::{Api, Summary};

/// A request, as far as it may be told apart: nothing in it comes from a client.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    api: &'static str,
    mode: &'static str,
}

/// The counters of the proxy.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Kind, Counter>,
    rounds: Family<Kind, Counter>,
    searches: Family<Kind, Counter>,
    before: Family<Kind, Counter>,
    after: Family<Kind, Counter>,
    fallbacks: Family<Kind, Counter>,
    failures: Counter,
    state_lost: Counter,
    open: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("toolcrib_proxy");
        let mut family = |name, help| {
            let family = Family::<Kind, Counter>::default();
            registry.register(name, help, family.clone());
            family
        };
        let requests = family("requests", "Requests of clients to an API that has tools");
        let rounds = family("upstream_rounds", "Requests to upstreams, hidden rounds included");
        let searches = family("searches", "Searches answered");
        let before = family("tool_tokens_before", "Tokens of tools as clients sent them");
        let after = family("tool_tokens_after", "Tokens of tools as they went up");
        let fallbacks =
            family("fallbacks", "Requests sent again because a native feature was refused");
        let (failures, state_lost, open) =
            (Counter::default(), Counter::default(), Gauge::default());
        registry.register(
            "upstream_failures",
            "Upstreams not reached, or broken off",
            failures.clone(),
        );
        registry.register("state_lost", "Times the store did not answer", state_lost.clone());
        registry.register("open_requests", "Requests under way", open.clone());
        Self {
            registry,
            requests,
            rounds,
            searches,
            before,
            after,
            fallbacks,
            failures,
            state_lost,
            open,
        }
    }
}

impl Metrics {
    pub(crate) fn request(
        &self,
        api: Api,
        mode: &'static str,
        tokens: (usize, usize),
        summary: &Summary,
    ) {
        let kind = Kind { api: api.name(), mode };
        self.requests.get_or_create(&kind).inc();
        self.rounds.get_or_create(&kind).inc_by(summary.rounds as u64);
        self.searches.get_or_create(&kind).inc_by(summary.searches as u64);
        self.before.get_or_create(&kind).inc_by(tokens.0 as u64);
        self.after.get_or_create(&kind).inc_by(tokens.1 as u64);
    }

    pub(crate) fn fallback(&self, api: Api, mode: &'static str) {
        self.fallbacks.get_or_create(&Kind { api: api.name(), mode }).inc();
    }

    pub(crate) fn failure(&self) {
        self.failures.inc();
    }

    pub(crate) fn state_lost(&self) {
        self.state_lost.inc();
    }

    /// Counts a request as under way for as long as what it returns lives.
    pub(crate) fn open(&self) -> Open {
        self.open.inc();
        Open(self.open.clone())
    }

    /// All of it, as Prometheus reads it.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct Open(Gauge);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}
