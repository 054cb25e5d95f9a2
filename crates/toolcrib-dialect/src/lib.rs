//! Four LLM APIs as pure state machines.
//!
//! A client's request goes up rewritten, with a few tools instead of hundreds; a response comes down
//! as if nothing had happened. In between stand our own search, answered in rounds the client never
//! sees, and what it takes to put those rounds back into its history, byte for byte. Nothing here
//! opens a socket or looks at a clock: an [`Exchange`] is told what came and says what to do next. The
//! same code runs under the proxy, a test and a fuzzer.
//!
//! Reading order: [`request`] and `read` (what a client sent), [`pass`] (whether it is rewritten at all),
//! [`exchange`] (the life of a request), [`toolset`] (what its tools become), `turn` (the rounds), `desk`
//! (what becomes of one call), `record` (what must outlive a request), and one folder for each API, with
//! the same files in all of them. [`translate`] is for a backend that speaks another API than the client.
//!
//! A whole exchange, in a harness that writes its provider's JSON itself; `send` stands for the network:
//!
//! ```
//! use std::collections::HashMap;
//! use std::sync::Arc;
//!
//! use toolcrib_core::FourChars;
//! use toolcrib_dialect::exchange::action::{Body, Setup};
//! use toolcrib_dialect::{Action, Api, Exchange, Key, Request, Toolset};
//!
//! let tools: Vec<String> = (0..40).map(|at| format!(
//!     r#"{{"type":"function","function":{{"name":"crm__report_{at}","description":"Report {at}, as it is sent to the board.",
//!     "parameters":{{"type":"object","properties":{{"month":{{"type":"string","description":"Of the report."}}}}}}}}}}"#
//! )).collect();
//! let messages = r#"[{"role":"user","content":"Report 7, please."}]"#;
//! let body = format!(r#"{{"model":"gpt-5","messages":{messages},"tools":[{}]}}"#, tools.join(","));
//! // Here the model searches, and then calls what it found.
//! let mut calls = [
//!     ("tool_search", r#"{\"query\":\"report 7\"}"#),
//!     ("tool_call", r#"{\"name\":\"crm__report_7\",\"arguments\":{\"month\":\"May\"}}"#),
//! ].into_iter();
//! let mut send = |body: &[u8]| {
//!     assert!(body.len() < 7_000);
//!     let (name, arguments) = calls.next().unwrap();
//!     let call = format!(r#"{{"id":"call_{name}","type":"function","function":{{"name":"{name}","arguments":"{arguments}"}}}}"#);
//!     format!(r#"{{"choices":[{{"index":0,"message":{{"role":"assistant","tool_calls":[{call}]}},"finish_reason":"tool_calls"}}]}}"#)
//! };
//! // What outlives a request: bytes that never change, by key. Losing them breaks nothing.
//! let mut store: HashMap<Key, Vec<u8>> = HashMap::new();
//!
//! let path = "/v1/chat/completions";
//! let request = Request::read(Api::Chat, path, body.into_bytes());
//! let setup = Setup::new("api.openai.com", Arc::new(FourChars));
//! let mut exchange = Exchange::new(Api::Chat, path, request, setup);
//! let mut response = Vec::new();
//! let done = loop {
//!     match exchange.next() {
//!         Some(Action::Load(keys)) => exchange.loaded(keys.iter().map(|key| store.get(key).cloned()).collect()),
//!         Some(Action::Prepare(plan)) => {
//!             let toolset = Toolset::new(*plan, exchange.tools()); // keep these: the next request has the same tools
//!             exchange.prepared(Arc::new(toolset));
//!         }
//!         Some(Action::Send(request)) => {
//!             let answer = send(&request.body);
//!             exchange.answered(200, false); // the status; a stream of events: `true`
//!             exchange.bytes(answer.into());
//!             exchange.end();
//!         }
//!         Some(Action::Respond(start)) => if let Body::Complete(body) = start.body { response.extend(body) },
//!         Some(Action::Forward(bytes)) => response.extend(bytes), // a stream
//!         Some(Action::Store(records)) => store.extend(records),
//!         Some(Action::FellBack(_) | Action::Learn(_)) => {} // a refused feature: see `Setup::learned`
//!         Some(Action::Done(done)) => break done,
//!         None => break Err("more of the response is awaited")?,
//!     }
//! };
//! assert_eq!(exchange.report().to_string(), "bridge: 40 tools, the threshold is 15; the API has no such feature");
//! let response = String::from_utf8(response)?;
//! assert!(response.contains(r#""name":"crm__report_7","arguments":"{\"month\":\"May\"}""#), "{response}");
//! assert!(!response.contains("tool_search"));
//! assert_eq!((done.summary.rounds, done.summary.searches), (2, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod api;
mod apis;
pub mod capability;
mod chat;
mod desk;
mod dialect;
pub mod exchange;
mod fingerprint;
mod gemini;
mod history;
pub mod messages;
pub mod mode;
pub mod pass;
mod read;
mod record;
pub mod request;
mod responses;
mod splice;
pub mod sse;
mod tools;
pub mod toolset;
pub mod translate;
mod turn;
pub mod usage;

pub use api::Api;
pub use exchange::Exchange;
pub use exchange::action::Action;
pub use mode::Mode;
pub use pass::Bypass;
pub use read::{Reading, Unread};
pub use record::Key;
pub use request::{Defers, Request};
pub use responses::Inbound;
pub use toolset::{Plan, Toolset};
pub use turn::{ROUNDS, Summary};
