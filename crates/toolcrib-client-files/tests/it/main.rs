//! Tests of the editors and of the undo, over generated files and examples.

#![allow(clippy::unwrap_used, missing_docs)]

mod examples;
mod generated;
mod properties;
