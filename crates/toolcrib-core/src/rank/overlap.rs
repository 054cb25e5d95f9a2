//! Keyword overlap, as everruns ranks: simple enough to predict by eye.
//!
//! Each term of the query scores three in a tool's name, else one in its description, wherever in
//! a word it stands; a query that *is* a name scores a hundred more. No rarity, no lengths, nothing
//! that depends on another tool. Ties go to the tool that came first.

use super::explain::{Explanation, Points};
use super::{Inputs, Ranker, Ranking, best_first};
use crate::catalog::{Catalog, ToolId};
use crate::query::Words;
use crate::rank::{Field, Via};
use crate::scope::Scope;

const IN_NAME: f32 = 3.0;
const IN_DESCRIPTION: f32 = 1.0;
const EXACT: f32 = 100.0;

/// Names and descriptions in lower case.
#[derive(Debug)]
pub(crate) struct Overlap {
    texts: Vec<(Box<str>, Box<str>)>,
}

/// A query, normalised.
struct Asked {
    whole: String,
    terms: Vec<String>,
    cut: bool,
}

impl Asked {
    fn new(words: &Words, most: usize) -> Self {
        let all = || words.text.split_whitespace().map(unwrap).filter(|term| !term.is_empty());
        let cut = all().nth(most).is_some();
        Self { whole: unwrap(&words.text), terms: all().take(most).collect(), cut }
    }
}

impl Overlap {
    pub(super) fn build(catalog: &Catalog) -> Self {
        let lower = |text: &str| text.to_lowercase().into_boxed_str();
        let tools = catalog.tools().iter();
        Self { texts: tools.map(|tool| (lower(tool.name()), lower(tool.description()))).collect() }
    }
}

impl Ranker for Overlap {
    fn search(&self, inputs: &Inputs<'_>, words: &Words, scope: &Scope, limit: usize) -> Ranking {
        let asked = Asked::new(words, inputs.limits.query_words);
        let sum = |id| {
            let points = asked.terms.iter().map(|term| self.points(id, term).map_or(0.0, |p| p.0));
            (id, points.sum::<f32>() + self.exact(id, &asked))
        };
        let scored = scope.ids().map(sum).filter(|(_, sum)| *sum > 0.0).collect();
        Ranking { hits: best_first(scored, limit), corrections: Vec::new(), cut: asked.cut }
    }

    fn explain(
        &self,
        inputs: &Inputs<'_>,
        words: &Words,
        scope: &Scope,
        id: ToolId,
    ) -> Explanation {
        let asked = Asked::new(words, inputs.limits.query_words);
        let mut explanation = Explanation::of(inputs.catalog.tool(id));
        for term in &asked.terms {
            match self.points(id, term) {
                Some((points, field)) => explanation.words.push(Points {
                    word: term.clone(),
                    term: term.clone(),
                    via: Via::Word,
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
        self.texts.iter().map(|(name, description)| name.len() + description.len() + 32).sum()
    }
}

impl Overlap {
    fn points(&self, id: ToolId, term: &str) -> Option<(f32, Field)> {
        let (name, description) = &self.texts[id.index()];
        if name.contains(term) {
            Some((IN_NAME, Field::Name))
        } else if description.contains(term) {
            Some((IN_DESCRIPTION, Field::Description))
        } else {
            None
        }
    }

    fn exact(&self, id: ToolId, asked: &Asked) -> f32 {
        let name = &*self.texts[id.index()].0;
        // The name is unwrapped too: `_private` can be asked for by its name.
        let is_name = !asked.whole.is_empty() && asked.whole == bare(name);
        if is_name { EXACT } else { 0.0 }
    }
}

/// Lower case, without the punctuation around it.
fn unwrap(text: &str) -> String {
    bare(text).to_lowercase()
}

fn bare(text: &str) -> &str {
    text.trim_matches(|c: char| !c.is_alphanumeric())
}
