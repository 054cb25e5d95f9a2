//! Writes the metrics in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Unit;

use super::{CallStatus, Counts, ServerMetrics, ServerState};

impl Collector for Counts {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let servers = self.servers.read();
        let out = &mut encoder;
        single(out, "searches", "Searches for tools", &self.searches)?;
        single(out, "hits", "Searches that found a tool", &self.hits)?;
        single(out, "misses", "Searches that found nothing", &self.misses)?;
        single(out, "describes", "Tools described", &self.describes)?;
        single(out, "tokens_saved", "Tokens saved in tool lists", &self.tokens_saved)?;
        single(out, "sessions", "Open sessions", &self.sessions)?;
        per_state(out, &servers)?;
        per_outcome(out, &servers)?;
        let each =
            |out: &mut DescriptorEncoder, name, help, metric: fn(&ServerMetrics) -> &Counter| {
                per_server(out, (name, help, None), &servers, metric)
            };
        each(out, "refreshes", "Tool lists fetched", |server| &server.refreshes)?;
        each(out, "restarts", "Server restarts", |server| &server.restarts)?;
        each(out, "hidden_texts", "Messages with hidden characters", |server| {
            &server.hidden_texts
        })?;
        let about = ("calls_in_flight", "Calls in progress", None);
        per_server(out, about, &servers, |server| &server.in_flight)?;
        let about =
            ("call_duration", "Duration of a call to an upstream tool", Some(&Unit::Seconds));
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
    let help = sentence("Calls to upstream tools, by outcome");
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
    let help = sentence("Configured servers, by state");
    let mut family = out.encode_descriptor("servers", &help, None, MetricType::Gauge)?;
    for (state, label) in ServerState::ALL {
        let here = |server: &&Arc<ServerMetrics>| *server.state.read() == state;
        let count = servers.values().filter(here).count();
        family.encode_family(&[("state", label)])?.encode_gauge(&count)?;
    }
    Ok(())
}

/// Adds a full stop to a help text. The registry does this for its own metrics, but not for those of a collector.
fn sentence(help: &str) -> String {
    format!("{help}.")
}
