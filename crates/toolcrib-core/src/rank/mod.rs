//! Ranking: which tools fit the words.
//!
//! BM25F over the fields of a tool, in memory, term at a time. A query becomes a plan of slots, the
//! slots are run over the postings of the index, and the best candidates are looked at once more
//! for how much of their *name* was asked for. Everything is deterministic: the same catalog in
//! another order gives the same ranking, ties go to the earlier name.
//!
//! What a hidden tool says never counts: frequencies are taken within the caller's scope.

mod bonus;
mod explain;
mod fields;
mod filter;
mod index;
mod plan;
mod relation;
mod score;

pub use explain::{Explanation, Points};
pub use fields::Field;
pub(crate) use index::Index;
pub use plan::Via;

use crate::catalog::ToolId;
use crate::reply::Correction;

/// A ranked tool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Which tool.
    pub id: ToolId,
    /// How well it fits; comparable within one query only.
    pub score: f32,
    /// Whether the query names it.
    pub exact: bool,
}

/// A ranking and what was done to the query for it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Ranking {
    pub(crate) hits: Vec<Hit>,
    pub(crate) corrections: Vec<Correction>,
    /// Whether words were left out for their number.
    pub(crate) cut: bool,
}
