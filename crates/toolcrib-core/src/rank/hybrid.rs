//! The hybrid ranker: words and vectors.
//!
//! The word index finds tools that contain the words of the query, and the vectors find tools with a similar meaning.
//! The best tools from both become candidates. Each candidate gets both scores, including the bonuses for its words,
//! and `fuse` combines them. If a request has several needs, `coverage_bonus` makes sure that each need is served.
//! Hidden tools influence neither signal. A tool that the query mentions by name comes first, as in the ranker that
//! uses words alone.

use std::cell::RefCell;

use super::bonus::Candidate;
use super::confidence::{ConfidenceInputs, SimilarityEvidence, confidence};
use super::coverage_bonus::CoverageBonuses;
use super::explain::{Explanation, Similarity};
use super::filter::QueryFilter;
use super::fuse::{FusedScore, QueryNorms, fuse};
use super::generality::GeneralMatch;
use super::index::Index;
use super::query_plan::QueryPlan;
use super::query_vectors::{NeedSimilarity, QueryVectors};
use super::vectors::VectorView;
use super::{Hit, RankInputs, Ranker, Ranking};
use crate::catalog::{Catalog, ToolId};
use crate::limits::Limits;
use crate::query::WordQuery;
use crate::scope::Scope;
use crate::text::words;

/// Number of candidates that the vectors contribute. The number is doubled for a request with independent needs.
const VECTOR_CANDIDATES: usize = 64;
/// Number of further candidates, those with the highest similarity including the bonus of a general tool.
const GENERAL_CANDIDATES: usize = 16;
/// How many of the best hits are searched for the highest similarity, which determines the confidence. More than one
/// hit is searched, because the most similar hit may not be the first.
const TOP_HITS: usize = 5;
/// The prior of the background. With few candidates, the background is close to this value.
const USUAL_BACKGROUND: f32 = 0.12;
/// The number of candidates at which the median counts as much as [`USUAL_BACKGROUND`].
const FEW_CANDIDATES: f32 = 8.0;

thread_local! {
    /// A buffer that is reused between queries, so that a query does not allocate memory in proportion to the catalog.
    static COSINES: RefCell<Vec<f32>> = RefCell::default();
}

/// The hybrid ranker. It contains the word index; the vectors are passed with the inputs of each search.
#[derive(Debug)]
pub(crate) struct Hybrid(Index);

/// A candidate with its similarity to the query and its scores.
struct ScoredCandidate {
    candidate: Candidate,
    /// The similarity to the query, from which confidences are computed.
    similarity: f32,
    fused: FusedScore,
    /// The probability that the query needs a general tool and the candidate is one.
    general: f32,
    /// The candidate's bonus for being the first hit, or for serving a need that no better candidate serves.
    coverage_bonus: f32,
}

impl ScoredCandidate {
    fn score_without_coverage(&self) -> f32 {
        self.fused.total(self.candidate.bonus.exact)
    }
}

/// All candidates for a query, with their scores.
struct CandidateScores<'a> {
    view: VectorView<'a>,
    query: QueryVectors,
    candidates: Vec<ScoredCandidate>,
    coverage: CoverageBonuses,
    norms: QueryNorms,
    /// The best fused score, without bonuses.
    best_score: f32,
    /// The highest similarity of any candidate.
    highest_similarity: f32,
    /// The highest similarity among the [`TOP_HITS`] best candidates.
    top_similarity: f32,
    /// The highest probability, among the [`TOP_HITS`] best candidates, that the query needs a general tool and the candidate
    /// is one.
    top_general: f32,
    /// The median similarity of the candidates, moved towards [`USUAL_BACKGROUND`] if there are few.
    background: f32,
}

impl CandidateScores<'_> {
    /// Returns the evidence for the confidence of a hit with this score. The coverage bonus is added to the score of this
    /// hit but not to the best score, so a hit is not penalised for serving another need. Returns `None` if no part of the
    /// query is in the vector table and the query is ranked without the encoder. In that case all similarities are 0, which
    /// does not mean that no tool fits.
    fn evidence(&self, fused: FusedScore, coverage_bonus: f32) -> Option<SimilarityEvidence> {
        (self.top_similarity != 0.0).then(|| SimilarityEvidence {
            tier: self.query.tier(),
            top: self.top_similarity,
            background: self.background,
            general: self.top_general,
            gap: (self.best_score - fused.total(0.0) - coverage_bonus).max(0.0),
        })
    }
}

impl Hybrid {
    pub(super) fn build(catalog: &Catalog, limits: &Limits) -> Self {
        Self(Index::build(catalog, limits))
    }

