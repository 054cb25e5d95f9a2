//! What people can choose about the gateway: its servers, profiles and doors.
//!
//! Written in `toolcrib.toml` beside the engine's settings, or taken over from another client's file.
//! A config is checked whole before anything of it is used.

mod check;
mod error;
pub mod expand;
pub mod foreign;
mod mask;
mod native;
mod server;
mod url;
mod write;

pub use error::ConfigError;
pub use foreign::{Client, Foreign};
pub use mask::masked;
pub use native::TABLES;
pub use server::{OAuth, Server, Transport};
pub use write::server_toml;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde::Deserialize;
use toolcrib_core::Settings;

use crate::Secret;

/// Bytes of a config file, ours or another client's. The largest that people have, Claude Code's own
/// with its history of projects, are a few hundred kilobytes.
pub const MAX_BYTES: usize = 4 << 20;

/// Everything the gateway is told.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Config {
    /// The engine's settings.
    pub settings: Settings,
    /// The servers, by the name people gave them.
    pub servers: BTreeMap<String, Server>,
    /// Named narrower scopes.
    pub profiles: BTreeMap<String, Profile>,
    /// What clients see.
    pub gateway: GatewaySettings,
    /// The HTTP door.
    pub http: HttpSettings,
    /// What is said about the LLM proxy, which shares the door and is none of ours.
    pub proxy: toml::Table,
}

/// A narrower scope, by name: in the config, with `--profile`, or at `/mcp/NAME`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// The servers in it, as patterns; empty: all.
    pub servers: Vec<String>,
    /// Tools in it, as patterns of `server/tool` or of a tool's name; empty: all.
    pub allow: Vec<String>,
    /// Tools out of it, whatever else lets them in.
    pub deny: Vec<String>,
}

/// What clients see.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GatewaySettings {
    /// Characters of any description of ours: some clients cut longer ones.
    pub description_chars: usize,
    /// Whether found tools are also added to the list of an older client that honours `list_changed`.
    pub add_found: bool,
    /// Whether clients that search tools themselves get the full list.
    pub defer_to_clients: bool,
    /// Seconds that a search without a strong hit waits for servers that are still connecting.
    pub wait: f64,
    /// The profile of clients that name none.
    pub profile: Option<String>,
    /// Bounds.
    pub limits: Limits,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            description_chars: 2_000,
            add_found: false,
            defer_to_clients: false,
            wait: 2.0,
            profile: None,
            limits: Limits::default(),
        }
    }
}

/// Bounds on what comes in from servers and clients.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Bytes of one message from a server: a line, an event, a body.
    pub message_bytes: usize,
    /// Bytes of one request from a client.
    pub request_bytes: usize,
    /// Tools of one server.
    pub server_tools: usize,
    /// Pages of one list.
    pub pages: usize,
    /// Tools of all servers together.
    pub tools: usize,
    /// Sessions of older clients at once; beyond it new ones are refused.
    pub sessions: usize,
    /// Seconds after which an idle session ends.
    pub session_idle: u64,
    /// Calls to one server at once.
    pub server_calls: usize,
    /// Calls that wait for one server's turn.
    pub server_queue: usize,
    /// Calls at once, of all servers together.
    pub calls: usize,
    /// Servers that start at the same time.
    pub starting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 8 << 20,
            request_bytes: 4 << 20,
            server_tools: 2_000,
            pages: 64,
            tools: 20_000,
            sessions: 10_000,
            session_idle: 1_800,
            server_calls: 64,
            server_queue: 256,
            calls: 1_024,
            starting: 32,
        }
    }
}

/// The HTTP door.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpSettings {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The token that callers must show; off loopback one is made when none is set.
    pub token: Option<Secret>,
    /// Host names, beside loopback ones, that requests may be for.
    pub allowed_hosts: Vec<String>,
    /// Origins, beside loopback ones, that browsers may send.
    pub allowed_origins: Vec<String>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 4180)),
            token: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
        }
    }
}

/// A time in seconds, as people write it.
pub fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or(Duration::ZERO)
}
