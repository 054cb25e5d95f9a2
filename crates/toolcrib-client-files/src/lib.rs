//! Edits of the config files of MCP clients, without changing comments or formatting elsewhere, and the undo of such an
//! edit after the file was changed again.
//!
//! [`Format`] parses and edits a text. [`undo`] inverts an edit with a three-way merge. Nothing here reads or writes
//! files.

// This crate is pure, so it may not use the methods and types that clippy.toml disallows.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod dotenv;
mod edit;
mod format;
mod json;
mod lines;
mod problem;
mod toml_document;
mod tree;
mod undo;
pub mod yaml;
mod yaml_lines;

pub use edit::{Edit, KeyPath, Place, replace_entries};
pub use format::Format;
pub use lines::{DiffLine, LineKind, diff, merge};
pub use problem::FileProblem;
pub use tree::get;
pub use undo::{Change, Conflict, UndoError, Undone, undo};
