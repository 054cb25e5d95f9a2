//! Many MCP servers behind one short tool list.
//!
//! [`Gateway`] keeps every server of a [`Config`] connected and shows clients three tools in place of
//! hundreds: one to search, one to describe, one to call. It speaks both eras of the protocol on both
//! sides, over stdio and HTTP.
//!
//! Reading order: [`config`] (what people can choose), `upstream` (one server, kept connected), `snapshot`
//! (everything clients can see, at one moment), `gateway` (what a client asks for, and what becomes of
//! it), [`serve`] (stdio for one client, routes for an HTTP server). This crate is the only one that
//! knows the SDK.

#![cfg(unix)]
// What the SDK calls deprecated is the older era of the protocol: half of what a gateway speaks.
#![allow(deprecated)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod config;
mod doctor;
mod gateway;
mod hidden_text;
mod hub;
mod json_hash;
mod json_memory;
pub mod lines;
mod log_limit;
pub mod metrics;
pub mod oauth;
pub mod process;
mod raw_arguments;
mod request_id;
mod saved_lists;
pub mod serve;
mod snapshot;
mod upstream;

/// Entry points for the fuzzer.
#[cfg(feature = "fuzzing")]
pub mod fuzzing {
    pub use crate::upstream::messages_in;
}

pub use config::Config;
pub use doctor::ServerHealth;
pub use gateway::Gateway;
pub use toolcrib_server::Secret;
pub use upstream::{HostEnvironment, ProtocolEra, ServerPhase, ServerStatus};
