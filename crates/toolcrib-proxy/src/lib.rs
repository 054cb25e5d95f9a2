//! The LLM proxy: any agent, any model, no cooperation.
//!
//! A client changes its base URL and nothing else. Its request is read, its tools are deferred where that
//! saves, our search is answered on the way, and the client gets back the calls it knows. What that takes
//! is decided in `toolcrib-dialect`, which is pure; this crate moves the bytes: it knows the upstreams,
//! who calls, where state is kept, and what was saved.
//!
//! Reading order: [`config`], [`path`] and [`endpoint`] (what a request asks for), [`caller`] (who asks, and
//! what is open to them), `inbound` (whether it may go on), [`route`] (which upstream), `accept` (a request up
//! to its exchange), `pass_on` (what is not read), `drive` (the loop), [`Proxy`] (what they share).

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod accept;
mod account;
mod blocking;
pub mod caller;
mod collect;
pub mod config;
mod credentials;
mod drive;
pub mod endpoint;
mod error;
mod head;
mod inbound;
pub mod live;
mod log;
mod metrics;
pub mod misplaced;
mod notices;
mod open_paths;
pub mod our_headers;
mod pass_on;
pub mod path;
mod proxy;
mod query;
mod recorder;
mod references;
mod revocation;
mod revoked_stream;
pub mod route;
pub mod scope;
mod stored;
mod stored_ids;
mod toolsets;
pub mod totals;
mod upstream;

pub use config::Config;
pub use notices::notices;
pub use proxy::{Proxy, Unusable};
#[cfg(feature = "fuzzing")]
pub use references::references_in;
pub use toolcrib_dialect::mode::RequestedMode;
pub use toolcrib_server::Secret;
