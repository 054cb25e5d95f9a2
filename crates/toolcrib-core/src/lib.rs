//! Tool search for agents, as a library.
//!
//! An agent with hundreds of tools pays for every schema on every turn. A [`Crib`] holds those tools,
//! shows the model a short table of contents instead, finds what it asks for, and hands over the
//! schema then. This crate is pure: no I/O, no clock, no randomness; what a turn needs to know comes
//! in as values.
//!
//! ```
//! use toolcrib_core::{Catalog, Conversation, Crib, Outcome, Scope, Settings, Turn};
//!
//! let tools = r#"[{"name": "create_issue", "description": "Opens an issue in a repository.",
//!                  "input_schema": {"type": "object", "properties": {"title": {"type": "string"}},
//!                                   "required": ["title"]}}]"#;
//! let settings = Settings::from_toml("[activation]\nmode = 'on'")?;
//! let crib = Crib::new(Catalog::from_json(tools.as_bytes())?, settings);
//! let scope = Scope::all(crib.catalog());
//! let turn = Turn::new(&scope);
//! let mut conversation = Conversation::new();
//!
//! // What goes into the request: three small tools in place of the catalog.
//! let shown = crib.disclose(&turn, &mut conversation);
//! assert_eq!(shown.own.len(), 3);
//!
//! // What becomes of the model's calls.
//! let found = crib.handle(&turn, &mut conversation, "tool_search", r#"{"query": "report a bug"}"#);
//! let Outcome::Answer(reply) = found else { panic!("a search is answered") };
//! assert_eq!(reply.loaded, ["create_issue"]);
//!
//! let call = r#"{"name": "create_issue", "arguments": {"title": "Crash"}}"#;
//! let Outcome::Run(call) = crib.handle(&turn, &mut conversation, "tool_call", call) else {
//!     panic!("a valid call is run")
//! };
//! assert_eq!((call.name.as_str(), call.arguments.get()), ("create_issue", r#"{"title": "Crash"}"#));
//! # Ok::<(), toolcrib_core::Error>(())
//! ```
//!
//! Reading order: [`Crib`] (the engine), `disclose` (what the model sees), `search` (how it finds),
//! `call` (how it calls), `rank` (why this tool and not that one).

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod call;
mod catalog;
pub mod clean;
pub mod conversation;
mod crib;
pub mod disclose;
mod error;
mod ingest;
mod json;
mod limits;
pub mod listing;
mod pattern;
pub mod policy;
pub mod preset;
mod query;
pub mod rank;
pub mod reply;
mod scope;
mod search;
mod settings;
mod signature;
mod spelling;
pub mod text;
mod tokens;
mod tool;
mod weak;
pub mod wire_name;

pub use call::{Call, Outcome, Refusal};
pub use catalog::{Catalog, CatalogBuilder, ToolId};
pub use conversation::{Conversation, Conversations, Ledger};
pub use crib::Crib;
pub use disclose::{Disclosure, Turn};
pub use error::Error;
pub use ingest::{Finding, Ingest, Origin, Problem, ingest};
pub use limits::Limits;
pub use preset::Preset;
pub use query::{Query, Words};
pub use reply::Reply;
pub use scope::Scope;
pub use search::Ask;
pub use settings::{Among, Input, SearchSettings, Settings};
pub use signature::signature;
pub use tokens::{FourChars, TokenCounter};
pub use tool::{Defer, EMPTY_SCHEMA, Fingerprint, Shape, Tool};
pub use weak::Weakness;
