//! The calibrated confidence of a hit.
//!
//! A score orders the tools of one query and has no meaning beyond that: even if none of a hundred tools fits, one of
//! them has the best score. A confidence can be compared between queries. If half of all queries can be served, about
//! four in ten hits with confidence 0.4 serve their query; fewer do if the catalog has many tools that are hard to
//! distinguish.
//!
//! The confidence is computed from the highest similarity among the best hits, from the median similarity of
//! the candidates, from the difference between the best score and the score of the hit, from whether the query needs a
//! general tool and one of the best hits is one, and from how much of the query the hit covers. The module `fit` uses the
//! confidence of the first hit to decide whether any tool fits.

use super::Tier;
use super::bonus::Candidate;
use super::fuse::query_coverage;
use super::query_plan::QueryPlan;

/// How the confidence is computed from similarities.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SimilarityModel {
    bias: f32,
    /// The weight of the highest similarity among the best hits.
    similarity: f32,
    /// The weight of the background: the median similarity of the candidates.
    background: f32,
    /// How much is subtracted for each point by which the score of the hit is below the best score.
    gap: f32,
}

/// The model for similarities from the table. It was fitted with a vector table that was not trained on any of the
/// catalogs, and is used with every table.
const TABLE_MODEL: SimilarityModel =
    SimilarityModel { bias: -4.66, similarity: 7.36, background: 0.0, gap: 9.57 };
/// The model for similarities from the encoder and the table, fitted in the same way.
const DEEP_MODEL: SimilarityModel =
    SimilarityModel { bias: -4.55, similarity: 3.72, background: 4.83, gap: 9.6 };

/// The evidence from similarities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SimilarityEvidence {
    pub(super) tier: Tier,
    /// The highest similarity among the best hits. More than one hit is examined, because the most similar hit may not
    /// be the first.
    pub(super) top: f32,
    /// The median similarity of the candidates. It is higher if the catalog is about the query's subject.
    pub(super) background: f32,
    /// The highest probability, among the best hits, that the query needs a general tool and the hit is one.
    pub(super) general: f32,
    /// By how much the score of the hit is below the best score.
    pub(super) gap: f32,
}

impl SimilarityEvidence {
    fn confidence(&self) -> f32 {
        let model = match self.tier {
            Tier::Table => TABLE_MODEL,
            Tier::Deep => DEEP_MODEL,
        };
        let similar = model.bias + model.similarity * self.top + model.background * self.background;
        let general = GENERAL_CURVE.logit(self.general);
        sigmoid(similar.max(general) - model.gap * self.gap)
    }
}

/// A logistic curve that maps a signal to a confidence. It was fitted to queries that a catalog can serve and to as
/// many queries that it cannot serve: see docs/ranking.md.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LogisticCurve {
    bias: f32,
    slope: f32,
}

/// The curve for the query coverage. The confidence is the higher of its value and the value of the similarity model. A
/// tool that has most of the query's words fits even if the vector table has not learned these words, as with proper
/// names or languages that it hardly knows.
const COVERAGE_CURVE: LogisticCurve = LogisticCurve { bias: -5.2, slope: 5.0 };
/// The curve for the query coverage if there is no similarity, because the ranker uses words alone.
const WORDS_ONLY_CURVE: LogisticCurve = LogisticCurve { bias: -2.92, slope: 4.0 };

/// The curve for the probability that the query needs a general tool and one of the best hits is one. Such a tool fits although
/// nothing is similar to the query. training/README.md has the figures for other constants.
const GENERAL_CURVE: LogisticCurve = LogisticCurve { bias: -3.5, slope: 10.0 };

impl LogisticCurve {
    fn logit(self, signal: f32) -> f32 {
        self.bias + self.slope * signal
    }

    fn at(self, signal: f32) -> f32 {
        sigmoid(self.logit(signal))
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// The values from which the confidence of a hit is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ConfidenceInputs {
    /// The evidence from similarities. It is `None` if the ranker has no vectors, or if the query is ranked without the
    /// encoder and no part of it is in the vector table. In the second case, a cosine of 0 would not mean that the tool does not fit.
    pub(super) similarity: Option<SimilarityEvidence>,
    /// The word score, without the bonus for a tool that the query mentions by name.
    pub(super) word_score: f32,
    /// The total weight of the query's words.
    pub(super) query_weight: f32,
    /// Whether the query mentions the tool by name.
    pub(super) exact: bool,
}

impl ConfidenceInputs {
    pub(super) fn of(
        found: &Candidate,
        plan: &QueryPlan,
        similarity: Option<SimilarityEvidence>,
    ) -> Self {
        let (word_score, exact) = (found.bonus.word_score(found.base), found.bonus.exact > 0.0);
        Self { similarity, word_score, query_weight: plan.query_weight, exact }
    }

