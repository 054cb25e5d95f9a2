//! What the network interfaces share: one HTTP listener, one configuration file.
//!
//! The MCP gateway and the LLM proxy are served by the same listener and configured in the same file,
//! and neither knows of the other. [`HttpServer`] binds, guards every route, answers `/healthz` and
//! `/metrics`, and drains; the services mount their routers on it. [`ConfigFile`] parses the text once;
//! each crate reads its own sections from it.
//!
//! Reading order: [`config`], [`expand`] (references such as `${NAME}`), [`Secret`], [`mask`], then
//! [`http`], [`guard`] (who may send requests), [`access`] (the bearer token), [`admin`] (who
//! sees all figures), [`metrics`].

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod access;
pub mod admin;
mod authority;
pub mod config;
mod drain;
pub mod expand;
pub mod guard;
pub mod http;
mod listener;
pub mod mask;
pub mod metrics;
pub mod private_file;
pub mod random;
mod secret;
pub mod url;

pub use config::{ConfigError, ConfigFile, HttpSettings};
pub use drain::Drain;
pub use http::HttpServer;
pub use secret::Secret;
