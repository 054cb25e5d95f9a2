//! Four LLM APIs as pure state machines.
//!
//! The upstream gets a request with a few tools instead of hundreds. Calls of Toolcrib's search are answered in hidden
//! rounds, which the client does not see. When the client sends its next request, these rounds are restored in the
//! history, byte for byte.
//!
//! Nothing here does I/O or reads a clock. The driver of an [`Exchange`] reports what happened, and the exchange
//! returns the next action. The same code runs in the proxy, in tests and in a fuzzer.
//!
//! Reading order:
//!
//! 1. [`exchange`]: the life of one request
//! 2. [`request`], `read_request`, `history_segments`: what a client sent
//! 3. `scope`: which tools a caller may send
//! 4. [`passthrough`]: whether a request is rewritten at all
//! 5. [`mode`], [`capability`]: how tools are deferred, and what the upstream supports
//! 6. [`toolset`], `tool_list`: what is sent instead of the client's tools
//! 7. `turn`, `upstream_history`: the rounds of one turn, and the history that the upstream sees
//! 8. `call_router`: what happens to each call
//! 9. `response_check`: what a caller with a limited scope may receive
//! 10. `hidden_rounds`, `record_keys`: what is stored between requests
//! 11. one folder for each API, and [`translate`] for an upstream whose API differs from the client's
//!
//! # Example
//!
//! This is the complete loop of a harness that writes its provider's JSON itself. `send` represents the network: it
//! returns a status and a body, or `None` if the provider cannot be reached.
//!
//! ```
//! use std::collections::HashMap;
//! use std::sync::Arc;
//!
//! use toolcrib_core::FourCharsPerToken;
//! use toolcrib_dialect::capability::LearnedUnsupported;
//! use toolcrib_dialect::exchange::action::{Ending, ExchangeConfig, ExchangeOutcome, OutgoingRequest, ResponseBody};
//! use toolcrib_dialect::{Action, Api, Exchange, RecordKey, Request, Toolset};
//!
//! /// The state between requests. If it is lost, the model has to search again.
//! #[derive(Default)]
//! struct State {
//!     records: HashMap<RecordKey, Vec<u8>>,
//!     toolsets: HashMap<[u8; 32], Arc<Toolset>>,
//!     unsupported: LearnedUnsupported,
//! }
//!
//! fn ask(body: String, state: &mut State, send: &mut dyn FnMut(&OutgoingRequest) -> Option<(u16, String)>) -> (Vec<u8>, ExchangeOutcome) {
//!     let path = "/v1/chat/completions";
//!     let mut config = ExchangeConfig::new("api.openai.com", Arc::new(FourCharsPerToken)); // toolcrib-tokens counts exactly
//!     config.learned = state.unsupported.clone(); // a program that runs for days sets `now` as well
//!     let request = Request::read(Api::Chat, path, body.into_bytes());
//!     let mut exchange = Exchange::new(Api::Chat, path, request, config);
//!     let (mut upstream, mut response) = (None, Vec::new());
//!     loop {
//!         match exchange.next_action() {
//!             Some(Action::LoadRecords(keys)) => {
//!                 let found = keys.iter().map(|key| state.records.get(key).cloned()).collect();
//!                 exchange.records_loaded(found);
//!             }
//!             Some(Action::PrepareToolset(plan)) => {
//!                 let tools = exchange.tools();
//!                 let known = state.toolsets.entry(plan.cache_key(tools));
//!                 let toolset = Arc::clone(known.or_insert_with(|| Arc::new(Toolset::new(*plan, tools))));
//!                 exchange.toolset_prepared(toolset);
//!             }
//!             // In addition to the body, `request` has the path and the beta features to request.
//!             Some(Action::Send(request)) => match send(&request) {
//!                 Some((status, body)) => {
//!                     upstream = Some(body);
//!                     exchange.response_started(status, false); // `true` for a stream of events
//!                 }
//!                 None => exchange.upstream_unreachable(),
//!             },
//!             // The exchange waits for more of the response. Pass each piece of a stream as it arrives.
//!             None => match upstream.take() {
//!                 Some(body) => {
//!                     exchange.response_bytes(body.into());
//!                     exchange.response_ended();
//!                 }
//!                 None => exchange.response_cut_off(),
//!             },
//!             Some(Action::StartResponse(start)) => match start.body {
//!                 ResponseBody::Complete(body) => response.extend(body),
//!                 ResponseBody::Passthrough => response.extend(upstream.take().unwrap_or_default().into_bytes()),
//!                 ResponseBody::Forwarded => {} // the body arrives in `Forward` actions
//!             },
//!             Some(Action::Forward(bytes)) => response.extend(bytes),
//!             Some(Action::StoreRecords(records)) => state.records.extend(records),
//!             Some(Action::Remember(unsupported)) => state.unsupported.merge(unsupported),
//!             Some(Action::FellBack(_)) => {} // only for logs
//!             Some(Action::Done(outcome)) => return (response, outcome),
//!         }
//!     }
//! }
//!
//! # let tools: Vec<String> = (0..40).map(|at| format!(
//! #     r#"{{"type":"function","function":{{"name":"crm__report_{at}","description":"Report {at}, as it is sent to the board.",
//! #     "parameters":{{"type":"object","properties":{{"month":{{"type":"string","description":"Of the report."}}}}}}}}}}"#
//! # )).collect();
//! # let body = |messages: &str| format!(r#"{{"model":"gpt-5","messages":[{messages}],"tools":[{}]}}"#, tools.join(","));
//! # let call = |id: &str, name: &str, arguments: &str| format!(
//! #     r#"{{"id":"{id}","type":"function","function":{{"name":"{name}","arguments":"{arguments}"}}}}"#
//! # );
//! # let said = |message: String| format!(r#"{{"choices":[{{"index":0,"message":{message},"finish_reason":"stop"}}]}}"#);
//! # let calls = |call: String| format!(r#"{{"role":"assistant","tool_calls":[{call}]}}"#);
//! let mut state = State::default();
//! let question = r#"{"role":"user","content":"Report 7, please."}"#;
//! // The model searches, and then calls the tool that it found. The client sees only the call of that tool.
//! let mut rounds = vec![
//!     said(calls(call("call_1_search_abcdef", "tool_search", r#"{\"query\":\"report 7\"}"#))),
//!     said(calls(call("call_2_report_abcdef", "tool_call", r#"{\"name\":\"crm__report_7\",\"arguments\":{\"month\":\"May\"}}"#))),
//! ].into_iter();
//! let mut sizes = Vec::new();
//! let (response, outcome) = ask(body(question), &mut state, &mut |request| {
//!     sizes.push(request.body.len());
//!     Some((200, rounds.next()?))
//! });
//! let response = String::from_utf8(response)?;
//! assert!(response.contains(r#""name":"crm__report_7","arguments":"{\"month\":\"May\"}""#) && !response.contains("tool_search"));
//! assert_eq!((outcome.ending, outcome.summary.rounds, outcome.summary.searches), (Ending::Complete, 2, 1));
//! assert!(sizes[0] < body(question).len() / 2);
//!
//! // The next request contains only what the client saw. The upstream gets the hidden search as well, unchanged.
//! let call = calls(call("call_2_report_abcdef", "crm__report_7", r#"{\"month\":\"May\"}"#));
//! let result = r#"{"role":"tool","tool_call_id":"call_2_report_abcdef","content":"Up 3 %."}"#;
//! let (response, _) = ask(body(&[question, &call, result].join(",")), &mut state, &mut |request| {
//!     assert!(String::from_utf8_lossy(&request.body).contains("call_1_search_abcdef"));
//!     Some((200, said(r#"{"role":"assistant","content":"It is up."}"#.to_owned())))
//! });
//! assert!(String::from_utf8(response)?.contains("It is up."));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// This crate does no I/O and reads no clock. clippy.toml lists the methods and types that it must not use.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod api;
mod budget;
mod call_ids;
mod call_router;
pub mod capability;
mod chat;
mod dialect;
mod dialects;
pub mod exchange;
mod fingerprint;
mod gemini;
mod hidden_rounds;
mod history_segments;
mod limits;
pub mod messages;
pub mod mode;
mod parsed_size;
pub mod passthrough;
mod read_request;
mod record_keys;
pub mod request;
mod response_check;
mod responses;
mod scope;
mod splice;
pub mod sse;
mod tool_list;
pub mod toolset;
mod toolset_plan;
pub mod translate;
mod turn;
mod upstream_history;
pub mod usage;

pub use api::Api;
pub use exchange::Exchange;
pub use exchange::action::Action;
pub use limits::{LimitExceeded, ResponseLimits};
pub use mode::Mode;
pub use parsed_size::parsed_size;
pub use passthrough::PassthroughReason;
pub use read_request::{PassthroughBody, ReadResult};
pub use record_keys::RecordKey;
pub use request::{ClientDeferral, Request};
pub use response_check::WithheldReason;
pub use responses::DeferralEmulation;
pub use scope::{ScopeViolation, ToolFilter, fold_key};
pub use toolset::Toolset;
pub use toolset_plan::ToolsetPlan;
pub use turn::{DEFAULT_HIDDEN_ROUNDS, TurnSummary};
