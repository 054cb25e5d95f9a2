//! Servers and providers for Toolcrib's own tests. A test starts them, talks to them and stops them.
//!
//! The MCP servers are binaries of this package. The LLM [`provider`] is a library, so that a test can inspect the
//! requests that it received, and also a binary for manual use. [`redis`] starts a real Redis server. [`tls`] puts TLS
//! in front of any of these servers.

// Only tests use this crate, and if the setup of a test panics, the test has failed, as it should.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc)]

mod program;
pub mod provider;
pub mod redis;
pub mod tls;

pub use program::program;
