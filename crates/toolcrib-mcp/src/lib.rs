//! Many MCP servers behind one short tool list.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod config;
mod secret;

pub use config::Config;
pub use secret::Secret;
