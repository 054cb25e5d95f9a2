//! What the network interfaces share: one HTTP listener and one config file.
//!
//! The MCP gateway and the LLM proxy run on the same listener and are configured in the same file, but neither knows
//! about the other. [`HttpServer`] binds the address, limits connections, guards every route, serves `/`, `/healthz`
//! and `/metrics`, and shuts down gracefully. The services mount their routers on it. [`ConfigFile`] parses the text
//! once, and each crate reads its own sections from it.
//!
//! Reading order: [`config`], [`expand`] (references such as `${NAME}`), [`Secret`], [`mask`], then [`http`], `accept`
//! (the life of a connection), `connections` (limits on their number), [`guard`] (who may send requests), [`access`]
//! (the bearer token), [`admin`] (who sees the statistics of all callers), [`metrics`].

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod accept;
pub mod access;
pub mod admin;
mod authority;
mod body_budget;
mod body_with_permit;
pub mod config;
mod connection_activity;
mod connection_limits;
mod connection_stream;
mod connections;
pub mod error_response;
pub mod expand;
mod gateway_totals;
mod graceful_shutdown;
pub mod guard;
pub mod http;
pub mod mask;
mod memory_budget;
pub mod metrics;
pub mod ownership;
pub mod private_file;
pub mod random;
mod rate_limited_log;
mod request_body;
mod root_page;
mod secret;
mod tls;
pub mod url;

pub use accept::ConnectionContext;
pub use body_budget::{BodyBudget, BodyPermit, BodyRejected};
pub use body_with_permit::BodyWithPermit;
pub use config::{ConfigError, ConfigFile, HttpSettings};
pub use gateway_totals::{GatewayTotals, ServerCallTotals};
pub use graceful_shutdown::GracefulShutdown;
pub use http::HttpServer;
pub use memory_budget::{MemoryBudget, MemoryShare};
pub use secret::Secret;
pub use tls::ServerTls;
