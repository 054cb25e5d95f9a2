//! Many MCP servers behind one short tool list.
//!
//! [`Gateway`] keeps every server of a [`GatewayConfig`] connected and lists three tools to clients instead of
//! hundreds: one to search, one to describe, one to call. Toward clients and servers, over stdio and HTTP, it supports
//! both the *older protocol*, which means all versions with a handshake and sessions, and the *newer protocol* (version
//! 2026-07-28), in which every request is independent.
//!
//! Reading order: [`config`] (what users can configure), `upstream` (one server, kept connected), `snapshot`
//! (everything that clients can see at one moment), `gateway` (how a client's requests are answered), [`serve`] (stdio
//! for one client, routes for an HTTP server). No other crate depends on the MCP SDK.

#![cfg(unix)]
// The SDK marks the older protocol as deprecated, but the gateway must support it.
#![allow(deprecated)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod background;
mod client_environment;
pub mod config;
mod configured_tools;
mod doctor;
mod gateway;
mod hidden_text;
mod hub;
mod json_hash;
mod json_memory;
pub mod lines;
mod log_limit;
mod metrics;
pub mod oauth;
pub mod os_text;
mod pool_clients;
pub mod process;
mod raw_arguments;
mod request_id;
mod saved_lists;
pub mod serve;
mod server_pool;
mod snapshot;
mod unshared_servers;
mod upstream;

/// Entry points for the fuzzer.
#[cfg(feature = "fuzzing")]
pub mod fuzzing {
    pub use crate::background::FuzzedRelay;
    pub use crate::upstream::{events_in, messages_in};
}

pub use client_environment::ClientEnvironment;
pub use config::GatewayConfig;
pub use configured_tools::ConfiguredTools;
pub use doctor::ServerHealth;
pub use gateway::Gateway;
pub use pool_clients::PoolClients;
pub use server_pool::ServerPool;
pub use toolcrib_server::Secret;
pub use upstream::{HostEnvironment, ProtocolEra, ServerPhase, ServerStatus};
