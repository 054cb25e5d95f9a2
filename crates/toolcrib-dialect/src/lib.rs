//! Four LLM APIs as pure state machines.
//!
//! A client's request goes up rewritten, with a few tools instead of hundreds; a response comes down
//! as if nothing had happened. In between stand our own search, answered in rounds the client never
//! sees, and what it takes to put those rounds back into its history, byte for byte. Nothing here
//! opens a socket or looks at a clock: [`Turn`] eats requests, responses and events, and says what to
//! send next. The same code runs under the proxy, a test and a fuzzer.
//!
//! Reading order: [`request`] (what a client sent), [`toolset`] (what its tools become), [`turn`] (the
//! loop), [`desk`] (what becomes of one call), [`record`] (what must outlive a request), and one folder
//! for each API, with the same files in all of them. [`translate`] is for a backend that speaks another
//! API than the client.
//!
//! A whole turn, in a harness that writes its provider's JSON itself; `send` stands for the way there:
//!
//! ```
//! use std::collections::HashMap;
//! use std::sync::Arc;
//!
//! use toolcrib_core::{FourChars, Settings};
//! use toolcrib_dialect::capability::{Learned, resolve};
//! use toolcrib_dialect::decide::{Wish, decide};
//! use toolcrib_dialect::history;
//! use toolcrib_dialect::record::{Past, Places};
//! use toolcrib_dialect::{Api, Key, Next, Plan, Request, Toolset, Turn, turn};
//!
//! let tools: Vec<String> = (0..40).map(|at| format!(
//!     r#"{{"type":"function","function":{{"name":"crm__report_{at}","description":"Report {at}, as it is sent to the board.",
//!     "parameters":{{"type":"object","properties":{{"month":{{"type":"string","description":"Of the report."}}}}}}}}}}"#
//! )).collect();
//! let messages = r#"[{"role":"user","content":"Report 7, please."}]"#;
//! let body = format!(r#"{{"model":"gpt-5","messages":{messages},"tools":[{}]}}"#, tools.join(","));
//! // Here the model searches, and then calls what it found.
//! let mut said = [
//!     ("tool_search", r#"{\"query\":\"report 7\"}"#),
//!     ("tool_call", r#"{\"name\":\"crm__report_7\",\"arguments\":{\"month\":\"May\"}}"#),
//! ].into_iter();
//! let mut send = |body: String| {
//!     assert!(body.contains("tool_search") && body.len() < 7_000);
//!     let (name, arguments) = said.next().unwrap();
//!     let call = format!(r#"{{"id":"call_{name}","type":"function","function":{{"name":"{name}","arguments":"{arguments}"}}}}"#);
//!     format!(r#"{{"choices":[{{"index":0,"message":{{"role":"assistant","tool_calls":[{call}]}},"finish_reason":"tool_calls"}}]}}"#)
//! };
//! // What outlives a request: bytes that never change, by key. Losing them breaks nothing.
//! let mut kept: HashMap<Key, Vec<u8>> = HashMap::new();
//!
//! let request = Request::read(Api::Chat, "/v1/chat/completions", body.into_bytes());
//! let request = Arc::new(request.map_err(|(why, _)| why.to_string())?); // an error: send it as it is
//! let places = Places::of(&request, [0; 32]); // who calls, where several do
//! let past = Past::found(&places, places.keys().iter().map(|key| kept.get(key).cloned()).collect());
//! let can = resolve(Api::Chat, "api.openai.com", &request.model, None, &Learned::default(), 0);
//! let Some((mode, because)) = decide(Api::Chat, Wish::Auto, &can, past.mode()) else { unreachable!() };
//! assert_eq!((mode.name(), because.to_string().as_str()), ("bridge", "the API has no such feature"));
//! let plan = |loaded| Plan {
//!     api: Api::Chat,
//!     mode,
//!     settings: Settings::default(),
//!     counter: Arc::new(FourChars),
//!     model: request.model.clone(),
//!     context: None,
//!     sticky: past.mode().is_some(),
//!     second_names: past.second_names(),
//!     counts: request.counts,
//!     loaded,
//! };
//! let mut toolset = Toolset::new(plan(past.loaded()), request.tools());
//! let more = history::must_load(&request, &past, &toolset);
//! if !more.is_empty() {
//!     toolset = Toolset::new(plan([past.loaded(), more].concat()), request.tools());
//! }
//! assert_eq!((toolset.deferred(), toolset.passes_through()), (40, false)); // if so: send it as it is
//!
//! let mut turn = Turn::new(Arc::clone(&request), places, past, Arc::new(toolset), turn::ROUNDS);
//! let done = loop {
//!     let answer = send(turn.request());
//!     // For a stream: `bytes` with what comes, then `end`.
//!     match turn.whole(answer.as_bytes()).ok_or("not an answer of this API")? {
//!         Next::Again => {}
//!         Next::Done(done) => break done,
//!     }
//! };
//! kept.extend(done.records);
//! let answer = done.body.unwrap_or_default();
//! assert!(answer.contains(r#""name":"crm__report_7","arguments":"{\"month\":\"May\"}""#), "{answer}");
//! assert!(!answer.contains("tool_search"));
//! assert_eq!((done.summary.rounds, done.summary.searches), (2, 1));
//! # Ok::<(), String>(())
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod api;
pub mod capability;
mod chat;
pub mod decide;
pub mod desk;
mod dialect;
mod gemini;
pub mod history;
pub mod messages;
pub mod mode;
pub mod record;
pub mod request;
mod responses;
pub mod sse;
mod tools;
pub mod toolset;
pub mod translate;
pub mod turn;
pub mod usage;

pub use api::Api;
pub use mode::Mode;
pub use record::{Key, Record};
pub use request::{Bypass, Defers, Request};
pub use responses::Inbound;
pub use tools::narrowed;
pub use toolset::{Plan, Toolset};
pub use turn::{Next, Turn};
