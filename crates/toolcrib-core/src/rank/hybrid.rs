//! Words and vectors together.
//!
//! The words find what says what was asked; the vectors find what means it. Whoever is among the best
//! by either is a candidate and gets both numbers, the second look at its words included, and `fuse`
//! makes one score of them; where a request has several needs, `cover` sees to it that each is served.
//! What a hidden tool says counts in neither, and a name that is spelled out goes before everything, as
//! it does with words alone.

use std::cell::RefCell;

use super::asked::Asked;
use super::bonus::Candidate;
use super::confidence::{Signals, confidence};
use super::cover::Cover;
use super::explain::{Explanation, Similarity};
use super::filter::Filter;
use super::fuse::{Fused, Yardstick, fuse};
use super::index::Index;
use super::plan::Plan;
use super::{Hit, RankInputs, Ranker, Ranking};
use crate::catalog::{Catalog, ToolId};
use crate::limits::Limits;
use crate::query::Words;
use crate::scope::Scope;
use crate::text::words;

/// Candidates that the vectors bring in; twice as many where a request has several needs.
const NEAREST: usize = 64;
/// The first so many hits say how well the query is served: the nearest of them need not be the first.
const FOREMOST: usize = 5;
/// How much less sure a hit is for each point of score that it is behind the best, in cosines. Fitted with
/// the curves in `confidence`.
const BEHIND: f32 = 1.3;

thread_local! {
    /// Kept between queries, so that a query allocates nothing of a catalog's size.
    static COSINES: RefCell<Vec<f32>> = RefCell::default();
}

/// Our ranker: the index of the words. The vectors come with the inputs.
#[derive(Debug)]
pub(crate) struct Hybrid(Index);

/// A candidate, how near it is, and what that and its words give it.
struct Found {
    candidate: Candidate,
    nearness: f32,
    fused: Fused,
    /// For its place among the tools for several needs.
    added: f32,
}

impl Found {
    /// All but what its place gives it.
    fn own(&self) -> f32 {
        self.fused.total(self.candidate.bonus.exact)
    }
}

/// Everything that may be an answer to a query.
struct Look {
    asked: Asked,
    found: Vec<Found>,
    cover: Cover,
    yardstick: Yardstick,
    /// The best score but for names and places, and how near the nearest of the foremost is.
    best: (f32, f32),
}

impl Look {
    /// How near a hit counts as being when it is asked how sure it is: as near as the nearest of the
    /// foremost, less what it is behind the best. What it has for serving another need than those before
    /// it makes up for that. None where the table has no piece of the query: then nothing is near, and
    /// that says nothing.
    fn surely(&self, fused: Fused, added: f32) -> Option<f32> {
        let (best, nearest) = self.best;
        let behind = (best - fused.total(0.0) - added).max(0.0);
        (nearest != 0.0).then_some(nearest - BEHIND * behind)
    }
}

impl Hybrid {
    pub(super) fn build(catalog: &Catalog, limits: &Limits) -> Self {
        Self(Index::build(catalog, limits))
    }

    fn look(&self, inputs: &RankInputs<'_>, query: &Words, scope: &Scope, plan: &Plan) -> Look {
        COSINES.with_borrow_mut(|cosines| {
            let asked = Asked::new(inputs.vectors, &query.text, &plan.corrections);
            let rows = inputs.vectors.rows(inputs.catalog, &self.0.limits);
            rows.scan(&asked.whole, cosines);
            let most = if asked.apart { 2 * NEAREST } else { NEAREST };
            let nearest = |filter: &Filter<'_>| self.nearest(cosines, most, filter);
            let candidates = self.0.candidates(inputs, query, scope, plan, nearest);
            let scores = candidates.iter().map(|found| found.bonus.words(found.base));
            let best_words = scores.fold(0.0, f32::max);
            let mut length = 0;
            words::each(&query.text, &mut |_| length += 1);
            let yardstick = Yardstick { asked: plan.asked, best_words, length };
            let to_needs = candidates.iter().map(|found| asked.to_needs(rows, found.id));
            let to_needs: Vec<Vec<f32>> = to_needs.collect();
            let mut found: Vec<Found> = Vec::with_capacity(candidates.len());
            for (candidate, to_needs) in candidates.into_iter().zip(&to_needs) {
                let nearness = asked.nearness(cosines[candidate.id.index()], to_needs);
                let words = candidate.bonus.words(candidate.base);
                let fused = fuse(words, nearness, &yardstick);
                found.push(Found { candidate, nearness, fused, added: 0.0 });
            }
            let cover = self.place(&mut found, &to_needs);
            let best = foremost(&found);
            Look { asked, found, cover, yardstick, best }
        })
    }

