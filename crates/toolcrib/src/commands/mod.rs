//! The commands, one module each. A command loads its input, runs the engine and prints a report.

pub(crate) mod call;
pub(crate) mod completions;
pub(crate) mod connect;
pub(crate) mod connect_then_check;
pub(crate) mod demo;
pub(crate) mod docs;
pub(crate) mod eval;
pub(crate) mod explain;
pub(crate) mod gateway;
pub(crate) mod import;
mod live;
pub(crate) mod man;
pub(crate) mod search;
pub(crate) mod stats;
mod tool_source;
pub(crate) mod tools;