    fn score_candidates<'a>(
        &self,
        inputs: &RankInputs<'a>,
        words: &WordQuery,
        scope: &Scope,
        plan: &QueryPlan,
    ) -> CandidateScores<'a> {
        COSINES.with_borrow_mut(|cosines| {
            let view = inputs.vectors.view(inputs.catalog, &self.0.limits, scope);
            let query = QueryVectors::new(inputs.vectors, &view, &words.text, &plan.corrections);
            query.scan(&view, cosines);
            let factor = if query.needs_are_independent { 2 } else { 1 };
            // A general tool may be a candidate although it is not similar to the query.
            let general = query.with_general_bonuses(&view, cosines);
            let nearest = |filter: &QueryFilter<'_>| {
                let mut ids = self.nearest(cosines, factor * VECTOR_CANDIDATES, filter);
                if let Some(general) = &general {
                    ids.extend(self.nearest(general, GENERAL_CANDIDATES, filter));
                    ids.sort_unstable();
                    ids.dedup();
                }
                ids
            };
            let candidates = self.0.candidates(inputs, words, scope, plan, nearest);
            let word_scores = candidates.iter().map(|found| found.bonus.word_score(found.base));
            let best_word_score = word_scores.fold(0.0, f32::max);
            let mut query_words = 0;
            words::each(&words.text, &mut |_| query_words += 1);
            let norms =
                QueryNorms { query_weight: plan.query_weight, best_word_score, query_words };
            let need_similarities: Vec<Vec<NeedSimilarity>> =
                candidates.iter().map(|found| query.need_similarities(&view, found.id)).collect();
            let mut scored: Vec<ScoredCandidate> = Vec::with_capacity(candidates.len());
            for (candidate, need_similarities) in candidates.into_iter().zip(&need_similarities) {
                let whole = cosines[candidate.id.index()];
                let similarity =
                    query.similarity(whole, confidence_similarities(need_similarities));
                let ranked = query.similarity(whole, ranking_similarities(need_similarities));
                let word_score = candidate.bonus.word_score(candidate.base);
                let fused = fuse(word_score, ranked, &norms);
                scored.push(ScoredCandidate {
                    candidate,
                    similarity,
                    fused,
                    general: 0.0,
                    coverage_bonus: 0.0,
                });
            }
            let highest_similarity =
                scored.iter().map(|found| found.similarity).fold(0.0, f32::max);
            let (best_score, top_similarity) = best_score_and_similarity(&scored);
            for found in &mut scored {
                let general = query.general_match(&view, found.candidate.id);
                let bonus = general_bonus(general, found.fused, highest_similarity, best_score);
                found.general = general.map_or(0.0, |general| general.strength());
                found.fused = found.fused.with_general(bonus);
            }
            let coverage = self.add_coverage_bonuses(&mut scored, &need_similarities);
            let top_general = highest_general(&scored);
            let background =
                background(scored.iter().map(|found| cosines[found.candidate.id.index()]));
            CandidateScores {
                view,
                query,
                candidates: scored,
                coverage,
                norms,
                best_score,
                highest_similarity,
                top_similarity,
                top_general,
                background,
            }
        })
    }

    /// Gives each candidate its coverage bonus, if the request has several needs.
    fn add_coverage_bonuses(
        &self,
        scored: &mut [ScoredCandidate],
        need_similarities: &[Vec<NeedSimilarity>],
    ) -> CoverageBonuses {
        if need_similarities.first().is_none_or(Vec::is_empty) {
            return CoverageBonuses::default();
        }
        let similarities: Vec<Vec<f32>> =
            need_similarities.iter().map(|needs| ranking_similarities(needs).collect()).collect();
        let scores: Vec<f32> = scored.iter().map(ScoredCandidate::score_without_coverage).collect();
        let rank = |at: usize| self.0.name_rank(scored[at].candidate.id);
        let coverage = CoverageBonuses::new(&scores, &similarities, |a, b| rank(a).cmp(&rank(b)));
        for (candidate, bonus) in scored.iter_mut().zip(&coverage.bonuses) {
            candidate.coverage_bonus = *bonus;
        }
        coverage
    }

    /// The tools with the highest positive cosines that pass the filter, at most `count`, in no particular
    /// order.
    fn nearest(&self, cosines: &[f32], count: usize, filter: &QueryFilter<'_>) -> Vec<ToolId> {
        let order = |a: &(ToolId, f32), b: &(ToolId, f32)| self.0.compare(*a, *b);
        // When this many tools have been collected, all but the best `count` are dropped, to limit memory.
        let capacity = 8 * count;
        let mut kept: Vec<(ToolId, f32)> = Vec::with_capacity(capacity);
        let mut threshold = f32::MIN_POSITIVE;
        for (at, cosine) in cosines.iter().enumerate() {
            let id = ToolId::at(at);
            if *cosine < threshold || !filter.passes(id) {
                continue;
            }
            kept.push((id, *cosine));
            if kept.len() == capacity {
                kept.select_nth_unstable_by(count - 1, order);
                kept.truncate(count);
                threshold = kept[count - 1].1;
            }
        }
        if kept.len() > count {
            kept.select_nth_unstable_by(count - 1, order);
            kept.truncate(count);
        }
        kept.into_iter().map(|(id, _)| id).collect()
    }
}

