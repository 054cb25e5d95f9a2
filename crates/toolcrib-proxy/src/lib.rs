//! The LLM proxy, for any agent and any model.
//!
//! A client changes only its base URL. The proxy reads its request, defers its tools if that saves tokens, answers the
//! model's searches itself, and returns only calls of the client's own tools. All of that is decided in
//! `toolcrib-dialect`, which is pure. This crate does the I/O: it knows the upstreams, the callers, the store and the
//! statistics.
//!
//! Reading order: [`config`], [`path`] and [`endpoint`] (what a request is for), [`caller`] (who sends it) and
//! [`caller_scope`] (which tools the caller may see), `admission` (whether the request is accepted), [`route`] (which
//! upstream it goes to), `start_exchange` (a request up to its exchange), `forward_other_path` (requests whose body is
//! not read), `exchange_loop` (the loop that runs an exchange), [`Proxy`] (what all requests share).

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
mod forward_other_path;
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

pub use config::ProxyConfig;
#[cfg(feature = "fuzzing")]
pub use object_references::referenced_ids;
pub use proxy::{Proxy, ProxyConfigError};
pub use toolcrib_dialect::mode::RequestedMode;
pub use toolcrib_server::Secret;
pub use unsupported_modes::unsupported_mode_notices;
