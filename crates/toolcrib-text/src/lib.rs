//! Functions for text from untrusted sources: JSON that keeps its spelling, hidden characters, excerpts, and
//! suggestions for misspelled keys.
//!
//! The crates of Toolcrib share these functions. They are not part of the library's API, so they are not in
//! `toolcrib-core`.

// This crate is pure, so it may not use the methods and types that clippy.toml disallows.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod clean;
mod did_you_mean;
mod excerpt;
pub mod json;

pub use did_you_mean::{did_you_mean, nearest_spelling};
pub use excerpt::{first_sentence, first_sentence_of, shorten};
