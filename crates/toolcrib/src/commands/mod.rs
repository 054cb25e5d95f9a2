//! One file per command, each with the same shape: load, ask the engine, print the answer.

pub(crate) mod demo;
pub(crate) mod eval;
pub(crate) mod explain;
pub(crate) mod gateway;
pub(crate) mod import;
mod live;
pub(crate) mod search;
pub(crate) mod stats;
