//! The word ranker, which runs a query plan over the postings of the index, one term at a time.

use std::cell::RefCell;

use super::bonus::{BonusScorer, Candidate};
use super::confidence::{ConfidenceInputs, confidence};
use super::explain::Explanation;
use super::filter::{NamedTools, QueryFilter};
use super::index::Index;
use super::query_plan::QueryPlan;
use super::{Hit, RankInputs, Ranker, Ranking};
use crate::catalog::ToolId;
use crate::query::WordQuery;
use crate::scope::Scope;
use crate::text::words;

/// Maximum number of candidates that are selected by their word scores. Only candidates get bonuses.
const MAX_CANDIDATES: usize = 64;

/// The points of one tool while a query runs.
///
/// The stamp identifies the last query word for which the tool got points. Stamps grow from query to query, so the
/// accumulators are never cleared: a stamp from before this query means that the tool has no points in this query yet.
#[derive(Clone, Copy, Default)]
struct Accumulator {
    /// The sum of the points for the previous words of the query.
    earlier_sum: f32,
    /// The points of the best matching term for the current word.
    best: f32,
    stamp: u32,
}

/// Buffers that are reused between queries, so that the cost of a query depends only on the number of tools that get
/// points.
#[derive(Default)]
struct Scratch {
    accumulators: Vec<Accumulator>,
    /// The tools that got points in this query. The buffer has one more element than there are tools, because the
    /// element after the last one is always written, to avoid a branch.
    touched: Vec<u32>,
    /// The sums of the tools in `touched`, in the same order. `order` has the bit patterns of these sums; it is
    /// partitioned to find the best ones.
    sums: Vec<f32>,
    order: Vec<u32>,
    stamp: u32,
}

