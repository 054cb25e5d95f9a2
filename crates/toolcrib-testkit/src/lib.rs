//! Servers and providers for Toolcrib's own tests: a test starts them, talks to them and stops them.
//!
//! The MCP servers are binaries of this package. The LLM [`provider`] is a library, so that a test can inspect the
//! requests it received, and a binary for manual use. [`redis`] starts a real Redis server. [`tls`] puts TLS in front
//! of any of them.

// Only tests use this crate, and a test whose setup fails has failed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc)]

mod program;
pub mod provider;
pub mod redis;
pub mod tls;

pub use program::program;
