//! What the benchmarks share: real text to measure on, percentiles, and the memory of a process.

mod catalog;
mod figures;

pub use catalog::{lines, repeated, sentence};
pub use figures::{at, median, resident_mb};
