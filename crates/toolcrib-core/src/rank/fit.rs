//! Decides whether any tool fits a query.
//!
//! Only [`decide_fit`] makes this decision. It uses the confidence of the first hit. `explain`, replies and the
//! evaluation all use its result.

use std::fmt;

use serde::Serialize;

use super::Hit;

/// Minimum confidence of the first hit for a strong fit. Of the queries that cannot be served, one in fifty reaches
/// this confidence.
pub(super) const STRONG_CONFIDENCE: f32 = 0.25;
/// Minimum confidence of the first hit for any fit. In the deep tier, 1 % of the queries that can be served stay below this
/// confidence.
pub(super) const MIN_CONFIDENCE: f32 = 0.09;
/// Minimum confidence of all hits after the first.
pub(super) const MIN_FURTHER_CONFIDENCE: f32 = MIN_CONFIDENCE / 2.0;

/// How well the best hit fits the query. Ordered from worst to best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fit {
    /// No tool fits, so no hit is returned and no tool is loaded.
    None,
    /// A hit may fit.
    Weak,
    /// A hit very likely fits.
    Strong,
}

/// The name of the fit as it is written in replies.
impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Weak => "weak",
            Self::Strong => "strong",
        })
    }
}

/// A fit and its reason.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitDecision {
    /// The fit.
    pub fit: Fit,
    /// Why this fit was decided.
    pub reason: FitReason,
}

/// The reason for a [`Fit`]. All confidences are those of the first hit.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum FitReason {
    /// There are no hits.
    NoHits,
    /// The query mentions the first hit by name.
    Named,
    /// The confidence is high enough for a strong fit.
    Confident {
        /// The confidence.
        confidence: f32,
    },
    /// The confidence is high enough for a weak fit only.
    Uncertain {
        /// The confidence.
        confidence: f32,
    },
    /// The confidence is too low for any fit.
    Unlikely {
        /// The confidence.
        confidence: f32,
    },
    /// The confidence is too low for any fit, but the settings do not allow a reply that nothing fits.
    UnlikelyButShown {
        /// The confidence.
        confidence: f32,
    },
}

/// Decides whether the hits of a ranking fit the query. The hits are sorted, best first. `may_refuse` sets whether the
/// result may be that nothing fits.
pub(crate) fn decide_fit(ranked: &[Hit], may_refuse: bool) -> FitDecision {
    let first = ranked.first().and_then(|hit| Some((hit.exact, hit.confidence?)));
    let (fit, reason) = match first {
        None => (Fit::None, FitReason::NoHits),
        Some((true, _)) => (Fit::Strong, FitReason::Named),
        Some((_, confidence)) if confidence >= STRONG_CONFIDENCE => {
            (Fit::Strong, FitReason::Confident { confidence })
        }
        Some((_, confidence)) if confidence >= MIN_CONFIDENCE => {
            (Fit::Weak, FitReason::Uncertain { confidence })
        }
        Some((_, confidence)) if may_refuse => (Fit::None, FitReason::Unlikely { confidence }),
        Some((_, confidence)) => (Fit::Weak, FitReason::UnlikelyButShown { confidence }),
    };
    FitDecision { fit, reason }
}

/// Whether a hit after the first is confident enough to be shown. Without this limit, the vectors would return almost
/// every tool, because every tool has some similarity to the query.
pub(crate) fn is_confident_enough_to_show(hit: &Hit) -> bool {
    hit.confidence.is_none_or(|confidence| confidence >= MIN_FURTHER_CONFIDENCE)
}

impl fmt::Display for FitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (confidence, comparison) = match self {
            Self::NoHits => return f.write_str("nothing matches"),
            Self::Named => return f.write_str("the query names the first hit"),
            Self::Confident { confidence } => (confidence, format!("at least {STRONG_CONFIDENCE}")),
            Self::Uncertain { confidence } => {
                (confidence, format!("between {MIN_CONFIDENCE} and {STRONG_CONFIDENCE}"))
            }
            Self::Unlikely { confidence } => (confidence, format!("below {MIN_CONFIDENCE}")),
            Self::UnlikelyButShown { confidence } => {
                (confidence, format!("below {MIN_CONFIDENCE}, but refusing is disabled"))
            }
        };
        write!(f, "the first hit has confidence {confidence:.2}, {comparison}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::ToolId;

    fn hit(confidence: f32) -> Hit {
        Hit {
            id: ToolId::at(0),
            score: 1.0,
            coverage_bonus: 0.0,
            exact: false,
            confidence: Some(confidence),
        }
    }

    #[test]
    fn the_first_hit_decides_at_each_limit_and_below_it() {
        let named = Hit { exact: true, ..hit(1.0) };
        let below_strong = STRONG_CONFIDENCE - f32::EPSILON;
        let below_minimum = MIN_CONFIDENCE - f32::EPSILON;
        let confident = |confidence| FitReason::Confident { confidence };
        let uncertain = |confidence| FitReason::Uncertain { confidence };
        let unlikely = |confidence| FitReason::Unlikely { confidence };
        let shown = |confidence| FitReason::UnlikelyButShown { confidence };
        for (hits, may_refuse, fit, reason) in [
            (&[][..], true, Fit::None, FitReason::NoHits),
            (&[], false, Fit::None, FitReason::NoHits),
            (&[named, hit(0.0)], true, Fit::Strong, FitReason::Named),
            (&[hit(STRONG_CONFIDENCE)], true, Fit::Strong, confident(STRONG_CONFIDENCE)),
            (&[hit(below_strong), hit(0.9)], true, Fit::Weak, uncertain(below_strong)),
            (&[hit(MIN_CONFIDENCE)], true, Fit::Weak, uncertain(MIN_CONFIDENCE)),
            (&[hit(below_minimum)], true, Fit::None, unlikely(below_minimum)),
            (&[hit(below_minimum)], false, Fit::Weak, shown(below_minimum)),
        ] {
            assert_eq!(decide_fit(hits, may_refuse), FitDecision { fit, reason });
        }
    }

    #[test]
    fn further_hits_may_have_less_confidence_than_the_first() {
        let minimum = MIN_FURTHER_CONFIDENCE;
        assert!(is_confident_enough_to_show(&hit(minimum)));
        assert!(!is_confident_enough_to_show(&hit(minimum - f32::EPSILON)));
        let unrated = Hit { confidence: None, ..hit(0.0) };
        assert!(is_confident_enough_to_show(&unrated), "rankers without confidence show all hits");
    }

    #[test]
    fn a_fit_is_displayed_as_it_is_serialized() {
        for fit in [Fit::None, Fit::Weak, Fit::Strong] {
            assert_eq!(serde_json::to_value(fit).unwrap(), fit.to_string());
        }
    }

    #[test]
    fn a_better_fit_is_greater() {
        assert!(None < Some(Fit::None) && Fit::None < Fit::Weak && Fit::Weak < Fit::Strong);
    }
}
