//! Shared parts of the benchmarks: real tool descriptions, the measured processes and connections to them, percentiles,
//! and the memory and CPU time of a process.

mod catalog;
mod connection;
mod figures;
pub mod process;

pub use catalog::{lines, repeated, sentence};
pub use connection::{Connection, Response};
pub use figures::{cpu_seconds, median, peak_mb, quantile, resident_mb};

/// Any error; it ends the benchmark.
pub type BenchError = Box<dyn std::error::Error + Send + Sync>;
