//! How good a ranking is, measured on retrieval sets.
//!
//! A set is a folder with a catalog and judged queries. [`Dataset`] reads one, [`evaluate`] asks every
//! query as plain words for ten results and scores them; [`files`] is how catalogs are read anywhere.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod dataset;
mod evaluate;
pub mod files;
mod metrics;

pub use dataset::{Dataset, Judged};
pub use evaluate::{DEPTH, Ranked, Score, SetReport, evaluate, mean};
pub use metrics::Metrics;
