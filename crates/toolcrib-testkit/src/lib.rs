//! Peers for Toolcrib's own tests: a test starts them, talks to them and ends them.
//!
//! The MCP servers are binaries of this package; the LLM [`provider`] is a library, so that a test
//! can hold its requests in hand, and a binary for trials by hand; [`redis`] is a real one; [`tls`] puts
//! TLS in front of any of them.

// Only tests use this, and a test that cannot be set up has failed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc)]

mod program;
pub mod provider;
pub mod redis;
pub mod tls;

pub use program::program;
