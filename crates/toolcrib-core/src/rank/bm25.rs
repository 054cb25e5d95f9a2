//! Plain BM25 over one text per tool, as in Hermes and opencode-tool-search.
//!
//! Name, description and optionally the names of the top-level parameters are one bag of words. Words are runs of ASCII
//! letters and digits in lower case, without stemming or stop words. The average length and the document frequency are
//! computed within the scope, so hidden tools do not influence scores in this ranker either. Ties are broken by the
//! order of the catalog, as in both systems.

use rustc_hash::FxHashMap;

use super::explain::{Explanation, ScorePart};
use super::index::idf;
use super::{RankInputs, Ranker, Ranking, best_first};
use crate::catalog::{Catalog, ToolId};
use crate::query::WordQuery;
use crate::rank::{Bm25Settings, TermMatch};
use crate::scope::Scope;
use crate::tool::Tool;

/// Score of a tool whose name contains the entire query. It is used if no tool has any word of the query.
const SUBSTRING_SCORE: f32 = 0.1;

/// The index: how often each tool contains each word.
#[derive(Debug)]
pub(crate) struct Bm25 {
    postings: FxHashMap<Box<str>, Vec<(ToolId, u32)>>,
    /// The number of words in each tool's text.
    lengths: Vec<u32>,
}

/// Statistics of the tools in scope, and the BM25 parameters.
struct ScopeStatistics {
    tools: usize,
    average: f32,
    k1: f32,
    b: f32,
}

impl Bm25 {
    pub(super) fn build(catalog: &Catalog, parameters: bool) -> Self {
        let mut postings: FxHashMap<Box<str>, Vec<(ToolId, u32)>> = FxHashMap::default();
        let mut lengths = Vec::with_capacity(catalog.len());
        for id in catalog.ids() {
            let mut length = 0;
            each_word(&text(catalog.tool(id), parameters), |word| {
                length += 1;
                let list = match postings.get_mut(word) {
                    Some(list) => list,
                    None => postings.entry(word.into()).or_default(),
                };
                match list.last_mut() {
                    Some((tool, count)) if *tool == id => *count += 1,
                    _ => list.push((id, 1)),
                }
            });
            lengths.push(length);
        }
        Self { postings, lengths }
    }
}

impl Ranker for Bm25 {
    fn search(
        &self,
        inputs: &RankInputs<'_>,
        words: &WordQuery,
        scope: &Scope,
        limit: usize,
    ) -> Ranking {
        let statistics = self.statistics(inputs.settings.bm25, scope);
        let (terms, cut) = Self::terms(words, inputs.limits.query_words);
        let mut sums = vec![0.0; self.lengths.len()];
        for (term, times) in &terms {
            let Some((list, idf)) = self.postings_in_scope(term, scope, &statistics) else {
                continue;
            };
            for (id, count) in list.iter().filter(|(id, _)| scope.contains(*id)) {
                sums[id.index()] += *times as f32 * idf * self.impact(*id, *count, &statistics);
            }
        }
        let mut scored: Vec<(ToolId, f32)> =
            scope.ids().map(|id| (id, sums[id.index()])).filter(|(_, sum)| *sum > 0.0).collect();
        if scored.is_empty() && !terms.is_empty() && inputs.settings.bm25.substring {
            let named =
                scope.ids().filter(|id| name_contains_query(inputs.catalog.tool(*id), words));
            scored = named.map(|id| (id, SUBSTRING_SCORE)).collect();
        }
        Ranking { hits: best_first(scored, limit), corrections: Vec::new(), cut }
    }

