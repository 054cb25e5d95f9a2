//! The gateway's metrics.
//!
//! Every series exists from the start and in a fixed order. `Family` is not used, because it keeps its series in a
//! hash map, so two scrapes of the same numbers could differ. The label `server` only has names from the config;
//! other names are not counted, so that a client cannot create series.

mod exposition;

use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Instant;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use toolcrib_server::metrics::Registry;
use toolcrib_server::{GatewayTotals, ServerCallTotals};

/// Upper bounds of the latency buckets, in seconds, about three per decade. They range from a cache hit in the same
/// process to the default timeout of a call (120 s).
const LATENCY_BUCKETS: [f64; 17] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0, 120.0,
];

/// How a call of a server's tool ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallStatus {
    /// The tool succeeded.
    Ok,
    /// The tool reported an error.
    ToolError,
    /// The server or the connection to it failed.
    Error,
    /// The gateway refused the call.
    Refused,
    /// The server did not answer before the timeout.
    Timeout,
    /// The client cancelled the call.
    Cancelled,
}

impl CallStatus {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Ok, "ok"),
        (Self::ToolError, "tool_error"),
        (Self::Error, "error"),
        (Self::Refused, "refused"),
        (Self::Timeout, "timeout"),
        (Self::Cancelled, "cancelled"),
    ];
}

/// The state of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerState {
    /// The server is connected, and its tools are known.
    Up,
    /// The server is not running because nothing needs it.
    Idle,
    /// The server is being started or connected to.
    Connecting,
    /// The server is not reachable. The gateway tries again later.
    Down,
    /// The server is disabled in the config.
    Off,
}

impl ServerState {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Up, "up"),
        (Self::Idle, "idle"),
        (Self::Connecting, "connecting"),
        (Self::Down, "down"),
        (Self::Off, "off"),
    ];
}

/// The metrics of one gateway. Clones share the counters.
#[derive(Debug, Clone)]
pub(crate) struct GatewayMetrics {
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    searches: Counter,
    hits: Counter,
    misses: Counter,
    describes: Counter,
    tokens_saved: Counter,
    sessions: Gauge<i64, AtomicI64>,
    servers: RwLock<BTreeMap<String, Arc<ServerMetrics>>>,
}

#[derive(Debug)]
struct ServerMetrics {
    calls: [Counter; CallStatus::ALL.len()],
    seconds: Histogram,
    refreshes: Counter,
    restarts: Counter,
    hidden_texts: Counter,
    in_flight: Gauge<i64, AtomicI64>,
    state: RwLock<ServerState>,
}

impl Default for ServerMetrics {
    fn default() -> Self {
        Self {
            calls: Default::default(),
            seconds: Histogram::new(LATENCY_BUCKETS),
            refreshes: Counter::default(),
            restarts: Counter::default(),
            hidden_texts: Counter::default(),
            in_flight: Gauge::default(),
            state: RwLock::new(ServerState::Connecting),
        }
    }
}