    /// How much of the query's weight the tool covers: about 1 if the tool has all words, and at most 1.5 with bonuses.
    pub(super) fn coverage(&self) -> f32 {
        query_coverage(self.word_score, self.query_weight)
    }

    /// Whether the tool was requested explicitly, either by its name or by a query that has filters and no words.
    fn is_requested_explicitly(&self) -> bool {
        self.exact || (self.query_weight <= 0.0 && self.word_score > 0.0)
    }
}

/// The probability that the hit serves the query, from 0 to 1. No other function computes it.
pub(super) fn confidence(inputs: &ConfidenceInputs) -> f32 {
    if inputs.is_requested_explicitly() {
        return 1.0;
    }
    let coverage = inputs.coverage();
    match inputs.similarity {
        Some(similarity) => similarity.confidence().max(COVERAGE_CURVE.at(coverage)),
        None => WORDS_ONLY_CURVE.at(coverage),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fit::{MIN_CONFIDENCE, MIN_FURTHER_CONFIDENCE, STRONG_CONFIDENCE};
    use super::super::fuse::MAX_COVERAGE;
    use super::*;

    /// Evidence from the table for the best hit.
    fn evidence(top: f32) -> SimilarityEvidence {
        SimilarityEvidence { tier: Tier::Table, top, background: 0.1, general: 0.0, gap: 0.0 }
    }

    /// The confidence of a tool that has this similarity and covers this share of the query.
    fn confidence_of(similarity: Option<f32>, coverage: f32) -> f32 {
        let word_score = 4.0 * coverage;
        let similarity = similarity.map(evidence);
        confidence(&ConfidenceInputs { similarity, word_score, query_weight: 4.0, exact: false })
    }

    #[test]
    fn confidence_grows_with_similarity_and_coverage_and_stays_between_0_and_1() {
        let check = |of: &dyn Fn(f32) -> f32| {
            let all: Vec<f32> = (0..=10_u8).map(|step| of(f32::from(step) / 10.0)).collect();
            assert!(
                all.is_sorted() && all[0] < all[10] && all[0] > 0.0 && all[10] < 1.0,
                "{all:?}"
            );
        };
        check(&|coverage| confidence_of(None, coverage));
        check(&|coverage| confidence_of(Some(0.3), coverage));
        check(&|similarity| confidence_of(Some(similarity), 0.5));
    }

    #[test]
    fn in_the_deep_tier_each_kind_of_evidence_counts() {
        let weak = SimilarityEvidence { tier: Tier::Deep, top: 0.4, ..evidence(0.0) };
        let stronger = [
            SimilarityEvidence { top: 0.6, ..weak },
            SimilarityEvidence { background: 0.2, ..weak },
            SimilarityEvidence { general: 1.0, ..weak },
        ];
        for evidence in stronger {
            assert!(evidence.confidence() > weak.confidence(), "{evidence:?}");
        }
        let behind = SimilarityEvidence { gap: 0.1, ..weak };
        assert!(behind.confidence() < weak.confidence());
    }

    #[test]
    fn full_coverage_is_a_strong_fit_and_no_coverage_is_no_fit() {
        assert!(confidence_of(None, 1.5) >= STRONG_CONFIDENCE);
        assert!(confidence_of(Some(0.7), 1.5) >= STRONG_CONFIDENCE);
        assert!(confidence_of(None, 0.0) < MIN_CONFIDENCE);
        assert!(confidence_of(Some(0.0), 0.0) < MIN_FURTHER_CONFIDENCE);
    }

    #[test]
    fn coverage_above_the_maximum_adds_no_confidence() {
        for similarity in [None, Some(0.2)] {
            let capped = confidence_of(similarity, MAX_COVERAGE);
            assert_eq!(confidence_of(similarity, 9.0).to_bits(), capped.to_bits());
        }
    }

    #[test]
    fn a_named_tool_and_a_filter_without_words_have_full_confidence() {
        let unlike = ConfidenceInputs {
            similarity: Some(evidence(-0.2)),
            word_score: 0.0,
            query_weight: 7.0,
            exact: false,
        };
        let whole_server = ConfidenceInputs {
            similarity: Some(evidence(0.0)),
            word_score: 1.0,
            query_weight: 0.0,
            exact: false,
        };
        let only_ignored_words = ConfidenceInputs { word_score: 0.0, ..whole_server };
        let all =
            [ConfidenceInputs { exact: true, ..unlike }, whole_server, only_ignored_words, unlike];
        let is_full = |inputs: &ConfidenceInputs| confidence(inputs) >= 1.0;
        assert_eq!(all.each_ref().map(is_full), [true, true, false, false]);
        assert!(confidence(&only_ignored_words) < MIN_CONFIDENCE);
    }
}
