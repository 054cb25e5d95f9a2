//! Keyword overlap, as in everruns. It is simple enough that one can predict the result by hand.
//!
//! Each term of the query scores 3 if the tool's name contains it, or otherwise 1 if the description contains it, even
//! in the middle of a word. A query that equals a name, with or without its server prefix, scores 100 more. There are
//! no document frequencies and no length normalisation, so no score depends on another tool. Ties are broken by the
//! order of the catalog.

use super::explain::{Explanation, ScorePart};
use super::{RankInputs, Ranker, Ranking, best_first};
use crate::catalog::{Catalog, ToolId};
use crate::query::WordQuery;
use crate::rank::{IndexedField, TermMatch};
use crate::scope::Scope;
use crate::tool::Tool;

const NAME_POINTS: f32 = 3.0;
const DESCRIPTION_POINTS: f32 = 1.0;
const EXACT_NAME_POINTS: f32 = 100.0;

/// The index: names and descriptions in lower case.
#[derive(Debug)]
pub(crate) struct Overlap {
    texts: Vec<ToolText>,
}

#[derive(Debug)]
struct ToolText {
    name: Box<str>,
    /// The name without its server prefix, if the tool has a server.
    own: Option<Box<str>>,
    description: Box<str>,
}

/// A query in lower case, without surrounding punctuation.
struct NormalisedQuery {
    whole: String,
    terms: Vec<String>,
    /// Whether the query is compared with names without their server prefix. This is done if no tool in scope has the
    /// query as its full name.
    by_own_name: bool,
    cut: bool,
}

impl NormalisedQuery {
    fn new(words: &WordQuery, most: usize) -> Self {
        let all = || words.text.split_whitespace().map(normalise).filter(|term| !term.is_empty());
        let cut = all().nth(most).is_some();
        let terms = all().take(most).collect();
        Self { whole: normalise(&words.text), terms, by_own_name: false, cut }
    }

    /// Whether the query equals a name. Punctuation around the name is also ignored, because it was removed from the
    /// query, and otherwise `_private` could not be found.
    fn equals_name(&self, name: &str) -> bool {
        !self.whole.is_empty() && self.whole == trim_punctuation(name)
    }
}

impl Overlap {
    pub(super) fn build(catalog: &Catalog) -> Self {
        let lower = |text: &str| text.to_lowercase().into_boxed_str();
        let text = |tool: &Tool| ToolText {
            name: lower(tool.name()),
            own: tool.server().map(|_| lower(tool.name_without_server())),
            description: lower(tool.description()),
        };
        Self { texts: catalog.tools().iter().map(text).collect() }
    }
}

impl Ranker for Overlap {
    fn search(
        &self,
        inputs: &RankInputs<'_>,
        words: &WordQuery,
        scope: &Scope,
        limit: usize,
    ) -> Ranking {
        let query = self.normalised_query(words, inputs.limits.query_words, scope);
        let sum = |id| {
            let points = query.terms.iter().map(|term| self.points(id, term).map_or(0.0, |p| p.0));
            (id, points.sum::<f32>() + self.exact_name_points(id, &query))
        };
        let scored = scope.ids().map(sum).filter(|(_, sum)| *sum > 0.0).collect();
        Ranking { hits: best_first(scored, limit), corrections: Vec::new(), cut: query.cut }
    }

    fn explain(
        &self,
        inputs: &RankInputs<'_>,
        words: &WordQuery,
        scope: &Scope,
        id: ToolId,
    ) -> Explanation {
        let query = self.normalised_query(words, inputs.limits.query_words, scope);
        let mut explanation = Explanation::of(inputs.catalog.tool(id));
        for term in &query.terms {
            match self.points(id, term) {
                Some((points, field)) => explanation.words.push(ScorePart {
                    word: term.clone(),
                    term: term.clone(),
                    via: TermMatch::Word,
                    points,
                    weight: 1.0,
                    share: 1.0,
                    idf: 1.0,
                    impact: points,
                    fields: vec![(field, points)],
                }),
                None if scope.ids().any(|other| self.points(other, term).is_some()) => {}
                None => explanation.unknown.push(term.clone()),
            }
        }
        explanation.exact_bonus = self.exact_name_points(id, &query);
        let words: f32 = explanation.words.iter().map(|word| word.points).sum();
        explanation.score = words + explanation.exact_bonus;
        explanation
    }

    fn bytes(&self) -> usize {
        let bytes = |text: &ToolText| {
            let own = text.own.as_deref().map_or(0, str::len);
            text.name.len() + own + text.description.len() + size_of::<ToolText>()
        };
        self.texts.iter().map(bytes).sum()
    }
}

impl Overlap {
    fn normalised_query(&self, words: &WordQuery, most: usize, scope: &Scope) -> NormalisedQuery {
        let query = NormalisedQuery::new(words, most);
        let by_own_name = !scope.ids().any(|id| query.equals_name(&self.texts[id.index()].name));
        NormalisedQuery { by_own_name, ..query }
    }

    fn points(&self, id: ToolId, term: &str) -> Option<(f32, IndexedField)> {
        let ToolText { name, description, .. } = &self.texts[id.index()];
        if name.contains(term) {
            Some((NAME_POINTS, IndexedField::Name))
        } else if description.contains(term) {
            Some((DESCRIPTION_POINTS, IndexedField::Description))
        } else {
            None
        }
    }

    fn exact_name_points(&self, id: ToolId, query: &NormalisedQuery) -> f32 {
        let ToolText { name, own, .. } = &self.texts[id.index()];
        let name = if query.by_own_name { own.as_deref() } else { Some(&**name) };
        if name.is_some_and(|name| query.equals_name(name)) { EXACT_NAME_POINTS } else { 0.0 }
    }
}

/// Converts to lower case and removes the punctuation around the text.
fn normalise(text: &str) -> String {
    trim_punctuation(text).to_lowercase()
}

fn trim_punctuation(text: &str) -> &str {
    text.trim_matches(|c: char| !c.is_alphanumeric())
}
