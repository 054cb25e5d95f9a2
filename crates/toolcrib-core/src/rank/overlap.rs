//! Keyword overlap, as everruns ranks: simple enough to predict by eye.
//!
//! Each term of the query scores three in a tool's name, else one in its description, wherever in
//! a word it stands; a query that *is* a name, with its server's in front or without, scores a hundred
//! more. No idf, no lengths, nothing
//! that depends on another tool. Ties go to the tool that came first.

use super::explain::{Explanation, ScorePart};
use super::{RankInputs, Ranker, Ranking, best_first};
use crate::catalog::{Catalog, ToolId};
use crate::query::Words;
use crate::rank::{Field, TermMatch};
use crate::scope::Scope;
use crate::tool::Tool;

const IN_NAME: f32 = 3.0;
const IN_DESCRIPTION: f32 = 1.0;
const EXACT: f32 = 100.0;

/// Names and descriptions in lower case.
#[derive(Debug)]
pub(crate) struct Overlap {
    texts: Vec<Text>,
}

#[derive(Debug)]
struct Text {
    name: Box<str>,
    /// The name without its server's, if that is in front of it.
    own: Option<Box<str>>,
    description: Box<str>,
}

/// A query, normalised.
struct Asked {
    whole: String,
    terms: Vec<String>,
    /// Whether the query is compared with names without their server prefix: no tool in scope has it as its
    /// full name.
    by_own_name: bool,
    cut: bool,
}

impl Asked {
    fn new(words: &Words, most: usize) -> Self {
        let all = || words.text.split_whitespace().map(unwrap).filter(|term| !term.is_empty());
        let cut = all().nth(most).is_some();
        let terms = all().take(most).collect();
        Self { whole: unwrap(&words.text), terms, by_own_name: false, cut }
    }

    /// Names are unwrapped too: `_private` can be asked for by its name.
    fn is(&self, name: &str) -> bool {
        !self.whole.is_empty() && self.whole == bare(name)
    }
}

impl Overlap {
    pub(super) fn build(catalog: &Catalog) -> Self {
        let lower = |text: &str| text.to_lowercase().into_boxed_str();
        let text = |tool: &Tool| Text {
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
        words: &Words,
        scope: &Scope,
        limit: usize,
    ) -> Ranking {
        let asked = self.asked(words, inputs.limits.query_words, scope);
        let sum = |id| {
            let points = asked.terms.iter().map(|term| self.points(id, term).map_or(0.0, |p| p.0));
            (id, points.sum::<f32>() + self.exact(id, &asked))
        };
        let scored = scope.ids().map(sum).filter(|(_, sum)| *sum > 0.0).collect();
        Ranking { hits: best_first(scored, limit), corrections: Vec::new(), cut: asked.cut }
    }

    fn explain(
        &self,
        inputs: &RankInputs<'_>,
        words: &Words,
        scope: &Scope,
        id: ToolId,
    ) -> Explanation {
        let asked = self.asked(words, inputs.limits.query_words, scope);
        let mut explanation = Explanation::of(inputs.catalog.tool(id));
        for term in &asked.terms {
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
        explanation.exact_bonus = self.exact(id, &asked);
        let words: f32 = explanation.words.iter().map(|word| word.points).sum();
        explanation.score = words + explanation.exact_bonus;
        explanation
    }

    fn bytes(&self) -> usize {
        let bytes = |text: &Text| {
            let own = text.own.as_deref().map_or(0, str::len);
            text.name.len() + own + text.description.len() + size_of::<Text>()
        };
        self.texts.iter().map(bytes).sum()
    }
}

impl Overlap {
    fn asked(&self, words: &Words, most: usize, scope: &Scope) -> Asked {
        let asked = Asked::new(words, most);
        let by_own_name = !scope.ids().any(|id| asked.is(&self.texts[id.index()].name));
        Asked { by_own_name, ..asked }
    }

    fn points(&self, id: ToolId, term: &str) -> Option<(f32, Field)> {
        let Text { name, description, .. } = &self.texts[id.index()];
        if name.contains(term) {
            Some((IN_NAME, Field::Name))
        } else if description.contains(term) {
            Some((IN_DESCRIPTION, Field::Description))
        } else {
            None
        }
    }

    fn exact(&self, id: ToolId, asked: &Asked) -> f32 {
        let Text { name, own, .. } = &self.texts[id.index()];
        let name = if asked.by_own_name { own.as_deref() } else { Some(&**name) };
        if name.is_some_and(|name| asked.is(name)) { EXACT } else { 0.0 }
    }
}

/// Lower case, without the punctuation around it.
fn unwrap(text: &str) -> String {
    bare(text).to_lowercase()
}

fn bare(text: &str) -> &str {
    text.trim_matches(|c: char| !c.is_alphanumeric())
}
