//! A scripted LLM provider with four APIs, which is the upstream in the proxy's tests.
//!
//! It simulates a small model with a plan. A [`Script`] lists the tools that the model wants to use. How the model
//! reaches them is decided for each request, from the declared tools and the results in the history. If all tools are
//! declared, the model calls them directly. If there is a search tool, the model searches first. A script must
//! therefore give the client the same calls with and without Toolcrib in between. The provider derives its position in
//! the script from the history. It stores no conversations, except the responses that `previous_response_id` can name.
//!
//! In addition to the scripts, there is a queue of [`CannedResponse`]s for faults: exact bytes, statuses, stalls, and
//! aborted connections.
//!
//! - [`script`]: what the model does
//! - [`options`]: how the provider behaves: rejected features, quirks, bound thinking, pace
//! - [`canned_response`]: responses that are sent as given, and faults in scripted ones
//! - [`received_request`]: requests as they were received
//! - [`server`]: the HTTP server
//!
//! Internally, `parsed_request` represents a request independent of its API, `model` decides the reply to a parsed
//! request, and `respond` performs all steps from the received request to the response. Each of `chat`, `responses`,
//! `anthropic` and `gemini` reads, checks and writes one API.

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
