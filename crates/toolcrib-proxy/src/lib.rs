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

mod account_redaction;
mod admission;
mod allowed_paths;
mod api_error;
mod blocking;
pub mod caller;
pub mod caller_scope;
pub mod config;
mod credentials;
pub mod endpoint;
mod exchange_loop;
pub mod fetch_totals;
mod forward_unread;
mod headers;
mod metrics;
pub mod misplaced_keys;
mod object_ownership;
mod object_references;
mod ownership_recorder;
pub mod path;
mod proxy;
mod query;
mod read_body;
mod request_log;
mod response_object_ids;
mod revocation;
mod revoked_stream;
pub mod route;
mod start_exchange;
pub mod toolcrib_headers;
mod toolset_cache;
pub mod totals;
mod unsupported_modes;
mod upstream_request;

pub use config::Config;
#[cfg(feature = "fuzzing")]
pub use object_references::referenced_ids;
pub use proxy::{Proxy, ProxyConfigError};
pub use toolcrib_dialect::mode::RequestedMode;
pub use toolcrib_server::Secret;
pub use unsupported_modes::unsupported_mode_notices;
