//! Explanations: every number behind a rank.

use serde::Serialize;

use super::bonus::Candidate;
use super::confidence::{ConfidenceInputs, confidence};
use super::fields::{self, FIELDS, Field};
use super::index::{Index, total_weighted_frequency};
use super::query_plan::{QueryPlan, TermMatch};
use crate::catalog::{Catalog, ToolId};
use crate::query::Words;
use crate::text::{is_filler, is_stop, stem, words};
use crate::tool::Tool;

/// Why a tool has its score. The points of the words and the bonuses add up to the score. With vectors they add up to
/// the word score, and [`Similarity`] shows how the word score contributes to the score.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The name of the tool.
    pub name: String,
    /// The score.
    pub score: f32,
    /// The points of each word of the query.
    pub words: Vec<ScorePart>,
    /// For adjacent words of the query that are adjacent in the tool too.
    pub pair_bonus: f32,
    /// For quoted phrases.
    pub phrase_bonus: f32,
    /// For the share of the tool's name that the query covers.
    pub name_bonus: f32,
    /// For other tools of its server that fit too.
    pub server_bonus: f32,
    /// For being named by the query.
    pub exact_bonus: f32,
    /// For passing the filters of a query that has no words to rank by.
    pub filter_bonus: f32,
    /// For a name that contains the entire query, if no word of the query was found.
    pub substring_bonus: f32,
    /// The contribution of the vectors, if the ranker uses them.
    #[serde(rename = "nearness", skip_serializing_if = "Option::is_none")]
    pub similarity: Option<Similarity>,
    /// How likely the tool is to serve the query, from 0 to 1. `None` from rankers without confidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f32>,
    /// The share of the query's weight that the tool covers: about 1 if it has all words; at most 1.5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f32>,
    /// The score that a [`CustomRanker`](super::CustomRanker) gave. Then all other parts of the score are zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_score: Option<f32>,
    /// Whether vectors are configured but there is no table, so that the words decided alone. This happens only in a
    /// build without the feature `vectors`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub vectors_missing: bool,
    /// Words of the query for which no tool in scope has a matching term.
    pub unknown: Vec<String>,
}

/// The contributions of words and vectors: `words`, `vectors`, `cover` and the bonus for being named add up to the
/// score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Similarity {
    /// The points of the words and the bonuses, without the bonus for being named.
    pub word_score: f32,
    /// The total weight of the query's words, including words that no tool has: roughly the maximum of a word score
    /// without bonuses.
    #[serde(rename = "asked")]
    pub query_weight: f32,
    /// The best word score of any tool.
    pub best_word_score: f32,
    /// The contribution of the words to the score.
    pub words: f32,
    /// The cosine similarity of the tool and the entire query: 1 for the same direction, about 0 if unrelated.
    pub cosine: f32,
    /// The number of needs that the query was split into.
    pub needs: usize,
    /// Whether the needs are independent: then the most similar one determines half of `vectors`.
    pub needs_apart: bool,
    /// The coverage bonus. If the query has several needs, a tool gets it for being the first hit, or for serving a
    /// need that no hit before it serves.
    #[serde(rename = "cover")]
    pub coverage_bonus: f32,
    /// The similarity used for confidence: the highest similarity among the five best hits, reduced by how far the
    /// score of this tool is behind the best. `None` if the table has no piece of the query.
    #[serde(rename = "near")]
    pub confidence_similarity: Option<f32>,
    /// The contribution of the vectors to the score.
    pub vectors: f32,
}

/// The points that a tool gets for one word of the query.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ScorePart {
    /// The word of the query.
    pub word: String,
    /// The term that matched it.
    pub term: String,
    /// How the term matches the word.
    pub via: TermMatch,
    /// `weight × share × idf × impact`.
    pub points: f32,
    /// The weight of the word in this query.
    pub weight: f32,
    /// The factor for the kind of match, from 0 to 1; 1 for the word itself.
    pub share: f32,
    /// The inverse document frequency of the term.
    pub idf: f32,
    /// The impact of the term in this tool: its weighted frequency over all fields, saturated.
    pub impact: f32,
    /// The weighted frequency in each field, before saturation.
    pub fields: Vec<(Field, f32)>,
}

