//! Ranking: which tools fit the words.
//!
//! Ours is BM25F over the fields of a tool, in memory, term at a time: a query becomes a plan of
//! slots, the slots are run over the postings of the index, and the best candidates are looked at
//! once more for how much of their *name* was asked for. The same catalog in another order gives
//! the same ranking, ties go to the earlier name. Beside it stand two small rankers that other
//! systems have: their presets use them.
//!
//! What a hidden tool says never counts, in any of them: frequencies are taken within the caller's
//! scope.

mod bm25;
mod bonus;
mod explain;
mod fields;
mod filter;
mod index;
mod overlap;
mod plan;
mod relation;
mod score;

pub use explain::{Explanation, Points};
pub use fields::Field;
pub use plan::Via;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::catalog::{Catalog, ToolId};
use crate::crib::Crib;
use crate::query::Words;
use crate::reply::Correction;
use crate::scope::Scope;
use crate::settings::Settings;
use bm25::Bm25;
use index::Index;
use overlap::Overlap;

/// How tools are ranked.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RankSettings {
    /// Which ranker.
    pub by: By,
    /// Results at most, however many were asked for; 0 for as many as fit.
    pub cap: usize,
    /// What plain BM25 is told.
    pub bm25: Bm25Settings,
}

impl RankSettings {
    /// Whether an index made under these settings serves under the others too.
    pub(crate) fn same_index(&self, other: &Self) -> bool {
        self.by == other.by && self.bm25.parameters == other.bm25.parameters
    }
}

/// What plain BM25 is told.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bm25Settings {
    /// How soon more of the same word stops counting.
    pub k1: f32,
    /// How much a long text loses.
    pub b: f32,
    /// Whether the names of top-level parameters are searched too.
    pub parameters: bool,
    /// Whether a query without a hit is looked for inside the names, as it stands.
    pub substring: bool,
}

impl Default for Bm25Settings {
    fn default() -> Self {
        Self { k1: 1.5, b: 0.75, parameters: true, substring: true }
    }
}

/// Which ranker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Ours.
    #[default]
    Words,
    /// Plain BM25.
    Bm25,
    /// Keyword overlap.
    Overlap,
}

impl By {
    /// Whether `+must`, `-not`, `server:` and quoted phrases mean something. To the other rankers
    /// all of a query is words, as in the systems they come from.
    pub fn knows_operators(self) -> bool {
        self == Self::Words
    }
}

/// One way of ranking, made ready for one catalog.
pub(crate) trait Ranker: fmt::Debug + Send + Sync {
    /// The best `limit` tools in scope for the words.
    fn search(&self, crib: &Crib, words: &Words, scope: &Scope, limit: usize) -> Ranking;

    /// Every number behind a tool's rank.
    fn explain(&self, crib: &Crib, words: &Words, scope: &Scope, id: ToolId) -> Explanation;

    /// Bytes on the heap, as allocated for what is there.
    fn bytes(&self) -> usize;
}

/// Makes a catalog ready for the way of ranking that is set.
pub(crate) fn build(catalog: &Catalog, settings: &Settings) -> Arc<dyn Ranker> {
    match settings.rank.by {
        By::Words => Arc::new(Index::build(catalog, &settings.limits)),
        By::Bm25 => Arc::new(Bm25::build(catalog, settings.rank.bm25.parameters)),
        By::Overlap => Arc::new(Overlap::build(catalog)),
    }
}

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

/// The best `limit` of these: by score, then in the order of the catalog.
fn best_first(mut scored: Vec<(ToolId, f32)>, limit: usize) -> Vec<Hit> {
    scored.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    scored.truncate(limit);
    scored.into_iter().map(|(id, score)| Hit { id, score, exact: false }).collect()
}