impl Scratch {
    /// Makes room for `tools` accumulators. If the stamps would overflow during a query of `words` words, they are
    /// reset.
    fn prepare(&mut self, tools: usize, words: usize) {
        if self.accumulators.len() < tools {
            self.accumulators.resize(tools, Accumulator::default());
            self.touched.resize(tools + 1, 0);
        }
        if self.stamp.checked_add(words as u32 + 1).is_none() {
            self.accumulators.fill(Accumulator::default());
            self.stamp = 0;
        }
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Ranker for Index {
    fn search(
        &self,
        inputs: &RankInputs<'_>,
        words: &WordQuery,
        scope: &Scope,
        limit: usize,
    ) -> Ranking {
        let plan = QueryPlan::new(self, inputs.catalog, words, scope);
        let candidates = self.candidates(inputs, words, scope, &plan, |_| Vec::new());
        let hits = candidates.iter().map(|found| Hit {
            coverage_bonus: 0.0,
            id: found.id,
            score: found.bonus.total(found.base),
            exact: found.bonus.exact > 0.0,
            confidence: Some(confidence(&ConfidenceInputs::of(found, &plan, None))),
        });
        let hits = self.top_hits(hits.collect(), limit);
        Ranking { hits, corrections: plan.corrections, cut: plan.cut }
    }

    fn explain(
        &self,
        inputs: &RankInputs<'_>,
        words: &WordQuery,
        scope: &Scope,
        id: ToolId,
    ) -> Explanation {
        let plan = QueryPlan::new(self, inputs.catalog, words, scope);
        let candidates = self.candidates(inputs, words, scope, &plan, |_| Vec::new());
        let found = candidates.into_iter().find(|found| found.id == id);
        self.explain_words(inputs.catalog, words, &plan, id, found).with_confidence(&plan, None)
    }

    fn bytes(&self) -> usize {
        self.heap_bytes()
    }
}

impl Index {
    /// All candidates with their word scores, sorted by name: the tools with the best word scores, the tools that the
    /// query mentions by name, and the tools that `near` returns.
    pub(super) fn candidates(
        &self,
        inputs: &RankInputs<'_>,
        query: &WordQuery,
        scope: &Scope,
        plan: &QueryPlan,
        near: impl FnOnce(&QueryFilter<'_>) -> Vec<ToolId>,
    ) -> Vec<Candidate> {
        let filter = QueryFilter::new(self, inputs, query, scope);
        let named = NamedTools::in_query(self, inputs, query, scope);
        // Tools that the query mentions by name are candidates even if their word score is low.
        let mut also: Vec<ToolId> = named.ids().filter(|id| filter.passes(*id)).collect();
        also.extend(near(&filter));
        let mut bases =
            SCRATCH.with_borrow_mut(|scratch| self.accumulate(plan, &filter, &also, scratch));
        if filter.is_narrow() && words::all(&query.text).is_empty() {
            // A query such as `server:x` without words returns all tools that pass.
            bases = scope.ids().filter(|id| filter.passes(*id)).map(|id| (id, 1.0)).collect();
        }
        // The candidates are sorted by name, because float sums over them must not depend on the order of the catalog.
        bases.sort_unstable_by_key(|(id, _)| self.name_rank(*id));
        bases.dedup_by_key(|(id, _)| *id);
        BonusScorer::new(self, inputs.catalog, scope, (plan, query), &named).score_all(&bases)
    }

    /// The best `limit` hits, sorted.
    pub(super) fn top_hits(&self, mut hits: Vec<Hit>, limit: usize) -> Vec<Hit> {
        let order = |a: &Hit, b: &Hit| self.compare((a.id, a.score), (b.id, b.score));
        if limit < hits.len() {
            hits.select_nth_unstable_by(limit, order);
            hits.truncate(limit);
        }
        hits.sort_unstable_by(order);
        hits
    }

    /// Compares by score, best first, and then by name.
    pub(super) fn compare(&self, a: (ToolId, f32), b: (ToolId, f32)) -> std::cmp::Ordering {
        b.1.total_cmp(&a.1).then_with(|| self.name_rank(a.0).cmp(&self.name_rank(b.0)))
    }

    /// Returns the tools with the best sums of points over the query's words, followed by the tools of `also` with
    /// their sums. A tool that is in both groups occurs twice, with the same sum.
    fn accumulate(
        &self,
        plan: &QueryPlan,
        filter: &QueryFilter<'_>,
        also: &[ToolId],
        scratch: &mut Scratch,
    ) -> Vec<(ToolId, f32)> {
        scratch.prepare(filter.scope.size_of_catalog(), plan.words.len());
        let Scratch { accumulators, touched, stamp, .. } = scratch;
        let before = *stamp;
        let mut count = 0;
        for word in &plan.words {
            *stamp += 1;
            for matching in &word.terms {
                let factor = word.weight * matching.factor * matching.idf;
                let (ids, impacts) = self.postings(matching.term);
                for (id, impact) in ids.iter().zip(impacts) {
                    // This code avoids branches, because a CPU cannot predict whether a tool already has points.
                    let accumulator = &mut accumulators[*id as usize];
                    let points = factor * impact;
                    let fresh = accumulator.stamp <= before;
                    let same = accumulator.stamp == *stamp;
                    touched[count] = *id;
                    count += usize::from(fresh);
                    let carried = if same { 0.0 } else { accumulator.best };
                    accumulator.earlier_sum =
                        if fresh { 0.0 } else { accumulator.earlier_sum + carried };
                    accumulator.best = if same { accumulator.best.max(points) } else { points };
                    accumulator.stamp = *stamp;
                }
            }
        }
        let mut best = self.top_candidates(filter, scratch, count);
        best.extend(also.iter().map(|id| {
            let Accumulator { earlier_sum, best: last, stamp } = scratch.accumulators[id.index()];
            (*id, if stamp > before { earlier_sum + last } else { 0.0 })
        }));
        best
    }

    /// The tools with the best sums, among those that got points and pass the filter.
    fn top_candidates(
        &self,
        filter: &QueryFilter<'_>,
        scratch: &mut Scratch,
        count: usize,
    ) -> Vec<(ToolId, f32)> {
        let Scratch { accumulators, touched, sums, order, .. } = scratch;
        sums.clear();
        sums.extend(touched[..count].iter().map(|id| {
            let Accumulator { earlier_sum, best, .. } = accumulators[*id as usize];
            if filter.passes(ToolId::at(*id as usize)) { earlier_sum + best } else { 0.0 }
        }));
        let mut threshold = f32::MIN_POSITIVE;
        if sums.len() > MAX_CANDIDATES {
            // The bit patterns of positive floats have the same order as the floats, and partitioning integers is much
            // faster.
            order.clear();
            order.extend(sums.iter().map(|sum| sum.to_bits()));
            let at = order.len() - MAX_CANDIDATES;
            threshold = threshold.max(f32::from_bits(*order.select_nth_unstable(at).1));
        }
        let mut candidates: Vec<(ToolId, f32)> = touched
            .iter()
            .zip(sums.iter())
            .filter(|(_, sum)| **sum >= threshold)
            .map(|(id, sum)| (ToolId::at(*id as usize), *sum))
            .collect();
        if candidates.len() > MAX_CANDIDATES {
            // If several tools have the same sum at the threshold, those whose names sort first are kept.
            candidates.select_nth_unstable_by(MAX_CANDIDATES - 1, |a, b| self.compare(*a, *b));
            candidates.truncate(MAX_CANDIDATES);
        }
        candidates
    }
}
