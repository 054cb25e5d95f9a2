//! Every number behind a rank.

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

/// Why a tool has the score it has. The points of the words and the bonuses add up to it; where vectors
/// count too, they add up to the word score, and [`Similarity`] says what became of that.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The tool.
    pub name: String,
    /// How well it fits.
    pub score: f32,
    /// What each word of the query gave.
    pub words: Vec<ScorePart>,
    /// For neighbouring words of the query found side by side.
    pub pair_bonus: f32,
    /// For quoted phrases.
    pub phrase_bonus: f32,
    /// For the share of the tool's name that was asked for.
    pub name_bonus: f32,
    /// For the tools beside it on its server that fit too.
    pub server_bonus: f32,
    /// For being named outright.
    pub exact_bonus: f32,
    /// For passing a filter, where the query has no words to rank by.
    pub filter_bonus: f32,
    /// For a name with the whole query in it, where no word of it was found.
    pub substring_bonus: f32,
    /// What the vectors said, where they are asked.
    #[serde(rename = "nearness", skip_serializing_if = "Option::is_none")]
    pub similarity: Option<Similarity>,
    /// How likely the tool is to serve, from 0 to 1. None from the rankers of other systems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f32>,
    /// How much of what the query's words weigh the tool has: 1 for about all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f32>,
    /// The score that a [`CustomRanker`](super::CustomRanker) gave. Then all other parts of the score are zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_score: Option<f32>,
    /// Whether vectors are configured but there is no table, so that the words decided alone. Only in a build
    /// without the feature `vectors`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub vectors_missing: bool,
    /// Words of the query that no tool in scope has, nor anything like them.
    pub unknown: Vec<String>,
}

/// Words and vectors, and what each gave: `words`, `vectors`, `cover` and the bonus for being named
/// outright add up to the score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Similarity {
    /// The points of the words and their bonuses, but for being named outright.
    pub word_score: f32,
    /// What the query's words weigh, those that no tool has included: the most a word score could be,
    /// roughly.
    #[serde(rename = "asked")]
    pub query_weight: f32,
    /// The best that any tool has.
    pub best_word_score: f32,
    /// What the words gave.
    pub words: f32,
    /// How near the tool is to the whole query: 1 for the same direction, about 0 for nothing in common.
    pub cosine: f32,
    /// Needs that the query was parted into.
    pub needs: usize,
    /// Whether they stand apart: then the nearest of them counts for half of what the vectors give.
    pub needs_apart: bool,
    /// For its place where there are several needs: for being the first, or for being near to a need that
    /// no hit before it is near to.
    #[serde(rename = "cover")]
    pub coverage_bonus: f32,
    /// How near it counts as being when it is asked how sure it is: as near as the nearest of the five best
    /// by words and vectors, less what it is behind the best. None where the table has no piece of the
    /// query.
    #[serde(rename = "near")]
    pub confidence_similarity: Option<f32>,
    /// What the vectors gave.
    pub vectors: f32,
}

/// What one word of the query gave one tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ScorePart {
    /// The word as it was asked.
    pub word: String,
    /// The term that served it.
    pub term: String,
    /// How that term came to serve it.
    pub via: TermMatch,
    /// `weight × share × idf × impact`.
    pub points: f32,
    /// What the word is worth in this query.
    pub weight: f32,
    /// The discount for a stand-in.
    pub share: f32,
    /// The idf of the term.
    pub idf: f32,
    /// What the term is worth in this tool, over all fields, saturated.
    pub impact: f32,
    /// What it is worth in each field, before that.
    pub fields: Vec<(Field, f32)>,
}

impl Explanation {
    /// Of a tool that has nothing yet.
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

    /// What the words gave, but for being named outright: beside that, all of it would be lost in the
    /// last digits.
    pub(super) fn word_score(&self) -> f32 {
        let words: f32 = self.words.iter().map(|word| word.points).sum();
        let bonuses = [self.pair_bonus, self.phrase_bonus, self.name_bonus, self.server_bonus];
        bonuses.iter().fold(words + self.filter_bonus, |sum, bonus| sum + bonus)
    }

    /// The same with its confidence: before vectors are put to it, so that its score is the words'.
    pub(super) fn with_confidence(self, plan: &QueryPlan, similarity: Option<f32>) -> Self {
        let (word_score, exact) = (self.word_score(), self.exact_bonus > 0.0);
        let query_weight = plan.query_weight;
        let inputs = ConfidenceInputs { similarity, word_score, query_weight, exact };
        let (confidence, coverage) = (confidence(&inputs), inputs.coverage());
        Self { confidence: Some(confidence), coverage: Some(coverage), ..self }
    }
}

/// Whether a word of a query says nothing about a tool.
fn is_ignored(word: &str) -> bool {
    is_stop(word) || is_filler(&stem(word))
}

impl Index {
    /// What the words of a plan gave a tool. One that is no candidate has no rank, but its words have
    /// their numbers all the same.
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
            let best = word.terms.iter().filter_map(|member| {
                let counts = occurrences.get(&member.term)?.counts;
                let impact = fields::saturate(total_weighted_frequency(&counts, &lengths));
                Some((word.weight * member.factor * member.idf * impact, impact, member, counts))
            });
            let Some((worth, impact, member, counts)) = best.max_by(|a, b| a.0.total_cmp(&b.0))
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
                term: self.text(member.term).to_owned(),
                via: member.via,
                points: worth,
                weight: word.weight,
                share: member.factor,
                idf: member.idf,
                impact,
                fields: in_fields.collect(),
            });
        }
        let words_alone: f32 = points.iter().map(|word: &ScorePart| word.points).sum();
        let bonus = found.map(|found| found.bonus).unwrap_or_default();
        // A query of filters alone gives each tool that passes one point.
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
