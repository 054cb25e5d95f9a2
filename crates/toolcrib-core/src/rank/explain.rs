//! Explanations, which contain every number from which a rank is computed.

use serde::Serialize;

use super::Tier;
use super::bonus::Candidate;
use super::confidence::{ConfidenceInputs, SimilarityEvidence, confidence};
use super::fields::{self, FIELDS, IndexedField};
use super::generality::GeneralTool;
use super::index::{Index, total_weighted_frequency};
use super::query_plan::{QueryPlan, TermMatch};
use crate::catalog::{Catalog, ToolId};
use crate::query::WordQuery;
use crate::text::{is_filler, is_stop, stem, words};
use crate::tool::Tool;

/// Why a tool has its score. The points of the words and the bonuses add up to the score. If the ranker uses vectors,
/// the points and the bonuses add up to the word score, and [`Similarity`] shows how the word score contributes to the
/// score.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The name of the tool.
    pub name: String,
    /// The score.
    pub score: f32,
    /// The points of each word of the query.
    pub words: Vec<ScorePart>,
    /// The bonus for words that are adjacent both in the query and in the tool.
    pub pair_bonus: f32,
    /// The bonus for quoted phrases.
    pub phrase_bonus: f32,
    /// The bonus for the share of the tool's name that the query covers.
    pub name_bonus: f32,
    /// The bonus for other tools of the same server that also match.
    pub server_bonus: f32,
    /// The bonus for a tool that the query mentions by name.
    pub exact_bonus: f32,
    /// The bonus for passing the filters of a query that has no words to rank by.
    pub filter_bonus: f32,
    /// The bonus for a name that contains the entire query, if no word of the query was found.
    pub substring_bonus: f32,
    /// The contribution of the vectors, if the ranker uses them.
    #[serde(rename = "nearness", skip_serializing_if = "Option::is_none")]
    pub similarity: Option<Similarity>,
    /// The probability that the tool serves the query, from 0 to 1. It is `None` if the ranker provides no confidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f32>,
    /// The share of the query's weight that the tool covers. It is about 1 if the tool has all words, and at most 1.5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f32>,
    /// The score from a [`CustomRanker`](super::CustomRanker). If it is set, all other parts of the score are zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_score: Option<f32>,
    /// Whether vectors are configured but there is no vector table, so that tools were ranked by words alone. This
    /// happens only in a build without the feature `vectors`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub vectors_missing: bool,
    /// Words of the query for which no tool in scope has a matching term.
    pub unknown: Vec<String>,
}

/// The contributions of words and vectors. The fields `words`, `vectors` and `coverage_bonus`, the bonus in `general` and the
/// bonus for a tool that the query mentions by name add up to the score.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Similarity {
    /// The points of the words and the bonuses, without the bonus for a tool that the query mentions by name.
    pub word_score: f32,
    /// The total weight of the query's words, including words that no tool has. It is roughly the maximum of a word
    /// score without bonuses.
    #[serde(rename = "asked")]
    pub query_weight: f32,
    /// The best word score of any tool.
    pub best_word_score: f32,
    /// The contribution of the words to the score.
    pub words: f32,
    /// Where the similarities come from. With [`Tier::Deep`], `vectors` combines the cosines of both tiers.
    pub tier: Tier,
    /// The cosine similarity of the tool and the entire query, with the vectors from the table. It is 1 for the same
    /// direction, and about 0 if they are unrelated.
    pub cosine: f32,
    /// The cosine similarity of the tool and the entire query, with the vectors from the encoder. It is `None` if the
    /// tier is [`Tier::Table`], or if the tool has no deep vector yet. In the second case, it is estimated from `cosine`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deep_cosine: Option<f32>,
    /// The number of needs that the query was split into.
    pub needs: usize,
    /// Whether the needs are independent. If so, the need that is most similar to the tool determines half of
    /// `vectors`.
    pub needs_apart: bool,
    /// The coverage bonus. If the query has several needs, a tool gets it for being the first hit, or for serving a
    /// need that no hit before it serves.
    #[serde(rename = "cover")]
    pub coverage_bonus: f32,
    /// The type of general tools, such as web search, that best matches both the query and the tool. It is `None` if the
    /// tier is [`Tier::Table`], or if the encoder has no classifiers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub general: Option<GeneralTool>,
    /// The highest similarity among the five best hits, from which the confidence is computed. It is `None` if no part
    /// of the query is in the vector table.
    #[serde(rename = "near")]
    pub top_similarity: Option<f32>,
    /// The highest probability, among the five best hits, that the query needs a general tool and the hit is one. The
    /// confidence depends on it.
    pub top_general: f32,
    /// The median similarity of the candidates, on which the confidence in the deep tier depends.
    pub background: f32,
    /// By how much the score of the tool is below the best score without bonuses. A larger gap lowers the confidence.
    pub gap: f32,
    /// The contribution of the vectors to the score.
    pub vectors: f32,
}

/// The points that a tool gets for one word of the query.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ScorePart {
    /// The word of the query.
    pub word: String,
    /// The indexed term that matched the word.
    pub term: String,
    /// How the term matches the word.
    pub via: TermMatch,
    /// The points, which are `weight × share × idf × impact`.
    pub points: f32,
    /// The weight of the word in this query.
    pub weight: f32,
    /// The factor for the kind of match, from 0 to 1. It is 1 if the term is the query's word itself.
    pub share: f32,
    /// The inverse document frequency of the term.
    pub idf: f32,
    /// The impact of the term in this tool: its weighted frequency over all fields, saturated.
    pub impact: f32,
    /// The weighted frequency in each field, before saturation.
    pub fields: Vec<(IndexedField, f32)>,
}

impl Explanation {
    /// An explanation in which the tool has no points.
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

    /// The word score. It does not include the bonus for a tool that the query mentions by name, which is so large that
    /// the rest would be lost to rounding.
    pub(super) fn word_score(&self) -> f32 {
        let words: f32 = self.words.iter().map(|word| word.points).sum();
        let bonuses = [self.pair_bonus, self.phrase_bonus, self.name_bonus, self.server_bonus];
        bonuses.iter().fold(words + self.filter_bonus, |sum, bonus| sum + bonus)
    }

    /// Adds the confidence and the coverage, computed from the word score and the similarity.
    pub(super) fn with_confidence(
        self,
        plan: &QueryPlan,
        similarity: Option<SimilarityEvidence>,
    ) -> Self {
        let (word_score, exact) = (self.word_score(), self.exact_bonus > 0.0);
        let query_weight = plan.query_weight;
        let inputs = ConfidenceInputs { similarity, word_score, query_weight, exact };
        let (confidence, coverage) = (confidence(&inputs), inputs.coverage());
        Self { confidence: Some(confidence), coverage: Some(coverage), ..self }
    }
}

/// Whether a word of the query is a stop word or a filler word, and so is ignored.
fn is_ignored(word: &str) -> bool {
    is_stop(word) || is_filler(&stem(word))
}

impl Index {
    /// Explains the word score of a tool. If the tool is not a candidate, it has no bonuses, but the points of its
    /// words are shown.
    pub(super) fn explain_words(
        &self,
        catalog: &Catalog,
        query: &WordQuery,
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
        // If a query has only filters, each tool that passes them gets one point as its base score.
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