    /// Gives each candidate what it has for its place, where there are several needs.
    fn place(&self, found: &mut [Found], to_needs: &[Vec<f32>]) -> Cover {
        if to_needs.first().is_none_or(Vec::is_empty) {
            return Cover::default();
        }
        let scores: Vec<f32> = found.iter().map(Found::own).collect();
        let rank = |at: usize| self.0.name_rank(found[at].candidate.id);
        let cover = Cover::new(&scores, to_needs, |a, b| rank(a).cmp(&rank(b)));
        for (found, added) in found.iter_mut().zip(&cover.added) {
            found.added = *added;
        }
        cover
    }

    /// The tools nearest to the query that pass, at most `most` of them. A right angle is not near.
    fn nearest(&self, cosines: &[f32], most: usize, filter: &Filter<'_>) -> Vec<ToolId> {
        let order = |a: &(ToolId, f32), b: &(ToolId, f32)| self.0.order(*a, *b);
        // When there are this many, the farther ones go.
        let full = 8 * most;
        let mut kept: Vec<(ToolId, f32)> = Vec::with_capacity(full);
        let mut least = f32::MIN_POSITIVE;
        for (at, cosine) in cosines.iter().enumerate() {
            let id = ToolId::at(at);
            if *cosine < least || !filter.passes(id) {
                continue;
            }
            kept.push((id, *cosine));
            if kept.len() == full {
                kept.select_nth_unstable_by(most - 1, order);
                kept.truncate(most);
                least = kept[most - 1].1;
            }
        }
        if kept.len() > most {
            kept.select_nth_unstable_by(most - 1, order);
            kept.truncate(most);
        }
        kept.into_iter().map(|(id, _)| id).collect()
    }
}

/// The best score but for names and places, and how near the nearest of the foremost is.
fn foremost(found: &[Found]) -> (f32, f32) {
    let mut scores: Vec<(f32, f32)> =
        found.iter().map(|found| (found.fused.total(0.0), found.nearness)).collect();
    // Ties go to the nearer, so that it does not matter which of them is among the foremost.
    let order = |a: &(f32, f32), b: &(f32, f32)| b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1));
    if scores.len() > FOREMOST {
        scores.select_nth_unstable_by(FOREMOST - 1, order);
        scores.truncate(FOREMOST);
    }
    let most = |a: (f32, f32), b: (f32, f32)| (a.0.max(b.0), a.1.max(b.1));
    scores.into_iter().reduce(most).unwrap_or_default()
}

impl Ranker for Hybrid {
    fn search(
        &self,
        inputs: &RankInputs<'_>,
        words: &Words,
        scope: &Scope,
        limit: usize,
    ) -> Ranking {
        let plan = Plan::new(&self.0, inputs.catalog, words, scope);
        let look = self.look(inputs, words, scope, &plan);
        let hits = look.found.iter().map(|found| {
            let Found { candidate, fused, added, .. } = found;
            let signals = Signals::of(candidate, &plan, look.surely(*fused, *added));
            Hit {
                id: candidate.id,
                score: found.own() + added,
                coverage_bonus: *added,
                exact: candidate.bonus.exact > 0.0,
                confidence: Some(confidence(&signals)),
            }
        });
        let hits = self.0.first(hits.collect(), limit);
        Ranking { hits, corrections: plan.corrections, cut: plan.cut }
    }

