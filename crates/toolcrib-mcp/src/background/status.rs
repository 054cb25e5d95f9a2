//! The status of a background gateway, as `toolcrib ps` prints it.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolcrib_server::GatewayTotals;

use crate::Gateway;
use crate::os_text;
use crate::process::ProcessMemory;
use crate::upstream::Upstream;

/// The status of a background gateway.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BackgroundStatus {
    /// The process id of the gateway.
    pub pid: u32,
    /// The version of the gateway.
    pub version: String,
    /// The config file.
    #[serde(with = "os_text")]
    pub config: PathBuf,
    /// The log of the gateway.
    #[serde(with = "os_text")]
    pub log: PathBuf,
    /// How long the gateway has been running, in seconds.
    pub uptime_seconds: u64,
    /// The resident memory of the gateway without its servers, in bytes, if it is known.
    pub memory: Option<u64>,
    /// The connected clients.
    pub clients: Vec<ClientStatus>,
    /// What the gateway has done since it started. Older builds do not send it.
    #[serde(default)]
    pub totals: GatewayTotals,
    /// The servers. A server whose resolved config differs between clients is listed several times.
    pub servers: Vec<ServerProcessStatus>,
}

/// A connected client.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClientStatus {
    /// Identifies the client until it disconnects.
    pub id: u64,
    /// The name that a client of the older protocol has reported.
    pub name: Option<String>,
    /// The process id of its `toolcrib mcp`.
    pub pid: u32,
    /// The working folder of the client.
    #[serde(with = "os_text::option")]
    pub folder: Option<PathBuf>,
    /// The profile of the client.
    pub profile: Option<String>,
    /// How long the client has been connected, in seconds.
    pub connected_seconds: u64,
}

/// A server, and its process if it runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerProcessStatus {
    /// The name of the server in the config.
    pub name: String,
    /// The state, such as `up` or `idle`.
    pub state: String,
    /// Why the server is not connected.
    pub reason: Option<String>,
    /// The client whose own process this is. If it is missing, clients share the process.
    pub client: Option<u64>,
    /// Which clients share a process, and why.
    pub sharing: String,
    /// The id of the process.
    pub pid: Option<u32>,
    /// The resident memory of the process and all processes below it, in bytes, if it is known.
    pub memory: Option<u64>,
    /// The number of requests so far.
    pub requests: u64,
    /// The number of requests in progress.
    pub open: usize,
    /// The time since the last request, in seconds, if no request is in progress.
    pub unused_seconds: Option<u64>,
}

impl ServerProcessStatus {
    fn new(upstream: &Upstream, memory: &ProcessMemory) -> Self {
        let (status, usage, pid) = (upstream.status(), upstream.usage(), upstream.process_id());
        Self {
            name: upstream.name.to_string(),
            state: status.phase.name().to_owned(),
            reason: status.reason,
            client: upstream.owner(),
            sharing: upstream.share_policy().to_string(),
            pid,
            memory: pid.and_then(|pid| memory.of_tree(pid)),
            requests: usage.requests,
            open: usage.open,
            unused_seconds: usage.unused_for.map(|unused| unused.as_secs()),
        }
    }
}

/// Returns the status of the servers of several gateways, sorted by name, and the memory of this process in bytes. A
/// server that several gateways share is returned once. Blocks.
pub fn server_statuses(gateways: &[Arc<Gateway>]) -> (Vec<ServerProcessStatus>, Option<u64>) {
    let memory = ProcessMemory::now();
    let mut upstreams: Vec<_> = gateways.iter().flat_map(|it| it.hub().all_upstreams()).collect();
    upstreams.sort_by(|a, b| (&a.name, a.owner(), a.id).cmp(&(&b.name, b.owner(), b.id)));
    upstreams.dedup_by(|a, b| Arc::ptr_eq(a, b));
    let enabled = upstreams.iter().filter(|upstream| upstream.config().enabled);
    let statuses = enabled.map(|upstream| ServerProcessStatus::new(upstream, &memory)).collect();
    (statuses, memory.of_process(std::process::id()))
}

/// Restarts all processes of the server with this name. Returns how many were running, or `None` if no gateway has such
/// a server.
pub fn restart_server(gateways: &[Arc<Gateway>], name: &str) -> Option<usize> {
    let mut upstreams: Vec<_> = gateways.iter().flat_map(|it| it.hub().all_upstreams()).collect();
    upstreams.retain(|upstream| &*upstream.name == name);
    upstreams.sort_by_key(|upstream| Arc::as_ptr(upstream).addr());
    upstreams.dedup_by(|a, b| Arc::ptr_eq(a, b));
    let restarted = upstreams.iter().filter(|upstream| upstream.restart()).count();
    (!upstreams.is_empty()).then_some(restarted)
}
