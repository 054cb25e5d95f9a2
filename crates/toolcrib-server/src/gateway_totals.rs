//! What a gateway has done since it started, for `toolcrib stats --live`.
//!
//! The type is here because both network interfaces use it: the gateway fills it in, and the proxy answers requests for
//! the statistics of both.

use serde::{Deserialize, Serialize};

/// What a gateway has done since it started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GatewayTotals {
    /// Number of open sessions.
    pub sessions: u64,
    /// Number of searches.
    pub searches: u64,
    /// Number of searches that found nothing.
    pub misses: u64,
    /// Number of tools that were described.
    pub described: u64,
    /// Tokens that tool lists were smaller than the full definitions. Each list that a client fetched counts once.
    pub tokens_saved: u64,
    /// The calls to each server, by name.
    pub servers: Vec<ServerCallTotals>,
}

/// The calls to one server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerCallTotals {
    /// The server's name.
    pub server: String,
    /// The server's state, such as `up`.
    pub state: String,
    /// Number of calls that have ended.
    pub calls: u64,
    /// How many of them did not succeed: the tool or the server reported an error, or the call was refused, cancelled or
    /// timed out.
    pub failed: u64,
}