impl GatewayMetrics {
    /// Creates the metrics for the servers of a config. All counters are zero, and every server is connecting.
    pub(crate) fn new<'n>(servers: impl IntoIterator<Item = &'n str>) -> Self {
        let metrics = Self { counts: Arc::default() };
        metrics.set_servers(servers);
        metrics
    }

    /// Adds the metrics to a registry. Two scrapes of the same numbers produce the same text.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(Arc::clone(&self.counts)));
    }

    /// Replaces the servers after a config reload. Servers that are still in the config keep their numbers.
    pub(crate) fn set_servers<'n>(&self, servers: impl IntoIterator<Item = &'n str>) {
        let mut current = self.counts.servers.write();
        let mut before = std::mem::take(&mut *current);
        for name in servers {
            current.insert(name.to_owned(), before.remove(name).unwrap_or_default());
        }
    }

    /// Returns the current numbers, with the servers sorted by name.
    pub(crate) fn totals(&self) -> GatewayTotals {
        let counts = &self.counts;
        let servers = counts.servers.read();
        let servers = servers.iter().map(|(name, metrics)| metrics.totals(name)).collect();
        GatewayTotals {
            sessions: u64::try_from(counts.sessions.get()).unwrap_or_default(),
            searches: counts.searches.get(),
            misses: counts.misses.get(),
            described: counts.describes.get(),
            tokens_saved: counts.tokens_saved.get(),
            servers,
        }
    }

    /// Counts a search that found this many tools.
    pub(crate) fn searched(&self, found: usize) {
        self.counts.searches.inc();
        if found == 0 { &self.counts.misses } else { &self.counts.hits }.inc();
    }

    /// Counts a request for the description of tools.
    pub(crate) fn described(&self) {
        self.counts.describes.inc();
    }

    /// Counts the tokens that a client's `tools/list` saved, compared with all definitions in full.
    pub(crate) fn saved(&self, tokens: u64) {
        self.counts.tokens_saved.inc_by(tokens);
    }

    /// Counts a refresh of a server's list of tools.
    pub(crate) fn refreshed(&self, server: &str) {
        if let Some(server) = self.server(server) {
            server.refreshes.inc();
        }
    }

    /// Counts a restart of a server, or a reconnection to it.
    pub(crate) fn restarted(&self, server: &str) {
        if let Some(server) = self.server(server) {
            server.restarts.inc();
        }
    }

    /// Counts a text from a server that has hidden characters.
    pub(crate) fn found_hidden_text(&self, server: &str) {
        if let Some(server) = self.server(server) {
            server.hidden_texts.inc();
        }
    }

    pub(crate) fn set_state(&self, server: &str, state: ServerState) {
        if let Some(server) = self.server(server) {
            *server.state.write() = state;
        }
    }

    /// Counts a call to a server as in flight until [`InFlightCall::end`]. A call that is dropped before that counts as
    /// cancelled.
    pub(crate) fn call(&self, server: &str) -> InFlightCall {
        let server = self.server(server);
        if let Some(server) = &server {
            server.in_flight.inc();
        }
        InFlightCall { server, started: Instant::now() }
    }

    /// Counts a call that was refused before it was sent. Such a call has no latency.
    pub(crate) fn refused(&self, server: &str) {
        if let Some(server) = self.server(server) {
            server.count_call(CallStatus::Refused);
        }
    }

    /// Counts a session as open until the returned value is dropped.
    pub(crate) fn session(&self) -> OpenSession {
        self.counts.sessions.inc();
        OpenSession { counts: Arc::clone(&self.counts) }
    }

    fn server(&self, name: &str) -> Option<Arc<ServerMetrics>> {
        self.counts.servers.read().get(name).cloned()
    }
}

impl ServerMetrics {
    fn totals(&self, name: &str) -> ServerCallTotals {
        let all = self.calls.iter().zip(CallStatus::ALL);
        let (mut calls, mut failed) = (0, 0);
        for (counter, (status, _)) in all {
            calls += counter.get();
            failed += if status == CallStatus::Ok { 0 } else { counter.get() };
        }
        let state = *self.state.read();
        let state = ServerState::ALL.iter().find(|(each, _)| *each == state);
        let state = state.map(|(_, name)| (*name).to_owned()).unwrap_or_default();
        ServerCallTotals { server: name.to_owned(), state, calls, failed }
    }

    fn count_call(&self, status: CallStatus) {
        for (counter, (each, _)) in self.calls.iter().zip(CallStatus::ALL) {
            if each == status {
                counter.inc();
            }
        }
    }
}

#[must_use = "a call that is dropped counts as cancelled"]
#[derive(Debug)]
pub(crate) struct InFlightCall {
    server: Option<Arc<ServerMetrics>>,
    started: Instant,
}

impl InFlightCall {
    /// Counts the end of the call. Its latency is the time since [`GatewayMetrics::call`].
    pub(crate) fn end(self, status: CallStatus) {
        let seconds = self.started.elapsed().as_secs_f64();
        self.end_after(status, seconds);
    }

    /// Counts the end of the call with this latency.
    fn end_after(mut self, status: CallStatus, seconds: f64) {
        self.finish(status, seconds);
    }

    fn finish(&mut self, status: CallStatus, seconds: f64) {
        if let Some(server) = self.server.take() {
            server.in_flight.dec();
            server.count_call(status);
            server.seconds.observe(seconds);
        }
    }
}

impl Drop for InFlightCall {
    fn drop(&mut self) {
        let seconds = self.started.elapsed().as_secs_f64();
        self.finish(CallStatus::Cancelled, seconds);
    }
}

#[must_use = "the session counts while this value lives"]
#[derive(Debug)]
pub(crate) struct OpenSession {
    counts: Arc<Counts>,
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        self.counts.sessions.dec();
    }
}

#[cfg(test)]
mod tests;
