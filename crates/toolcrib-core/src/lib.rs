//! Tool search for agents, as a library.
//!
//! An agent with hundreds of tools pays for every schema on every turn. A [`Crib`] holds those tools,
//! shows the model a short table of contents instead, finds what it asks for, and hands over the
//! schema then. This crate is pure: no I/O, no clock, no randomness; what a turn needs to know comes
//! in as values. Two calls go around an agent loop, [`Crib::disclose`] before the model and
//! [`Crib::handle`] after it:
//!
//! ```
#![doc = include_str!("../examples/agent.rs")]
//! ```
//!
//! Reading order: [`Crib`] (the engine), [`disclose`] (what the model sees), [`reply`] (what a search
//! answers), [`call`] (how it calls), [`rank`] (why this tool and not that one), [`policy`] (which
//! tools are deferred, and when), [`preset`] (to behave like another system). ARCHITECTURE.md lists
//! all modules, each after those that it uses.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod call;
mod catalog;
pub mod conversation;
mod crib;
pub mod disclose;
mod disclosure;
mod error;
mod ingest;
mod limits;
pub mod listing;
mod own_names;
mod pattern;
pub mod policy;
pub mod preset;
mod query;
pub mod rank;
pub mod reply;
mod scope;
mod search;
mod settings;
mod settings_toml;
mod signature;
mod spelling;
mod text;
mod tokens;
mod tool;
mod turn;
mod validate;
mod weak;
pub mod window;
pub mod wire_name;

pub use call::{Call, Outcome, Refusal};
pub use catalog::{Catalog, CatalogBuilder, ToolId};
pub use conversation::{Conversation, Conversations, Ledger};
pub use crib::Crib;
pub use disclosure::Disclosure;
pub use error::Error;
pub use ingest::{Finding, Ingest, Origin, Problem, ingest, ingest_beside};
pub use limits::Limits;
pub use preset::Preset;
pub use query::{Query, Words};
pub use reply::Reply;
pub use scope::Scope;
pub use search::Ask;
pub use settings::{Among, Input, SearchSettings, Settings};
pub use signature::signature;
pub use tokens::{FourChars, TokenCounter};
pub use tool::{Defer, EMPTY_SCHEMA, Fingerprint, Hints, Shape, Tool};
pub use toolcrib_embed::Model;
pub use turn::Turn;
pub use weak::Weakness;

/// The page for harness authors, compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/harness.md")]
struct HarnessPage;
