//! What the network interfaces share: one HTTP listener, one configuration file.
//!
//! The MCP gateway and the LLM proxy are served by the same listener and configured in the same file,
//! and neither knows of the other. [`HttpServer`] binds, limits connections, guards every route, answers `/`,
//! `/healthz` and `/metrics`, and drains; the services mount their routers on it. [`ConfigFile`] parses the text once;
//! each crate reads its own sections from it.
//!
//! Reading order: [`config`], [`expand`] (references such as `${NAME}`), [`Secret`], [`mask`], then
//! [`http`], `accept` (the life of a connection), `connections` (how many there may be), [`guard`] (who may send
//! requests), [`access`] (the bearer token), [`admin`] (who sees all figures), [`metrics`].

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod accept;
pub mod access;
mod activity;
pub mod admin;
mod authority;
mod body;
mod body_budget;
pub mod config;
mod connections;
mod drain;
pub mod expand;
mod file_limit;
pub mod guard;
mod holding_body;
pub mod http;
pub mod mask;
mod memory_total;
pub mod metrics;
pub mod ownership;
pub mod private_file;
pub mod random;
mod rare_log;
pub mod refusal;
mod root_page;
mod secret;
mod stream;
mod tls;
pub mod url;

pub use accept::ConnectionInfo;
pub use body_budget::{BodyBudget, BodyPermit, BodyRefused};
pub use config::{ConfigError, ConfigFile, HttpSettings};
pub use drain::Drain;
pub use holding_body::HoldingBody;
pub use http::HttpServer;
pub use memory_total::{MemoryShare, MemoryTotal};
pub use secret::Secret;
pub use tls::ServerTls;
