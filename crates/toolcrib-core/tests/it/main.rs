//! Integration tests of the engine.
//!
//! `invariants` has property tests of the invariants of the design. Each of the other files tests one concept.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod activation;
mod call;
mod confidence;
mod custom_ranker;
mod deep_vectors;
mod disclose;
#[cfg(feature = "presets")]
mod docs;
mod hybrid;
mod ingest;
mod invariants;
#[cfg(feature = "vectors")]
mod languages;
mod ledger;
mod limits;
mod listing;
mod names;
#[cfg(feature = "presets")]
mod presets;
mod purity;
mod search;
mod split_calls;
mod support;
