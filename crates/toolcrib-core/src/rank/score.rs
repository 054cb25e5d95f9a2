//! Running a plan over the postings.

use std::cell::RefCell;

use super::bonus::{Candidate, SecondLook};
use super::filter::{Filter, Named};
use super::index::Index;
use super::plan::Plan;
use super::{Hit, Ranking};
use crate::catalog::ToolId;
use crate::crib::Crib;
use crate::query::Words;
use crate::scope::Scope;

/// Candidates that get the second look.
const CANDIDATES: usize = 200;

/// Sums by tool and by slot, kept between queries so that a query costs what it touches.
#[derive(Default)]
struct Scratch {
    scores: Vec<f32>,
    touched: Vec<u32>,
    slot: Vec<f32>,
    slot_touched: Vec<u32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Index {
    /// The best `limit` tools in scope for the words.
    pub(crate) fn search(
        &self,
        crib: &Crib,
        words: &Words,
        scope: &Scope,
        limit: usize,
    ) -> Ranking {
        let plan = Plan::new(self, crib.catalog(), words, scope);
        let candidates = self.candidates(crib, words, scope, &plan);
        let mut hits: Vec<Hit> = candidates
            .iter()
            .map(|found| Hit {
                id: found.id,
                score: found.bonus.total(found.base),
                exact: found.bonus.exact > 0.0,
            })
            .collect();
        hits.sort_unstable_by(|a, b| self.order((a.id, a.score), (b.id, b.score)));
        hits.truncate(limit);
        Ranking { hits, corrections: plan.corrections, cut: plan.cut }
    }

    /// Everything that may be an answer, scored, in no order.
    pub(super) fn candidates(
        &self,
        crib: &Crib,
        words: &Words,
        scope: &Scope,
        plan: &Plan,
    ) -> Vec<Candidate> {
        let filter = Filter::new(self, crib, words, scope);
        let named = Named::in_query(crib, words, scope);
        let mut bases = SCRATCH.with_borrow_mut(|scratch| self.run(plan, &filter, scratch));
        if plan.slots.is_empty() && filter.is_narrow() {
            // `server:x` alone: everything of that server.
            bases = scope.ids().filter(|id| filter.passes(*id)).map(|id| (id, 1.0)).collect();
        }
        for id in named.ids().filter(|id| filter.passes(*id)) {
            if !bases.iter().any(|(known, _)| *known == id) {
                bases.push((id, 0.0));
            }
        }
        // Sums over candidates must not depend on the order the catalog is in.
        bases.sort_unstable_by_key(|(id, _)| self.name_rank(*id));
        SecondLook::new(self, crib, scope, (plan, words), &named).at(&bases)
    }

    /// Best score first, then the earlier name.
    fn order(&self, a: (ToolId, f32), b: (ToolId, f32)) -> std::cmp::Ordering {
        b.1.total_cmp(&a.1).then_with(|| self.name_rank(a.0).cmp(&self.name_rank(b.0)))
    }

    /// The best tools of a plan by their words alone.
    fn run(&self, plan: &Plan, filter: &Filter<'_>, scratch: &mut Scratch) -> Vec<(ToolId, f32)> {
        let tools = filter.scope.size_of_catalog();
        let Scratch { scores, touched, slot: best, slot_touched } = scratch;
        if scores.len() < tools {
            scores.resize(tools, 0.0);
            best.resize(tools, 0.0);
        }
        for slot in &plan.slots {
            if let [only] = &slot.members[..] {
                let worth = slot.weight * only.share * only.idf;
                let (ids, impacts) = self.postings(only.term);
                for (id, impact) in ids.iter().zip(impacts) {
                    let score = &mut scores[*id as usize];
                    if *score == 0.0 {
                        touched.push(*id);
                    }
                    *score += worth * impact;
                }
                continue;
            }
            for member in &slot.members {
                let worth = slot.weight * member.share * member.idf;
                let (ids, impacts) = self.postings(member.term);
                for (id, impact) in ids.iter().zip(impacts) {
                    let best = &mut best[*id as usize];
                    if *best == 0.0 {
                        slot_touched.push(*id);
                    }
                    *best = best.max(worth * impact);
                }
            }
            for id in slot_touched.drain(..) {
                let score = &mut scores[id as usize];
                if *score == 0.0 {
                    touched.push(id);
                }
                *score += std::mem::take(&mut best[id as usize]);
            }
        }
        let mut candidates: Vec<(ToolId, f32)> = Vec::with_capacity(touched.len());
        for id in touched.drain(..) {
            let score = std::mem::take(&mut scores[id as usize]);
            let id = ToolId::at(id as usize);
            if filter.passes(id) {
                candidates.push((id, score));
            }
        }
        if candidates.len() > CANDIDATES {
            candidates.select_nth_unstable_by(CANDIDATES - 1, |a, b| self.order(*a, *b));
            candidates.truncate(CANDIDATES);
        }
        candidates
    }
}
