//! The gateway's metrics.
//!
//! Every series exists from the start and in a fixed order. `Family` is not used, because it keeps its series in a
//! hash map, so two scrapes of the same numbers could differ. The label `server` only has names from the config;
//! other names are not counted, so that a client cannot create series.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Unit;
use toolcrib_server::metrics::Registry;

/// Bucket bounds: from a cache hit in the same process to the default timeout of a call (120 s), three a decade.
const SECONDS: [f64; 17] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0, 120.0,
];

/// How a call of a server's tool ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStatus {
    /// The tool succeeded.
    Ok,
    /// The tool reported an error.
    ToolError,
    /// The server failed, or the connection to it.
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
pub enum ServerState {
    /// Connected, and its tools are known.
    Up,
    /// Being started or connected to.
    Connecting,
    /// Not reachable; it is tried again later.
    Down,
    /// Disabled in the config.
    Off,
}

impl ServerState {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Up, "up"),
        (Self::Connecting, "connecting"),
        (Self::Down, "down"),
        (Self::Off, "off"),
    ];
}

/// The metrics of one gateway. Clones share them.
#[derive(Debug, Clone)]
pub struct Metrics {
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
            seconds: Histogram::new(SECONDS),
            refreshes: Counter::default(),
            restarts: Counter::default(),
            hidden_texts: Counter::default(),
            in_flight: Gauge::default(),
            state: RwLock::new(ServerState::Connecting),
        }
    }
}

