//! Rankers that users of the library write.
//!
//! A custom ranker only scores tools. The engine does the rest: it drops tools outside the scope, sorts the hits, cuts
//! off the list, decides the fit and writes the reply.

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::{Explanation, Hit, RankInputs, Ranker, Ranking};
use crate::catalog::{Catalog, ToolId};
use crate::query::WordQuery;
use crate::scope::Scope;

/// A ranker that you write yourself and set with [`Crib::with_ranker`](crate::Crib::with_ranker). It replaces the
/// built-in ranker for [`Crib::search`](crate::Crib::search), [`Crib::rank`](crate::Crib::rank),
/// [`Crib::decide_fit`](crate::Crib::decide_fit) and [`Crib::explain`](crate::Crib::explain).
///
/// The same request must always get the same scores, because the reply becomes part of a prompt that providers cache.
///
/// ```
/// use std::sync::Arc;
/// use toolcrib_core::rank::{CustomRanker, RankRequest, ScoredTool};
/// use toolcrib_core::{Catalog, Conversation, Crib, Scope, SearchRequest, Settings, TurnContext};
///
/// /// Finds tools whose description contains the query.
/// #[derive(Debug)]
/// struct Substring;
///
/// impl CustomRanker for Substring {
///     fn rank(&self, request: &RankRequest<'_>) -> Vec<ScoredTool> {
///         let matches = request.scope.ids().filter(|id| {
///             request.catalog.tool(*id).description().contains(&request.words.text)
///         });
///         matches.map(|id| ScoredTool::new(id, 1.0)).collect()
///     }
/// }
///
/// let tools = br#"[{"name": "a", "description": "Sends mail.", "input_schema": {}},
///                  {"name": "b", "description": "Reads files.", "input_schema": {}}]"#;
/// let crib = Crib::new(Catalog::from_json(tools)?, Settings::default());
/// let crib = crib.with_ranker(Arc::new(Substring));
/// let scope = Scope::all(crib.catalog());
/// let request = SearchRequest::query("files");
/// let reply = crib.search(&TurnContext::new(&scope), &mut Conversation::new(), &request);
/// assert_eq!(reply.loaded, ["b"]);
/// # Ok::<(), toolcrib_core::Error>(())
/// ```
pub trait CustomRanker: fmt::Debug + Send + Sync {
    /// Scores the tools that match, in any order. Tools that are not returned count as not matching.
    ///
    /// The engine drops ids outside the scope and scores that are not finite. If an id is returned twice, its best
    /// score is kept. Then the engine sorts by score, breaks ties by name and cuts off the list at the limit.
    fn rank(&self, request: &RankRequest<'_>) -> Vec<ScoredTool>;

    /// Whether this ranker sets [`ScoredTool::confidence`]. If so, replies have a fit, and the reply to a search whose
    /// best tool is unlikely to help says that nothing fits. The default is `false`, so every match is shown.
    fn has_confidence(&self) -> bool {
        false
    }

    /// Whether the ranker applies `+must`, `-not`, `server:` and quoted phrases itself. If so, these operators are
    /// parsed into [`WordQuery`]. The default is `false`, so the query is plain text.
    fn knows_operators(&self) -> bool {
        false
    }
}

/// The input of a [`CustomRanker`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct RankRequest<'a> {
    /// All tools of the catalog. A ranker may read tools outside `scope` for statistics, but then the scores can reveal
    /// to a caller that hidden tools exist.
    pub catalog: &'a Catalog,
    /// The parsed query.
    pub words: &'a WordQuery,
    /// The tools to rank.
    pub scope: &'a Scope,
    /// Maximum number of tools that the engine will use. The ranker may return more.
    pub limit: usize,
}

/// A tool and its score, from a [`CustomRanker`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ScoredTool {
    /// The tool.
    pub id: ToolId,
    /// How well the tool matches. Higher is better. Scores are only compared within one request.
    pub score: f32,
    /// The probability, from 0 to 1, that the tool serves the query.
    pub confidence: Option<f32>,
}

impl ScoredTool {
    /// A tool with a score and no confidence.
    pub fn new(id: ToolId, score: f32) -> Self {
        Self { id, score, confidence: None }
    }

    /// Sets the confidence. It is used only if [`CustomRanker::has_confidence`] returns `true`.
    #[must_use]
    pub fn with_confidence(self, confidence: f32) -> Self {
        Self { confidence: Some(confidence), ..self }
    }
}

/// Adapts a custom ranker to the engine's interface, and checks its results.
#[derive(Debug)]
pub(crate) struct CheckedRanker(pub(crate) Arc<dyn CustomRanker>);

impl CheckedRanker {
    /// The hits of the custom ranker, checked and sorted.
    fn hits(&self, catalog: &Catalog, words: &WordQuery, scope: &Scope, limit: usize) -> Vec<Hit> {
        let mut scored = self.0.rank(&RankRequest { catalog, words, scope, limit });
        scored.retain(|tool| scope.contains(tool.id) && tool.score.is_finite());
        let name = |tool: &ScoredTool| catalog.tool(tool.id).name();
        scored.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| name(a).cmp(name(b))));
        let mut seen = FxHashSet::default();
        scored.retain(|tool| seen.insert(tool.id));
        scored.truncate(limit);
        let has_confidence = self.0.has_confidence();
        let hit = |tool: ScoredTool| Hit {
            id: tool.id,
            score: tool.score,
            coverage_bonus: 0.0,
            exact: false,
            confidence: has_confidence.then(|| clamped(tool.confidence)),
        };
        scored.into_iter().map(hit).collect()
    }
}

/// The confidence, clamped to the range from 0 to 1. The result is 0 if it is missing or not a number.
fn clamped(confidence: Option<f32>) -> f32 {
    confidence
        .filter(|confidence| !confidence.is_nan())
        .map_or(0.0, |number| number.clamp(0.0, 1.0))
}

impl Ranker for CheckedRanker {
    fn search(
        &self,
        inputs: &RankInputs<'_>,
        words: &WordQuery,
        scope: &Scope,
        limit: usize,
    ) -> Ranking {
        let hits = self.hits(inputs.catalog, words, scope, limit);
        Ranking { hits, ..Ranking::default() }
    }

    fn explain(
        &self,
        inputs: &RankInputs<'_>,
        words: &WordQuery,
        scope: &Scope,
        id: ToolId,
    ) -> Explanation {
        let mut explanation = Explanation::of(inputs.catalog.tool(id));
        let hits = self.hits(inputs.catalog, words, scope, scope.len());
        let hit = hits.iter().find(|hit| hit.id == id);
        explanation.score = hit.map_or(0.0, |hit| hit.score);
        explanation.custom_score = hit.map(|hit| hit.score);
        explanation.confidence = hit.and_then(|hit| hit.confidence);
        explanation
    }

    fn bytes(&self) -> usize {
        0
    }
}