    fn explain(
        &self,
        inputs: &RankInputs<'_>,
        words: &Words,
        scope: &Scope,
        id: ToolId,
    ) -> Explanation {
        let plan = Plan::new(&self.0, inputs.catalog, words, scope);
        let look = self.look(inputs, words, scope, &plan);
        let found = look.found.iter().find(|found| found.candidate.id == id);
        let candidate = found.map(|found| found.candidate);
        let by_words = self.0.explained(inputs.catalog, words, &plan, id, candidate);
        let exact = by_words.exact_bonus;
        let rows = inputs.vectors.rows(inputs.catalog, &self.0.limits);
        let cosine = rows.dot(id.index(), &look.asked.whole);
        let to_needs = look.asked.to_needs(rows, id);
        let nearness = look.asked.nearness(cosine, &to_needs);
        let word_score = by_words.word_score();
        let fused = fuse(word_score, nearness, &look.yardstick);
        let cover = found.map_or_else(|| look.cover.adds(&to_needs), |found| found.added);
        let near = look.surely(fused, cover);
        Explanation {
            score: fused.total(exact) + cover,
            similarity: Some(Similarity {
                word_score,
                query_weight: look.yardstick.asked,
                best_word_score: look.yardstick.best_words,
                words: fused.words,
                cosine,
                needs: look.asked.needs.len(),
                needs_apart: look.asked.apart,
                coverage_bonus: cover,
                confidence_similarity: near,
                vectors: fused.vectors,
            }),
            ..by_words.rated(&plan, near)
        }
    }

    fn bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rank::{RankSettings, Vectors};
    use crate::spelling::Spellings;

    /// Far more tools than are kept; in the catalog the later names come first.
    const TOOLS: usize = 2_000;

    fn catalog() -> Catalog {
        let names = (0..TOOLS).rev().map(|n| format!(r#"{{"name":"t{n:04}","description":"x"}}"#));
        let text = names.collect::<Vec<_>>().join("\n");
        Catalog::from_json(text.as_bytes()).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

        /// Many ties: what parts them is the name, whichever way the candidates were thinned out.
        #[test]
        fn the_nearest_are_those_that_sorting_everything_gives(
            steps in proptest::collection::vec(any::<u8>(), TOOLS),
            values in 2..48_u8,
            every in 1..6_usize,
        ) {
            let (catalog, limits) = (catalog(), Limits::default());
            let hybrid = Hybrid::build(&catalog, &limits);
            let scope = Scope::of(&catalog, catalog.ids().step_by(every));
            let words = Words::default();
            let inputs = RankInputs {
                catalog: &catalog,
                spellings: &Spellings::of(&catalog),
                vectors: &Vectors::default(),
                settings: &RankSettings::default(),
                limits: &limits,
                must_in_name: false,
            };
            let filter = Filter::new(&hybrid.0, &inputs, &words, &scope);
            let cosines: Vec<f32> = steps.iter().map(|step| f32::from(step % values) / 64.0).collect();
            let above = |id: &ToolId| cosines[id.index()] > 0.0;
            let mut all: Vec<ToolId> = scope.ids().filter(above).collect();
            all.sort_by(|a, b| {
                let by_cosine = cosines[b.index()].total_cmp(&cosines[a.index()]);
                let name = |id: &ToolId| catalog.tool(*id).name();
                by_cosine.then_with(|| name(a).cmp(name(b)))
            });
            all.truncate(NEAREST);
            all.sort();
            let mut near = hybrid.nearest(&cosines, NEAREST, &filter);
            near.sort();
            prop_assert_eq!(near, all);
        }
    }
}
