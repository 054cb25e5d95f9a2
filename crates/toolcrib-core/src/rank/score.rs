//! Running a plan over the postings.

use std::cell::RefCell;

use super::bonus::{Candidate, SecondLook};
use super::confidence::{Signals, confidence};
use super::explain::Explanation;
use super::filter::{Filter, Named};
use super::index::Index;
use super::plan::Plan;
use super::{Hit, RankInputs, Ranker, Ranking};
use crate::catalog::ToolId;
use crate::query::Words;
use crate::scope::Scope;
use crate::text::words;

/// Candidates that get the second look.
const CANDIDATES: usize = 64;

/// One tool's sum while a query runs.
///
/// The stamp is the slot that touched the tool last. Stamps only grow, from query to query too, so
/// nothing is ever cleared: a stamp from before this query means "not touched yet".
#[derive(Clone, Copy, Default)]
struct Cell {
    /// The sum over the slots before.
    done: f32,
    /// The best of the slot at hand.
    best: f32,
    stamp: u32,
}

/// Kept between queries, so that a query costs what it touches.
#[derive(Default)]
struct Scratch {
    cells: Vec<Cell>,
    /// The tools that were touched, as many as were counted; one place more than there are tools.
    touched: Vec<u32>,
    /// Their sums, in the same order, and room to sort a copy of them.
    sums: Vec<f32>,
    order: Vec<u32>,
    stamp: u32,
}

