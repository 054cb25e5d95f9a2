//! Bonuses that are computed for the best candidates only.
//!
//! Word scores alone leave near ties between tools that share words. Three bonuses separate such tools: a bonus for
//! words that are adjacent both in the query and in the tool; one for the share of the tool's *name* that the query
//! covers; and one for the scores of the other tools of the same server. Together they add 2.5 points of nDCG on ten
//! datasets. Their cost depends on the number of candidates and not on the size of the catalog.

use rustc_hash::FxHashMap;

use super::filter::NamedTools;
use super::index::{Index, Term};
use super::query_plan::{QueryPlan, QueryWord};
use crate::catalog::{Catalog, ToolId};
use crate::query::WordQuery;
use crate::scope::Scope;
use crate::text::words;

/// Bonus if the query covers the tool's name completely, as a share of the word score.
const NAME_WEIGHT: f32 = 0.5;
/// Bonus that a tool gets for the other tools of its server, as a share of the mean of their scores.
const SERVER_WEIGHT: f32 = 0.15;
/// Bonus for each quoted phrase that the tool contains, as a multiple of the average weight of the query's words.
const PHRASE_WEIGHT: f32 = 1.0;

/// The bonuses of a candidate.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Bonus {
    /// The bonus for words that are adjacent both in the query and in the tool.
    pub(super) pairs: f32,
    /// The bonus for quoted phrases.
    pub(super) phrases: f32,
    /// The bonus for the share of the name that the query covers.
    pub(super) name: f32,
    /// The bonus for the scores of the other tools of the same server.
    pub(super) server: f32,
    /// The bonus for a tool that the query mentions by name.
    pub(super) exact: f32,
}

impl Bonus {
    /// The complete score. The summands are always added in the same order, so that search and `explain` get exactly
    /// the same float.
    pub(super) fn total(&self, base: f32) -> f32 {
        self.word_score(base) + self.exact
    }

    /// The score without the bonus for tools that the query mentions by name.
    pub(super) fn word_score(&self, base: f32) -> f32 {
        base + self.pairs + self.phrases + self.name + self.server
    }
}

/// A candidate with its bonuses. Its base score is the sum of the points for the words of the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Candidate {
    pub(super) id: ToolId,
    pub(super) base: f32,
    pub(super) bonus: Bonus,
}

/// Computes the bonuses of candidates for one query.
pub(super) struct BonusScorer<'a> {
    index: &'a Index,
    catalog: &'a Catalog,
    scope: &'a Scope,
    plan: &'a QueryPlan,
    named: &'a NamedTools,
    phrases: Vec<String>,
    /// For each term, the highest factor with which a word of the query matches it. Sorted by term.
    term_factors: Vec<(Term, f32)>,
    /// A bit mask of the first terms of all pairs, for a fast check. Each term sets the bit whose number is the term
    /// modulo 64.
    first_terms_mask: u64,
}

impl<'a> BonusScorer<'a> {
    pub(super) fn new(
        index: &'a Index,
        catalog: &'a Catalog,
        scope: &'a Scope,
        (plan, words): (&'a QueryPlan, &WordQuery),
        named: &'a NamedTools,
    ) -> Self {
        let terms = plan.words.iter().flat_map(|word| &word.terms);
        let mut term_factors: Vec<(Term, f32)> =
            terms.map(|term| (term.term, term.factor)).collect();
        term_factors.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        term_factors.dedup_by_key(|(term, _)| *term);
        let phrases = words.phrases.iter().map(|phrase| words::fold_name(phrase)).collect();
        let first_terms_mask =
            plan.pairs.iter().fold(0, |mask, (first, _, _)| mask | 1 << (first % 64));
        Self { index, catalog, scope, plan, named, phrases, term_factors, first_terms_mask }
    }

    /// Computes the bonuses of all candidates together, because the bonus for the server depends on the other
    /// candidates.
    pub(super) fn score_all(&self, bases: &[(ToolId, f32)]) -> Vec<Candidate> {
        let mut candidates: Vec<Candidate> = bases
            .iter()
            .map(|(id, base)| Candidate { id: *id, base: *base, bonus: self.own_bonus(*id, *base) })
            .collect();
        let mut sums: FxHashMap<usize, f32> = FxHashMap::default();
        for candidate in &candidates {
            if let Some(server) = self.index.server_of(candidate.id) {
                *sums.entry(server).or_default() += candidate.bonus.total(candidate.base);
            }
        }
        let sizes: FxHashMap<usize, usize> =
            sums.keys().map(|server| (*server, self.server_size(*server))).collect();
        for candidate in &mut candidates {
            let Some(server) = self.index.server_of(candidate.id) else { continue };
            let own = candidate.bonus.total(candidate.base);
            let neighbours = sizes[&server].saturating_sub(1);
            if neighbours > 0 {
                candidate.bonus.server =
                    SERVER_WEIGHT * (sums[&server] - own).max(0.0) / neighbours as f32;
            }
        }
        for candidate in &mut candidates {
            candidate.bonus.exact = self.named.bonus(candidate.id);
        }
        candidates
    }

    fn server_size(&self, server: usize) -> usize {
        let ids = &self.catalog.servers()[server].1;
        if self.scope.is_all() {
            return ids.len();
        }
        ids.iter().filter(|id| self.scope.contains(**id)).count()
    }

    /// The bonuses that do not depend on other candidates.
    fn own_bonus(&self, id: ToolId, base: f32) -> Bonus {
        let pairs = self.pairs(id);
        let phrases = self.phrases(id);
        let name = (base + pairs + phrases) * NAME_WEIGHT * self.name_coverage(id);
        Bonus { pairs, phrases, name, ..Bonus::default() }
    }

    /// Returns the bonus for adjacent words. It is computed in one pass over the tool's words. The mask lets most words
    /// be skipped quickly.
    fn pairs(&self, id: ToolId) -> f32 {
        let mut sum = 0.0;
        let mut found = 0u128;
        for pair in self.index.sequence(id).windows(2) {
            if self.first_terms_mask >> (pair[0] % 64) & 1 == 0 {
                continue;
            }
            let known = self.plan.pairs.iter().position(|(a, b, _)| [*a, *b] == *pair);
            // Each pair counts only once per tool.
            if let Some(at) = known.filter(|at| found >> (at % 128) & 1 == 0) {
                found |= 1 << (at % 128);
                sum += self.plan.pairs[at].2;
            }
        }
        sum
    }

    fn name_coverage(&self, id: ToolId) -> f32 {
        let (mut asked, mut all) = (0.0, 0.0);
        for term in self.index.name_terms(id) {
            let idf = self.index.idf(*term, self.scope);
            let term_factors = self.term_factors.binary_search_by_key(term, |(known, _)| *known);
            asked += term_factors.map_or(0.0, |at| self.term_factors[at].1) * idf;
            all += idf;
        }
        if all > 0.0 { asked / all } else { 0.0 }
    }

    fn phrases(&self, id: ToolId) -> f32 {
        if self.phrases.is_empty() || self.plan.words.is_empty() {
            return 0.0;
        }
        let tool = self.catalog.tool(id);
        let text = words::fold_name(&format!("{} {}", tool.name(), tool.description()));
        let matched = self.phrases.iter().filter(|phrase| text.contains(phrase.as_str())).count();
        let worth = |word: &QueryWord| word.weight * word.terms[0].idf;
        let average = self.plan.words.iter().map(worth).sum::<f32>() / self.plan.words.len() as f32;
        PHRASE_WEIGHT * average * matched as f32
    }
}
