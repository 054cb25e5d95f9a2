//! Ranking: finds the tools that fit a query in words.
//!
//! The default ranker combines two signals. The first signal is words: BM25F over the fields of a tool. A query becomes
//! a plan of weighted terms, which are looked up in an in-memory index, one term at a time. The best candidates then
//! get bonuses, for example for the share of their *name* that the query covers. The second signal is vectors: the
//! cosine similarity of the query and every tool, from a table inside the binary. `fuse` combines the two into one
//! score. The order of the catalog does not influence the ranking, and ties are broken by name. In addition, there are
//! two small rankers for the presets of other systems.
//!
//! A score only orders the tools of one query. The probability that a hit serves the query is computed in `confidence`,
//! and `fit` decides whether any tool fits.
//!
//! Hidden tools never influence a ranking, because frequencies are counted within the caller's scope.

mod bm25;
mod bonus;
mod confidence;
mod coverage_bonus;
mod custom;
mod deep_index;
mod deep_vectors;
#[cfg(feature = "deep")]
mod encoder;
mod explain;
mod fields;
mod filter;
mod fit;
mod fuse;
mod generality;
mod hybrid;
mod index;
mod needs;
mod one_edit;
mod overlap;
mod query_plan;
mod query_vectors;
mod related_terms;
mod vector_table;
mod vectors;
mod word_ranker;

pub use custom::{CustomRanker, RankRequest, ScoredTool};
pub use deep_vectors::{DeepVectors, EncodedQuery, RequestVectors, TextEncoder, TextKey, ToolText};
pub use explain::{Explanation, ScorePart, Similarity};
pub use fields::IndexedField;
pub use fit::{Fit, FitDecision, FitReason};
pub use generality::GeneralTool;
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
use crate::query::WordQuery;
use crate::scope::Scope;
use crate::spelling::Spellings;
use bm25::Bm25;
use hybrid::Hybrid;
use index::Index;
use overlap::Overlap;

/// The settings of the ranking.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RankSettings {
    /// Which ranker is used.
    #[serde(rename = "by")]
    pub ranker: RankerKind,
    /// Maximum number of results, even if the caller requests more. 0 means no maximum.
    pub cap: usize,
    /// A folder with a vector table to use instead of the built-in one. This crate does no I/O, so the program that
    /// reads the configuration must load the folder and set [`Settings::vector_table`](crate::Settings::vector_table).
    #[cfg_attr(
        feature = "schema",
        schemars(
            description = "A folder with a vector table to use instead of the built-in one. A relative path is resolved against the folder of this file."
        )
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding_model: Option<PathBuf>,
    /// Which vectors the hybrid ranker uses.
    pub tier: TierSetting,
    /// The settings of the plain BM25 ranker.
    pub bm25: Bm25Settings,
}

/// Which vectors the hybrid ranker uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TierSetting {
    /// Deep vectors where there are any, and those of the table for the other tools.
    #[default]
    Auto,
    /// Only vectors from the table.
    Table,
    /// Like `auto`, but it is an error if there is no encoder.
    Deep,
}

impl TierSetting {
    /// All settings.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Table, Self::Deep];

    /// The name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Table => "table",
            Self::Deep => "deep",
        }
    }

    /// The setting with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.name() == name)
    }
}

/// Where the similarities of a search come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Tier {
    /// From the vector table alone.
    Table,
    /// From the encoder and the vector table.
    Deep,
}

impl RankSettings {
    /// Whether an index that was built with these settings can also be used with `other`.
    pub(crate) fn same_index(&self, other: &Self) -> bool {
        self.ranker == other.ranker && self.bm25.parameters == other.bm25.parameters
    }
}

/// The settings of the plain BM25 ranker.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Bm25Settings {
    /// Saturation of the term frequency. The lower the value, the sooner further occurrences of a word stop counting.
    pub k1: f32,
    /// Strength of the length normalisation, from 0 (none) to 1 (full).
    pub b: f32,
    /// Whether the names of top-level parameters are also indexed.
    pub parameters: bool,
    /// Whether a query that finds nothing is then searched as a substring of the tools' names.
    pub substring: bool,
}

impl Default for Bm25Settings {
    fn default() -> Self {
        Self { k1: 1.5, b: 0.75, parameters: true, substring: true }
    }
}