impl Explanation {
    /// The explanation of a tool without any points.
    pub(super) fn of(tool: &Tool) -> Self {
        Self {
            name: tool.name().to_owned(),
            score: 0.0,
            words: Vec::new(),
            pair_bonus: 0.0,
            phrase_bonus: 0.0,
            name_bonus: 0.0,
            server_bonus: 0.0,
            exact_bonus: 0.0,
            filter_bonus: 0.0,
            substring_bonus: 0.0,
            similarity: None,
            confidence: None,
            coverage: None,
            custom_score: None,
            vectors_missing: false,
            unknown: Vec::new(),
        }
    }

    /// The word score, without the bonus for being named, which is so large that the rest would be lost to rounding.
    pub(super) fn word_score(&self) -> f32 {
        let words: f32 = self.words.iter().map(|word| word.points).sum();
        let bonuses = [self.pair_bonus, self.phrase_bonus, self.name_bonus, self.server_bonus];
        bonuses.iter().fold(words + self.filter_bonus, |sum, bonus| sum + bonus)
    }

    /// Adds confidence and coverage. Must be called while the score is still the word score.
    pub(super) fn with_confidence(self, plan: &QueryPlan, similarity: Option<f32>) -> Self {
        let (word_score, exact) = (self.word_score(), self.exact_bonus > 0.0);
        let query_weight = plan.query_weight;
        let inputs = ConfidenceInputs { similarity, word_score, query_weight, exact };
        let (confidence, coverage) = (confidence(&inputs), inputs.coverage());
        Self { confidence: Some(confidence), coverage: Some(coverage), ..self }
    }
}

/// Whether a word of a query is ignored: a stop word or a filler word.
fn is_ignored(word: &str) -> bool {
    is_stop(word) || is_filler(&stem(word))
}

impl Index {
    /// Explains the word score of a tool. A tool that is not a candidate has no bonuses, but the points of its words
    /// are shown too.
    pub(super) fn explain_words(
        &self,
        catalog: &Catalog,
        query: &Words,
        plan: &QueryPlan,
        id: ToolId,
        found: Option<Candidate>,
    ) -> Explanation {
        let (occurrences, lengths) = self.occurrences(catalog, id);
        let mut points = Vec::new();
        for word in &plan.words {
            let best = word.terms.iter().filter_map(|matching| {
                let counts = occurrences.get(&matching.term)?.counts;
                let impact = fields::saturate(total_weighted_frequency(&counts, &lengths));
                Some((
                    word.weight * matching.factor * matching.idf * impact,
                    impact,
                    matching,
                    counts,
                ))
            });
            let Some((points_of_word, impact, matching, counts)) =
                best.max_by(|a, b| a.0.total_cmp(&b.0))
            else {
                continue;
            };
            let in_fields = FIELDS.into_iter().filter(|field| counts[*field as usize] > 0);
            let in_fields = in_fields.map(|field| {
                (
                    field,
                    fields::weighted_frequency(
                        field,
                        counts[field as usize],
                        lengths[field as usize],
                    ),
                )
            });
            points.push(ScorePart {
                word: word.word.clone(),
                term: self.text(matching.term).to_owned(),
                via: matching.via,
                points: points_of_word,
                weight: word.weight,
                share: matching.factor,
                idf: matching.idf,
                impact,
                fields: in_fields.collect(),
            });
        }
        let words_alone: f32 = points.iter().map(|word: &ScorePart| word.points).sum();
        let bonus = found.map(|found| found.bonus).unwrap_or_default();
        // If a query has only filters, each tool that passes them gets one point.
        let filter_bonus = match found {
            Some(found) if plan.words.is_empty() => found.base,
            _ => 0.0,
        };
        let base = words_alone + filter_bonus;
        let asked = words::all(&query.text);
        let known = |word: &String| plan.words.iter().any(|known| stem(&known.word) == stem(word));
        let mut unknown: Vec<String> =
            asked.into_iter().filter(|word| !is_ignored(word) && !known(word)).collect();
        unknown.dedup();
        Explanation {
            score: bonus.total(base),
            words: points,
            pair_bonus: bonus.pairs,
            phrase_bonus: bonus.phrases,
            name_bonus: bonus.name,
            server_bonus: bonus.server,
            exact_bonus: bonus.exact,
            filter_bonus,
            unknown,
            ..Explanation::of(catalog.tool(id))
        }
    }
}