impl Scratch {
    /// Makes room for `tools`, and for as many stamps as there are slots.
    fn prepare(&mut self, tools: usize, slots: usize) {
        if self.cells.len() < tools {
            self.cells.resize(tools, Cell::default());
            self.touched.resize(tools + 1, 0);
        }
        if self.stamp.checked_add(slots as u32 + 1).is_none() {
            self.cells.fill(Cell::default());
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
        words: &Words,
        scope: &Scope,
        limit: usize,
    ) -> Ranking {
        let plan = Plan::new(self, inputs.catalog, words, scope);
        let candidates = self.candidates(inputs, words, scope, &plan, |_| Vec::new());
        let hits = candidates.iter().map(|found| Hit {
            coverage_bonus: 0.0,
            id: found.id,
            score: found.bonus.total(found.base),
            exact: found.bonus.exact > 0.0,
            confidence: Some(confidence(&Signals::of(found, &plan, None))),
        });
        let hits = self.first(hits.collect(), limit);
        Ranking { hits, corrections: plan.corrections, cut: plan.cut }
    }

    fn explain(
        &self,
        inputs: &RankInputs<'_>,
        words: &Words,
        scope: &Scope,
        id: ToolId,
    ) -> Explanation {
        let plan = Plan::new(self, inputs.catalog, words, scope);
        let candidates = self.candidates(inputs, words, scope, &plan, |_| Vec::new());
        let found = candidates.into_iter().find(|found| found.id == id);
        self.explained(inputs.catalog, words, &plan, id, found).rated(&plan, None)
    }

    fn bytes(&self) -> usize {
        self.heap_bytes()
    }
}

impl Index {
    /// Everything that may be an answer, scored by its words, in the order of names. `near` has
    /// candidates of its own to add, of those that pass.
    pub(super) fn candidates(
        &self,
        inputs: &RankInputs<'_>,
        query: &Words,
        scope: &Scope,
        plan: &Plan,
        near: impl FnOnce(&Filter<'_>) -> Vec<ToolId>,
    ) -> Vec<Candidate> {
        let filter = Filter::new(self, inputs, query, scope);
        let named = Named::in_query(self, inputs, query, scope);
        // Whoever is named is a candidate, whatever its words came to.
        let mut also: Vec<ToolId> = named.ids().filter(|id| filter.passes(*id)).collect();
        also.extend(near(&filter));
        let mut bases = SCRATCH.with_borrow_mut(|scratch| self.run(plan, &filter, &also, scratch));
        if filter.is_narrow() && words::all(&query.text).is_empty() {
            // `server:x` alone: everything of that server.
            bases = scope.ids().filter(|id| filter.passes(*id)).map(|id| (id, 1.0)).collect();
        }
        // Sums over candidates must not depend on the order the catalog is in.
        bases.sort_unstable_by_key(|(id, _)| self.name_rank(*id));
        bases.dedup_by_key(|(id, _)| *id);
        SecondLook::new(self, inputs.catalog, scope, (plan, query), &named).at(&bases)
    }

    /// The best `limit` of these, in order.
    pub(super) fn first(&self, mut hits: Vec<Hit>, limit: usize) -> Vec<Hit> {
        let order = |a: &Hit, b: &Hit| self.order((a.id, a.score), (b.id, b.score));
        if limit < hits.len() {
            hits.select_nth_unstable_by(limit, order);
            hits.truncate(limit);
        }
        hits.sort_unstable_by(order);
        hits
    }

    /// Best score first, then the earlier name.
    pub(super) fn order(&self, a: (ToolId, f32), b: (ToolId, f32)) -> std::cmp::Ordering {
        b.1.total_cmp(&a.1).then_with(|| self.name_rank(a.0).cmp(&self.name_rank(b.0)))
    }

    /// The best tools of a plan by their words alone, and what the words of `also` came to. Who is in
    /// both comes twice, with the same sum.
    fn run(
        &self,
        plan: &Plan,
        filter: &Filter<'_>,
        also: &[ToolId],
        scratch: &mut Scratch,
    ) -> Vec<(ToolId, f32)> {
        scratch.prepare(filter.scope.size_of_catalog(), plan.slots.len());
        let Scratch { cells, touched, stamp, .. } = scratch;
        let before = *stamp;
        let mut count = 0;
        for slot in &plan.slots {
            *stamp += 1;
            for member in &slot.members {
                let worth = slot.weight * member.share * member.idf;
                let (ids, impacts) = self.postings(member.term);
                for (id, impact) in ids.iter().zip(impacts) {
                    // No branches: whether a tool was touched before is a coin toss to a processor.
                    let cell = &mut cells[*id as usize];
                    let points = worth * impact;
                    let fresh = cell.stamp <= before;
                    let same = cell.stamp == *stamp;
                    touched[count] = *id;
                    count += usize::from(fresh);
                    let carried = if same { 0.0 } else { cell.best };
                    cell.done = if fresh { 0.0 } else { cell.done + carried };
                    cell.best = if same { cell.best.max(points) } else { points };
                    cell.stamp = *stamp;
                }
            }
        }
        let mut best = self.best(filter, scratch, count);
        best.extend(also.iter().map(|id| {
            let Cell { done, best: last, stamp } = scratch.cells[id.index()];
            (*id, if stamp > before { done + last } else { 0.0 })
        }));
        best
    }

    /// The best of the tools that were touched and pass.
    fn best(&self, filter: &Filter<'_>, scratch: &mut Scratch, count: usize) -> Vec<(ToolId, f32)> {
        let Scratch { cells, touched, sums, order, .. } = scratch;
        sums.clear();
        sums.extend(touched[..count].iter().map(|id| {
            let Cell { done, best, .. } = cells[*id as usize];
            if filter.passes(ToolId::at(*id as usize)) { done + best } else { 0.0 }
        }));
        let mut threshold = f32::MIN_POSITIVE;
        if sums.len() > CANDIDATES {
            // Positive floats are in the order of their bits, and integers partition much faster.
            order.clear();
            order.extend(sums.iter().map(|sum| sum.to_bits()));
            let at = order.len() - CANDIDATES;
            threshold = threshold.max(f32::from_bits(*order.select_nth_unstable(at).1));
        }
        let mut candidates: Vec<(ToolId, f32)> = touched
            .iter()
            .zip(sums.iter())
            .filter(|(_, sum)| **sum >= threshold)
            .map(|(id, sum)| (ToolId::at(*id as usize), *sum))
            .collect();
        if candidates.len() > CANDIDATES {
            // Ties at the threshold: the earlier names stay.
            candidates.select_nth_unstable_by(CANDIDATES - 1, |a, b| self.order(*a, *b));
            candidates.truncate(CANDIDATES);
        }
        candidates
    }
}
