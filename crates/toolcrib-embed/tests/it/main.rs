//! Integration tests of the public API.

#![allow(clippy::unwrap_used, clippy::float_cmp)]

mod embedding;
#[cfg(feature = "deep")]
mod encoder;
mod python_agreement;
mod table_builder;
mod untrusted_input;
