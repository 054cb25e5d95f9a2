//! Ranking: which tools fit the words.
//!
//! Ours has two signals. The words: BM25F over the fields of a tool, in memory, term at a time: a query
//! becomes a plan of slots, the slots are run over the postings of the index, and the best candidates
//! are looked at once more for how much of their *name* was asked for. The vectors: the cosine of the
//! query and every tool, from a table inside the program. One function makes a score of the two. The
//! same catalog in another order gives the same ranking, ties go to the earlier name. Beside it stand
//! two small rankers that other systems have: their presets use them.
//!
//! A score orders; whether the first is good enough to be an answer is another question, and `confidence`
//! answers it.
//!
//! What a hidden tool says never counts, in any of them: frequencies are taken within the caller's
//! scope.

mod bm25;
mod bonus;
mod confidence;
mod coverage_bonus;
mod custom;
mod explain;
mod fields;
mod filter;
mod fit;
mod fuse;
mod hybrid;
mod index;
mod needs;
mod overlap;
mod query_plan;
mod query_vectors;
mod related_terms;
mod vector_table;
mod vectors;
mod word_ranker;

pub use custom::{CustomRanker, RankRequest, ScoredTool};
pub use explain::{Explanation, ScorePart, Similarity};
pub use fields::Field;
pub use fit::{Fit, FitDecision, FitReason};
pub use query_plan::TermMatch;
pub use vector_table::VectorTable;
pub use vectors::EmbeddingWork;

pub(crate) use custom::CheckedRanker;
pub(crate) use fit::{decide_fit, is_confident_enough_to_show};
pub(crate) use vectors::Vectors;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::catalog::{Catalog, ToolId};
use crate::limits::Limits;
use crate::query::Words;
use crate::scope::Scope;
use crate::spelling::Spellings;
use bm25::Bm25;
use hybrid::Hybrid;
use index::Index;
use overlap::Overlap;

/// How tools are ranked.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RankSettings {
    /// Which ranker.
    #[serde(rename = "by")]
    pub ranker: RankerKind,
    /// Results at most, however many were asked for; 0 for as many as fit.
    pub cap: usize,
    /// A folder with another table of vectors than the one inside the program. This crate does no I/O:
    /// the program that reads the file loads the folder, and sets [`Settings::table`](crate::Settings::table).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding_model: Option<PathBuf>,
    /// What plain BM25 is told.
    pub bm25: Bm25Settings,
}

impl RankSettings {
    /// Whether an index computed under these settings serves under the others too.
    pub(crate) fn same_index(&self, other: &Self) -> bool {
        self.ranker == other.ranker && self.bm25.parameters == other.bm25.parameters
    }
}

/// What plain BM25 is told.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RankerKind {
    /// Ours: words and vectors.
    #[default]
    Hybrid,
    /// Ours, words alone.
    Words,
    /// Plain BM25.
    Bm25,
    /// Keyword overlap.
    Overlap,
}

impl RankerKind {
    /// Whether `+must`, `-not`, `server:` and quoted phrases mean something. To the other rankers
    /// all of a query is words, as in the systems they come from.
    pub fn knows_operators(self) -> bool {
        matches!(self, Self::Hybrid | Self::Words)
    }

    /// Whether hits have a confidence and replies a fit. What the scores of the other rankers mean has not
    /// been measured.
    pub fn has_confidence(self) -> bool {
        matches!(self, Self::Hybrid | Self::Words)
    }
}

/// What a ranker reads besides its own index, the query and the scope.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RankInputs<'a> {
    /// The catalog that the ranker was built from.
    pub(crate) catalog: &'a Catalog,
    /// The spellings of its names.
    pub(crate) spellings: &'a Spellings,
    /// The vectors of its tools.
    pub(crate) vectors: &'a Vectors,
    /// How tools are ranked.
    pub(crate) settings: &'a RankSettings,
    /// Limits on queries and names.
    pub(crate) limits: &'a Limits,
    /// Whether a `+word` must be in the name of a tool.
    pub(crate) must_in_name: bool,
}

/// One way of ranking, computed ready for one catalog.
pub(crate) trait Ranker: fmt::Debug + Send + Sync {
    /// The best `limit` tools in scope for the words.
    fn search(
        &self,
        inputs: &RankInputs<'_>,
        words: &Words,
        scope: &Scope,
        limit: usize,
    ) -> Ranking;

    /// Every number behind a tool's rank.
    fn explain(
        &self,
        inputs: &RankInputs<'_>,
        words: &Words,
        scope: &Scope,
        id: ToolId,
    ) -> Explanation;

    /// Bytes on the heap, as allocated for what is there.
    fn bytes(&self) -> usize;
}

/// Makes a catalog ready for the way of ranking that is set.
pub(crate) fn build(
    catalog: &Catalog,
    settings: &RankSettings,
    limits: &Limits,
    has_table: bool,
) -> Arc<dyn Ranker> {
    match settings.ranker {
        RankerKind::Hybrid if has_table => Arc::new(Hybrid::build(catalog, limits)),
        // Without a table of vectors, the words decide alone.
        RankerKind::Hybrid | RankerKind::Words => Arc::new(Index::build(catalog, limits)),
        RankerKind::Bm25 => Arc::new(Bm25::build(catalog, settings.bm25.parameters)),
        RankerKind::Overlap => Arc::new(Overlap::build(catalog)),
    }
}

/// A ranked tool.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Hit {
    /// Which tool.
    pub id: ToolId,
    /// How well it fits; comparable within one query only.
    pub score: f32,
    /// What of the score is for its place: where a request has several needs, for being the first or for
    /// being near to a need that no hit before it is near to.
    pub coverage_bonus: f32,
    /// Whether the query names it.
    pub exact: bool,
    /// How likely it is to serve, from 0 to 1; docs/ranking.md says where that holds. `None` from the
    /// rankers of other systems.
    pub confidence: Option<f32>,
}

/// A word that was read as another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Correction {
    /// As it was written.
    pub word: String,
    /// As it was read.
    pub read_as: String,
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
    let hit = |(id, score)| Hit { id, score, coverage_bonus: 0.0, exact: false, confidence: None };
    scored.into_iter().map(hit).collect()
}
