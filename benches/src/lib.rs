//! What the benchmarks share: real text to measure on, the processes that are measured and a connection
//! to them, percentiles, and what a process takes of memory and time.

mod catalog;
mod connection;
mod figures;
pub mod process;

pub use catalog::{lines, repeated, sentence};
pub use connection::{Connection, Response};
pub use figures::{at, cpu_seconds, median, peak_mb, resident_mb};

/// What ends a run.
pub type Failed = Box<dyn std::error::Error + Send + Sync>;
