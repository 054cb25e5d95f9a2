//! What a gateway has done since it started, for `toolcrib stats --live`.
//!
//! The type is in this crate because two crates use it: the gateway fills it in, and the proxy includes it in its own
//! statistics.

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
    /// How many tokens smaller the tool lists were than the full definitions. The sum over all lists that clients
    /// fetched.
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
    /// Number of calls that have finished.
    pub calls: u64,
    /// How many of them did not succeed: the tool or the server reported an error, or the call was refused, cancelled or
    /// timed out.
    pub failed: u64,
}
