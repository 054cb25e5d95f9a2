//! What the engine promises, seen from outside.
//!
//! `invariants` holds one property test per invariant of the design; the other files are behaviours,
//! one concept each.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod activation;
mod call;
mod disclose;
mod docs;
mod ingest;
mod invariants;
mod ledger;
mod limits;
mod listing;
mod names;
mod presets;
mod purity;
mod search;
mod support;