    fn explain(
        &self,
        inputs: &RankInputs<'_>,
        words: &WordQuery,
        scope: &Scope,
        id: ToolId,
    ) -> Explanation {
        let statistics = self.statistics(inputs.settings.bm25, scope);
        let (terms, _) = Self::terms(words, inputs.limits.query_words);
        let mut explanation = Explanation::of(inputs.catalog.tool(id));
        for (term, times) in terms {
            let Some((list, idf)) = self.postings_in_scope(&term, scope, &statistics) else {
                explanation.unknown.push(term);
                continue;
            };
            let Some((_, count)) = list.iter().find(|(known, _)| *known == id) else { continue };
            let (weight, impact) = (times as f32, self.impact(id, *count, &statistics));
            explanation.words.push(ScorePart {
                word: term.clone(),
                term,
                via: TermMatch::Word,
                points: weight * idf * impact,
                weight,
                share: 1.0,
                idf,
                impact,
                fields: Vec::new(),
            });
        }
        explanation.score = explanation.words.iter().map(|word| word.points).sum();
        if explanation.words.is_empty() {
            let hits = self.search(inputs, words, scope, usize::MAX).hits;
            if hits.iter().any(|hit| hit.id == id) {
                explanation.substring_bonus = SUBSTRING_SCORE;
                explanation.score = SUBSTRING_SCORE;
            }
        }
        explanation
    }

    fn bytes(&self) -> usize {
        let lists = self.postings.iter().map(|(word, list)| word.len() + 40 + 8 * list.len());
        lists.sum::<usize>() + 4 * self.lengths.len()
    }
}

impl Bm25 {
    /// Returns the distinct words of a query, each with the number of its occurrences, and whether words were dropped
    /// because the query has more than `max_terms` distinct words.
    fn terms(words: &WordQuery, max_terms: usize) -> (Vec<(String, u32)>, bool) {
        let mut terms: Vec<(String, u32)> = Vec::new();
        let mut cut = false;
        each_word(&words.text, |word| match terms.iter().position(|(known, _)| known == word) {
            Some(at) => terms[at].1 += 1,
            None if terms.len() < max_terms => terms.push((word.to_owned(), 1)),
            None => cut = true,
        });
        (terms, cut)
    }

    fn statistics(&self, settings: Bm25Settings, scope: &Scope) -> ScopeStatistics {
        let Bm25Settings { k1, b, .. } = settings;
        let words: u64 = scope.ids().map(|id| u64::from(self.lengths[id.index()])).sum();
        let tools = scope.len();
        ScopeStatistics { tools, average: words as f32 / tools.max(1) as f32, k1, b }
    }

    /// Returns the postings of a word in the entire catalog, and the word's inverse document frequency in the scope.
    /// Returns `None` if no tool in scope has the word.
    fn postings_in_scope(
        &self,
        term: &str,
        scope: &Scope,
        statistics: &ScopeStatistics,
    ) -> Option<(&[(ToolId, u32)], f32)> {
        let list = self.postings.get(term)?;
        let frequency = list.iter().filter(|(id, _)| scope.contains(*id)).count();
        (frequency > 0).then(|| (&list[..], idf(frequency, statistics.tools)))
    }

    /// The length-normalised, saturated term frequency of `count` occurrences in a tool.
    fn impact(&self, id: ToolId, count: u32, statistics: &ScopeStatistics) -> f32 {
        let ScopeStatistics { average, k1, b, .. } = statistics;
        let length = self.lengths[id.index()] as f32 / average.max(f32::MIN_POSITIVE);
        let count = count as f32;
        count * (k1 + 1.0) / (count + k1 * (1.0 - b + b * length))
    }
}

/// Whether the name of the tool contains the entire query.
fn name_contains_query(tool: &Tool, words: &WordQuery) -> bool {
    let query = words.text.trim().to_lowercase();
    !query.is_empty() && tool.name().to_lowercase().contains(&query)
}

fn text(tool: &Tool, parameters: bool) -> String {
    let mut text = format!("{} {}", tool.name(), tool.description());
    let schema = tool.schema_value();
    let properties = schema.get("properties").and_then(serde_json::Value::as_object);
    for name in properties.filter(|_| parameters).into_iter().flat_map(|map| map.keys()) {
        text.push(' ');
        text.push_str(name);
    }
    text
}

fn each_word(text: &str, mut visit: impl FnMut(&str)) {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    for word in words.filter(|word| !word.is_empty()) {
        visit(&word.to_ascii_lowercase());
    }
}