/// Returns the median similarity of the candidates, which is higher if the catalog is about the query's subject. If there
/// are few candidates, the result is close to [`USUAL_BACKGROUND`], because the median of a few tools says little.
fn background(similarities: impl Iterator<Item = f32>) -> f32 {
    let mut values: Vec<f32> = similarities.collect();
    if values.is_empty() {
        return USUAL_BACKGROUND;
    }
    let (count, middle) = (values.len() as f32, values.len() / 2);
    let median = *values.select_nth_unstable_by(middle, f32::total_cmp).1;
    (count * median + FEW_CANDIDATES * USUAL_BACKGROUND) / (count + FEW_CANDIDATES)
}

fn ranking_similarities(needs: &[NeedSimilarity]) -> impl Iterator<Item = f32> {
    needs.iter().map(|need| need.for_ranking)
}

fn confidence_similarities(needs: &[NeedSimilarity]) -> impl Iterator<Item = f32> {
    needs.iter().map(|need| need.for_confidence)
}

/// Returns the bonus of a candidate with this score as a general tool. `best_score` is the best score without bonuses.
fn general_bonus(
    general: Option<GeneralMatch>,
    fused: FusedScore,
    highest_similarity: f32,
    best_score: f32,
) -> f32 {
    let room = best_score - fused.without_bonuses();
    general.map_or(0.0, |general| general.bonus(highest_similarity, room))
}

/// Returns two values: the best fused score without bonuses, and the highest similarity among the [`TOP_HITS`] best
/// candidates by that score.
fn best_score_and_similarity(scored: &[ScoredCandidate]) -> (f32, f32) {
    let pairs = scored.iter().map(|found| (found.fused.without_bonuses(), found.similarity));
    let maximum = |a: (f32, f32), b: (f32, f32)| (a.0.max(b.0), a.1.max(b.1));
    best_pairs(pairs).into_iter().reduce(maximum).unwrap_or_default()
}

/// Returns the highest probability, among the [`TOP_HITS`] best candidates, that the query needs a general tool and the candidate
/// is one.
fn highest_general(scored: &[ScoredCandidate]) -> f32 {
    let score = |found: &ScoredCandidate| found.score_without_coverage() + found.coverage_bonus;
    let pairs = scored.iter().map(|found| (score(found), found.general));
    best_pairs(pairs).into_iter().map(|(_, general)| general).fold(0.0, f32::max)
}

/// Returns the [`TOP_HITS`] pairs of a score and a value with the best scores. Ties are broken by the value, so the result does
/// not depend on which of several equal candidates is selected.
fn best_pairs(pairs: impl Iterator<Item = (f32, f32)>) -> Vec<(f32, f32)> {
    let mut pairs: Vec<(f32, f32)> = pairs.collect();
    if pairs.len() > TOP_HITS {
        let order = |a: &(f32, f32), b: &(f32, f32)| b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1));
        pairs.select_nth_unstable_by(TOP_HITS - 1, order);
        pairs.truncate(TOP_HITS);
    }
    pairs
}

impl Ranker for Hybrid {
    fn search(
        &self,
        inputs: &RankInputs<'_>,
        words: &WordQuery,
        scope: &Scope,
        limit: usize,
    ) -> Ranking {
        let plan = QueryPlan::new(&self.0, inputs.catalog, words, scope);
        let scores = self.score_candidates(inputs, words, scope, &plan);
        let hits = scores.candidates.iter().map(|found| {
            let ScoredCandidate { candidate, fused, coverage_bonus, .. } = found;
            let similarity = scores.evidence(*fused, *coverage_bonus);
            Hit {
                id: candidate.id,
                score: found.score_without_coverage() + coverage_bonus,
                coverage_bonus: *coverage_bonus,
                exact: candidate.bonus.exact > 0.0,
                confidence: Some(confidence(&ConfidenceInputs::of(candidate, &plan, similarity))),
            }
        });
        let hits = self.0.top_hits(hits.collect(), limit);
        Ranking { hits, corrections: plan.corrections, cut: plan.cut }
    }

