//! A scripted LLM provider: the upstream of the proxy's tests, in four dialects.
//!
//! It plays a small model that knows what it wants. A [`Script`] actions which tools the model means to
//! use; how it gets at them is decided per request, from the tools declared there and the answers
//! already in the history. Given all tools it calls directly; given a search it searches first. So
//! one script, played with and without Toolcrib in between, must give the client the same calls.
//! Nothing is remembered between requests (except answers that `previous_response_id` names): the
//! place in the script is read off the history.
//!
//! Beside the scripts there is a queue of [`CannedResponse`]s for faults: exact bytes, statuses, stalls, cuts.
//!
//! - [`script`]: what a model means to do
//! - [`options`]: how the provider behaves: refusals, quirks, binding, pace
//! - [`answer`]: answers that are given as they are, and ways to fault a scripted one
//! - [`record`]: requests as they were received
//! - [`server`]: the process
//!
//! Inside: `ask` is a request without its dialect, `mind` decides what to action to it, and each of
//! `chat`, `responses`, `anthropic` and `gemini` reads, checks and writes one dialect.

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