impl Metrics {
    /// Metrics for the servers of a config. All counters are zero, and every server is connecting.
    pub fn new<'n>(servers: impl IntoIterator<Item = &'n str>) -> Self {
        let metrics = Self { counts: Arc::default() };
        metrics.set_servers(servers);
        metrics
    }

    /// Adds the metrics to a registry. The same numbers always produce the same text.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(Arc::clone(&self.counts)));
    }

    /// Replaces the servers after a config reload. Servers that remain keep their numbers.
    pub fn set_servers<'n>(&self, servers: impl IntoIterator<Item = &'n str>) {
        let mut held = self.counts.servers.write().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *held);
        for name in servers {
            held.insert(name.to_owned(), before.remove(name).unwrap_or_default());
        }
    }

    /// Counts a search that found (or loaded) this many tools.
    pub fn searched(&self, found: usize) {
        self.counts.searches.inc();
        if found == 0 { &self.counts.misses } else { &self.counts.hits }.inc();
    }

    /// Counts the description of a tool.
    pub fn described(&self) {
        self.counts.describes.inc();
    }

    /// Counts the tokens that a client's `tools/list` was shorter by.
    pub fn saved(&self, tokens: u64) {
        self.counts.tokens_saved.inc_by(tokens);
    }

    /// Counts a refresh of a server's list of tools.
    pub fn refreshed(&self, server: &str) {
        if let Some(server) = self.server(server) {
            server.refreshes.inc();
        }
    }

    /// Counts a restart of a server, or another connection to it.
    pub fn restarted(&self, server: &str) {
        if let Some(server) = self.server(server) {
            server.restarts.inc();
        }
    }

    /// Counts a text of a server with hidden characters.
    pub fn found_hidden_text(&self, server: &str) {
        if let Some(server) = self.server(server) {
            server.hidden_texts.inc();
        }
    }

    /// Sets the state of a server.
    pub fn set_state(&self, server: &str, state: ServerState) {
        if let Some(server) = self.server(server) {
            *server.state.write().unwrap_or_else(PoisonError::into_inner) = state;
        }
    }

    /// Counts a call to a server as in flight until [`InFlightCall::end`]. If it is dropped before, it counts as
    /// cancelled.
    pub fn call(&self, server: &str) -> InFlightCall {
        let server = self.server(server);
        if let Some(server) = &server {
            server.in_flight.inc();
        }
        InFlightCall { server, started: Instant::now() }
    }

    /// Counts a call that was refused before it was sent. It has no latency.
    pub fn refused(&self, server: &str) {
        if let Some(server) = self.server(server) {
            server.ended(CallStatus::Refused);
        }
    }

    /// Counts a session until the value is dropped.
    pub fn session(&self) -> OpenSession {
        self.counts.sessions.inc();
        OpenSession { counts: Arc::clone(&self.counts) }
    }

    fn server(&self, name: &str) -> Option<Arc<ServerMetrics>> {
        self.counts.servers.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

impl ServerMetrics {
    fn ended(&self, outcome: CallStatus) {
        for (counter, (each, _)) in self.calls.iter().zip(CallStatus::ALL) {
            if each == outcome {
                counter.inc();
            }
        }
    }
}

/// A call in flight.
#[must_use = "a call that is dropped counts as cancelled"]
#[derive(Debug)]
pub struct InFlightCall {
    server: Option<Arc<ServerMetrics>>,
    started: Instant,
}

impl InFlightCall {
    /// Counts the end of the call. Its latency is the time since [`Metrics::call`].
    pub fn end(self, outcome: CallStatus) {
        let seconds = self.started.elapsed().as_secs_f64();
        self.end_after(outcome, seconds);
    }

    /// Counts the end of the call with this latency.
    pub fn end_after(mut self, outcome: CallStatus, seconds: f64) {
        self.finish(outcome, seconds);
    }

    fn finish(&mut self, outcome: CallStatus, seconds: f64) {
        if let Some(server) = self.server.take() {
            server.in_flight.dec();
            server.ended(outcome);
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

/// An open session.
#[must_use = "the session counts while this value lives"]
#[derive(Debug)]
pub struct OpenSession {
    counts: Arc<Counts>,
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        self.counts.sessions.dec();
    }
}

impl Collector for Counts {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        let out = &mut encoder;
        single(out, "searches", "Searches for tools", &self.searches)?;
        single(out, "hits", "Searches that found a tool", &self.hits)?;
        single(out, "misses", "Searches that found nothing", &self.misses)?;
        single(out, "describes", "Tools described", &self.describes)?;
        single(out, "tokens_saved", "Tokens that tool lists did not carry", &self.tokens_saved)?;
        single(out, "sessions", "Sessions that are open", &self.sessions)?;
        per_state(out, &servers)?;
        per_outcome(out, &servers)?;
        let each =
            |out: &mut DescriptorEncoder, name, help, metric: fn(&ServerMetrics) -> &Counter| {
                per_server(out, (name, help, None), &servers, metric)
            };
        each(out, "refreshes", "Lists of tools fetched", |server| &server.refreshes)?;
        each(out, "restarts", "Servers started again", |server| &server.restarts)?;
        each(out, "hidden_texts", "Messages with hidden characters", |server| {
            &server.hidden_texts
        })?;
        let about = ("calls_in_flight", "Calls that are not answered yet", None);
        per_server(out, about, &servers, |server| &server.in_flight)?;
        let about = ("call_duration", "Time of a call of an upstream tool", Some(&Unit::Seconds));
        per_server(out, about, &servers, |server| &server.seconds)
    }
}

fn single(
    out: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    metric: &impl EncodeMetric,
) -> fmt::Result {
    metric.encode(out.encode_descriptor(name, &sentence(help), None, metric.metric_type())?)
}

fn per_server<M: EncodeMetric>(
    out: &mut DescriptorEncoder,
    (name, help, unit): (&str, &str, Option<&Unit>),
    servers: &BTreeMap<String, Arc<ServerMetrics>>,
    metric: fn(&ServerMetrics) -> &M,
) -> fmt::Result {
    let Some(first) = servers.values().next() else { return Ok(()) };
    let mut family =
        out.encode_descriptor(name, &sentence(help), unit, metric(first).metric_type())?;
    for (server, counts) in servers {
        metric(counts).encode(family.encode_family(&[("server", server.as_str())])?)?;
    }
    Ok(())
}

fn per_outcome(
    out: &mut DescriptorEncoder,
    servers: &BTreeMap<String, Arc<ServerMetrics>>,
) -> fmt::Result {
    let help = sentence("Calls of upstream tools, by how they ended");
    let mut family = out.encode_descriptor("calls", &help, None, MetricType::Counter)?;
    for (server, counts) in servers {
        for (counter, (_, outcome)) in counts.calls.iter().zip(CallStatus::ALL) {
            let labels = [("server", server.as_str()), ("outcome", outcome)];
            counter.encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn per_state(
    out: &mut DescriptorEncoder,
    servers: &BTreeMap<String, Arc<ServerMetrics>>,
) -> fmt::Result {
    let help = sentence("Servers of the config, by what they are doing");
    let mut family = out.encode_descriptor("servers", &help, None, MetricType::Gauge)?;
    for (state, label) in ServerState::ALL {
        let here = |server: &&Arc<ServerMetrics>| {
            *server.state.read().unwrap_or_else(PoisonError::into_inner) == state
        };
        let count = servers.values().filter(here).count();
        family.encode_family(&[("state", label)])?.encode_gauge(&count)?;
    }
    Ok(())
}

/// The registry adds a full stop to help texts, but a collector must do so itself.
fn sentence(help: &str) -> String {
    format!("{help}.")
}