    fn explain(
        &self,
        inputs: &RankInputs<'_>,
        words: &WordQuery,
        scope: &Scope,
        id: ToolId,
    ) -> Explanation {
        let plan = QueryPlan::new(&self.0, inputs.catalog, words, scope);
        let scores = self.score_candidates(inputs, words, scope, &plan);
        let found = scores.candidates.iter().find(|found| found.candidate.id == id);
        let candidate = found.map(|found| found.candidate);
        let by_words = self.0.explain_words(inputs.catalog, words, &plan, id, candidate);
        let exact = by_words.exact_bonus;
        let whole = scores.query.whole_similarity(&scores.view, id);
        let need_similarities = scores.query.need_similarities(&scores.view, id);
        let needs: Vec<f32> = ranking_similarities(&need_similarities).collect();
        let similarity = scores.query.similarity(whole.combined, needs.iter().copied());
        let word_score = by_words.word_score();
        let general = scores.query.general_match(&scores.view, id);
        let fused = fuse(word_score, similarity, &scores.norms);
        let bonus = general_bonus(general, fused, scores.highest_similarity, scores.best_score);
        let fused = fused.with_general(bonus);
        let coverage_bonus =
            found.map_or_else(|| scores.coverage.bonus_for(&needs), |found| found.coverage_bonus);
        let evidence = scores.evidence(fused, coverage_bonus);
        Explanation {
            score: fused.total(exact) + coverage_bonus,
            similarity: Some(Similarity {
                word_score,
                query_weight: scores.norms.query_weight,
                best_word_score: scores.norms.best_word_score,
                words: fused.words,
                tier: scores.query.tier(),
                cosine: whole.table,
                deep_cosine: whole.deep,
                needs: scores.query.needs(),
                needs_apart: scores.query.needs_are_independent,
                coverage_bonus,
                general: general
                    .zip(inputs.vectors.general_types())
                    .and_then(|(found, types)| found.explained(types, bonus)),
                top_similarity: evidence.map(|evidence| evidence.top),
                top_general: scores.top_general,
                background: scores.background,
                gap: evidence.map_or(0.0, |evidence| evidence.gap),
                vectors: fused.vectors,
            }),
            ..by_words.with_confidence(&plan, evidence)
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

    /// Number of tools in the catalog, far more than are kept as candidates. The catalog has the tools in reverse order
    /// of their names.
    const TOOLS: usize = 2_000;

    fn catalog() -> Catalog {
        let names = (0..TOOLS).rev().map(|n| format!(r#"{{"name":"t{n:04}","description":"x"}}"#));
        let text = names.collect::<Vec<_>>().join("\n");
        Catalog::from_json(text.as_bytes()).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

        /// If many tools have equal cosines, those whose names sort first must be kept, even though tools are dropped
        /// along the way.
        #[test]
        fn the_nearest_are_the_same_as_after_sorting_everything(
            steps in proptest::collection::vec(any::<u8>(), TOOLS),
            values in 2..48_u8,
            every in 1..6_usize,
        ) {
            let (catalog, limits) = (catalog(), Limits::default());
            let hybrid = Hybrid::build(&catalog, &limits);
            let scope = Scope::of(&catalog, catalog.ids().step_by(every));
            let words = WordQuery::default();
            let inputs = RankInputs {
                catalog: &catalog,
                spellings: &Spellings::of(&catalog),
                vectors: &Vectors::default(),
                settings: &RankSettings::default(),
                limits: &limits,
                must_in_name: false,
            };
            let filter = QueryFilter::new(&hybrid.0, &inputs, &words, &scope);
            let cosines: Vec<f32> = steps.iter().map(|step| f32::from(step % values) / 64.0).collect();
            let above = |id: &ToolId| cosines[id.index()] > 0.0;
            let mut all: Vec<ToolId> = scope.ids().filter(above).collect();
            all.sort_by(|a, b| {
                let by_cosine = cosines[b.index()].total_cmp(&cosines[a.index()]);
                let name = |id: &ToolId| catalog.tool(*id).name();
                by_cosine.then_with(|| name(a).cmp(name(b)))
            });
            all.truncate(VECTOR_CANDIDATES);
            all.sort();
            let mut near = hybrid.nearest(&cosines, VECTOR_CANDIDATES, &filter);
            near.sort();
            prop_assert_eq!(near, all);
        }
    }
}
