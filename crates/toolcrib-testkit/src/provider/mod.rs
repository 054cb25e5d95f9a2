//! A scripted LLM provider: the upstream in the proxy's tests, in four dialects.
//!
//! It simulates a small model with a plan. A [`Script`] lists the tools that the model wants to use. How it reaches
//! them is decided for each request, from the declared tools and the results in the history: if all tools are declared
//! it calls them directly; if there is a search it searches first. So one script, played with and without Toolcrib in
//! between, must give the client the same calls. Nothing is remembered between requests, except responses that
//! `previous_response_id` can name: the position in the script is derived from the history.
//!
//! In addition to the scripts there is a queue of [`CannedResponse`]s for faults: exact bytes, statuses, stalls,
//! aborted connections.
//!
//! - [`script`]: what the model does
//! - [`options`]: how the provider behaves: rejected features, quirks, bound thinking, pace
//! - [`canned_response`]: responses that are sent as given, and faults in scripted ones
//! - [`received_request`]: requests as they were received
//! - [`server`]: the HTTP server
//!
//! Internally, `parsed_request` is a request independent of its dialect, `model` decides the reply to it, `respond`
//! ties both together, and each of `chat`, `responses`, `anthropic` and `gemini` reads, checks and writes one dialect.

pub mod canned_response;
pub mod options;
pub mod received_request;
pub mod script;
pub mod server;

mod anthropic;
mod chat;
mod dialect;
mod gemini;
mod goal_script;
mod ids;
mod model;
mod parsed_request;
mod respond;
mod responses;
mod route;
mod sse;
mod stream;

pub use canned_response::{BodyPart, CannedResponse, ExactResponse, StreamFault};
pub use dialect::Dialect;
pub use options::{ChatQuirk, Options, Pace, RejectedFeature};
pub use received_request::ReceivedRequest;
pub use script::{Action, Script, Step, StopReason};
pub use server::Provider;