/// Which ranker is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RankerKind {
    /// Ranks by words and vectors.
    #[default]
    Hybrid,
    /// Ranks by words only.
    Words,
    /// Plain BM25, as in Hermes and opencode-tool-search.
    Bm25,
    /// Keyword overlap, as in everruns.
    Overlap,
}

impl RankerKind {
    /// Whether the ranker supports `+must`, `-not`, `server:` and quoted phrases. Rankers that do not support them
    /// treat the entire query as words, like the systems that they come from.
    pub fn knows_operators(self) -> bool {
        matches!(self, Self::Hybrid | Self::Words)
    }

    /// Whether the ranker provides a confidence for each hit, so that replies have a fit. The scores of the other
    /// rankers are not calibrated.
    pub fn has_confidence(self) -> bool {
        matches!(self, Self::Hybrid | Self::Words)
    }
}

/// What a ranker reads in addition to its own index, the query and the scope.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RankInputs<'a> {
    /// The catalog that the ranker was built from.
    pub(crate) catalog: &'a Catalog,
    /// Resolves spellings of tool names.
    pub(crate) spellings: &'a Spellings,
    /// The vectors of the catalog's tools.
    pub(crate) vectors: &'a Vectors,
    /// The settings of the ranking.
    pub(crate) settings: &'a RankSettings,
    /// Limits on queries and names.
    pub(crate) limits: &'a Limits,
    /// Whether a `+word` must be in the name of a tool.
    pub(crate) must_in_name: bool,
}

/// A ranker for one catalog.
pub(crate) trait Ranker: fmt::Debug + Send + Sync {
    /// Returns the best `limit` tools in scope.
    fn search(
        &self,
        inputs: &RankInputs<'_>,
        words: &WordQuery,
        scope: &Scope,
        limit: usize,
    ) -> Ranking;

    /// Returns every number from which the rank of a tool is computed.
    fn explain(
        &self,
        inputs: &RankInputs<'_>,
        words: &WordQuery,
        scope: &Scope,
        id: ToolId,
    ) -> Explanation;

    /// Approximate size on the heap, in bytes.
    fn bytes(&self) -> usize;
}

/// Builds the ranker that the settings select.
pub(crate) fn build(
    catalog: &Catalog,
    settings: &RankSettings,
    limits: &Limits,
    has_table: bool,
) -> Arc<dyn Ranker> {
    match settings.ranker {
        RankerKind::Hybrid if has_table => Arc::new(Hybrid::build(catalog, limits)),
        // If there is no vector table, the hybrid ranker is replaced by the one that ranks by words alone.
        RankerKind::Hybrid | RankerKind::Words => Arc::new(Index::build(catalog, limits)),
        RankerKind::Bm25 => Arc::new(Bm25::build(catalog, settings.bm25.parameters)),
        RankerKind::Overlap => Arc::new(Overlap::build(catalog)),
    }
}

/// A ranked tool.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Hit {
    /// The tool.
    pub id: ToolId,
    /// The score. Scores are comparable only within one query.
    pub score: f32,
    /// The part of the score that is the coverage bonus. If a request has several needs, a hit gets this bonus for
    /// being the first, or for serving a need that no hit before it serves.
    pub coverage_bonus: f32,
    /// Whether the query mentions the tool by name.
    pub exact: bool,
    /// The probability that the tool serves the query, from 0 to 1, under the conditions in docs/ranking.md. It is
    /// `None` if the ranker provides no confidence.
    pub confidence: Option<f32>,
}

/// A misspelled word of the query and its correction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Correction {
    /// The word as written in the query.
    pub word: String,
    /// The word that was searched for instead.
    pub read_as: String,
}

/// The hits for a query, and how the query was changed to find them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Ranking {
    pub(crate) hits: Vec<Hit>,
    pub(crate) corrections: Vec<Correction>,
    /// Whether words were dropped because the query has too many words.
    pub(crate) cut: bool,
}

/// Sorts by score, then by catalog order, and returns the first `limit` hits.
fn best_first(mut scored: Vec<(ToolId, f32)>, limit: usize) -> Vec<Hit> {
    scored.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    scored.truncate(limit);
    let hit = |(id, score)| Hit { id, score, coverage_bonus: 0.0, exact: false, confidence: None };
    scored.into_iter().map(hit).collect()
}
