//! Measures the quality of a ranking on retrieval datasets.
//!
//! A dataset is a folder with a catalog and judged queries. [`Dataset`] reads one. [`evaluate`] runs every query as
//! plain words, without operators, and scores the first ten results. [`files`] reads catalog files, and other parts of
//! the program use it, too.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod dataset;
mod evaluate;
pub mod files;
mod metrics;

pub use dataset::{Dataset, JudgedQuery};
pub use evaluate::{
    DatasetReport, EvalOptions, EvalScore, Evidence, RESULTS_PER_QUERY, RunLine, WITH_EVIDENCE,
    evaluate, mean_score,
};
pub use metrics::RetrievalMetrics;
