//! Tool search for agents, as a library.
//!
//! An agent with hundreds of tools pays for every schema on every turn. A [`Crib`] shows the model a short listing of
//! the tools instead. When the model searches for a tool, the crib finds it and provides its schema. This crate is
//! pure: no I/O, no clock, no randomness. An agent loop needs two calls: [`Crib::disclose`] before each request to the
//! model, and [`Crib::handle`] for each call that the model makes.
//!
//! ```
#![doc = include_str!("../examples/agent.rs")]
//! ```
//!
//! Reading order: [`Crib`] (the engine), [`disclosure`] (what the model sees), [`reply`] (the answer to a search), [`call`]
//! (calls and their checks), [`rank`] (how tools are ranked), [`policy`] (which tools are deferred, and when), [`preset`]
//! (behaving like another system). ARCHITECTURE.md lists all modules, each after those that it uses.
//!
//! # Features
//!
//! `vectors` and `presets` are on by default.
//!
//! - `vectors`: the built-in table of token vectors, 10 MB in the binary. Without it, [`rank::RankerKind::Hybrid`] needs a table
//!   in [`Settings::vector_table`]; if there is none, tools are ranked by words alone, and
//!   [`rank::Explanation::vectors_missing`] says so.
//! - `deep`: [`Encoder`], a transformer whose vectors rank better than those of the table. The program loads its weights, embeds
//!   tools when it has time, and inserts the vectors into [`Settings::deep_vectors`].
//! - `presets`: the presets of other systems, and reading those systems' configuration.

// This crate is pure, so it may not use the methods and types that clippy.toml disallows.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod access;
mod app_meta;
mod argument_validation;
pub mod call;
mod catalog;
mod compute_disclosure;
pub mod context_window;
pub mod conversation;
mod crib;
mod description_weakness;
pub mod disclosure;
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
mod turn_context;
pub mod wire_name;

pub use app_meta::is_app_uri;
pub use call::{CallOutcome, Refusal, ToolCall};
pub use catalog::{Catalog, CatalogBuilder, ToolId};
pub use conversation::{Conversation, Conversations, Ledger};
pub use crib::Crib;
pub use description_weakness::Weakness;
pub use disclosure::Disclosure;
pub use error::Error;
pub use ingest::{Finding, IngestedTools, ListSource, Problem, ingest, ingest_with_own_names};
pub use limits::Limits;
pub use preset::Preset;
pub use query::{Query, WordQuery};
pub use reply::Reply;
pub use scope::Scope;
pub use search::SearchRequest;
pub use settings::{SearchInput, SearchSettings, SearchedTools, Settings};
pub use settings_toml::SettingsReader;
#[cfg(feature = "schema")]
pub use settings_toml::settings_schema;
pub use signature::signature;
pub use spelling::nearest_names;
pub use tokens::{FourCharsPerToken, TokenCounter};
pub use tool::{DeferPolicy, DefinitionFormat, Fingerprint, Tool, ToolAnnotations};
#[cfg(feature = "deep")]
pub use toolcrib_embed::Encoder;
pub use toolcrib_embed::{EmbeddingModel, QuantisedVector};
pub use turn_context::TurnContext;

/// Compiles and runs the examples of the page for harness authors.
#[cfg(all(doctest, feature = "vectors", feature = "presets"))]
#[doc = include_str!("../../../docs/harness.md")]
struct HarnessPage;

/// Compiles and runs the examples of this package's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
