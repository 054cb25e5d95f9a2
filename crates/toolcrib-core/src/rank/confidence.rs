//! How sure a hit is, and whether anything fits at all.
//!
//! A score orders the tools of one query and means nothing beyond it: the best of a hundred tools that
//! do not serve has the best score too. A confidence does not hang on the query: where half of all
//! queries can be served, about four in ten hits with 0.4 serve, and fewer where a catalog has many
//! tools that are hard to tell apart. It comes from how near the nearest of the foremost hits is, how
//! far behind the best a hit is, and how much of the query it has. Whether a query is answered at all
//! hangs on the first hit's.

use std::fmt;

use serde::Serialize;

use super::Hit;
use super::bonus::Candidate;
use super::fuse::coverage;
use super::plan::Plan;

/// The constants of a logistic curve, fitted to queries put to catalogs that serve them and to as many
/// that cannot: docs/ranking.md.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Curve {
    bias: f32,
    slope: f32,
}

/// By cosine. Fitted with a table that had seen none of the catalogs; every table is read with the same.
const NEAR: Curve = Curve { bias: -4.66, slope: 7.36 };
/// By coverage, beside a cosine: a tool that has most of what was asked serves though the table has not
/// learned the words, as with names and in languages it hardly knows.
const COVERED: Curve = Curve { bias: -5.2, slope: 5.0 };
/// By coverage alone, where there is no cosine.
const WORDS: Curve = Curve { bias: -2.92, slope: 4.0 };

impl Curve {
    fn at(self, signal: f32) -> f32 {
        1.0 / (1.0 + (-(self.bias + self.slope * signal)).exp())
    }
}

/// From this confidence on a first hit is taken to serve: of what cannot be served, one query in fifty
/// gets there.
const STRONG: f32 = 0.25;
/// Where the first hit has less, nothing fits: one in twenty of the queries that can be served gets there.
const LEAST: f32 = 0.1;
/// A further hit that has less is no answer beside a better one.
const TAIL: f32 = LEAST / 2.0;

/// What is known of one hit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Signals {
    /// How near it counts as being to the query. None where no vectors are asked, and for a query of which
    /// the table has no piece: then a cosine of nothing is not a sign that the tool is far.
    pub(super) cosine: Option<f32>,
    /// What its words gave, but for being named outright.
    pub(super) words: f32,
    /// What the query's words weigh.
    pub(super) asked: f32,
    /// Whether the query names it.
    pub(super) exact: bool,
}

impl Signals {
    pub(super) fn of(found: &Candidate, plan: &Plan, cosine: Option<f32>) -> Self {
        let (words, exact) = (found.bonus.words(found.base), found.bonus.exact > 0.0);
        Self { cosine, words, asked: plan.asked, exact }
    }

    /// How much of what the query's words weigh the tool has.
    pub(super) fn coverage(&self) -> f32 {
        coverage(self.words, self.asked)
    }

    /// Whether it is just what was asked for: a tool by its name, or all of a server and no words.
    fn is_given(&self) -> bool {
        self.exact || (self.asked <= 0.0 && self.words > 0.0)
    }
}

/// The one decision on how likely a hit is to serve, from 0 to 1.
pub(super) fn confidence(signals: &Signals) -> f32 {
    if signals.is_given() {
        return 1.0;
    }
    let covered = signals.coverage();
    match signals.cosine {
        Some(cosine) => NEAR.at(cosine).max(COVERED.at(covered)),
        None => WORDS.at(covered),
    }
}

/// Whether what was found serves. In this order: the later is the better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fit {
    /// No tool fits: none is given and none is loaded.
    None,
    /// It may.
    Weak,
    /// It does, most likely.
    Strong,
}

/// As replies write it.
impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Weak => "weak",
            Self::Strong => "strong",
        })
    }
}

/// Whether what was found serves, and why that is thought.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// The outcome.
    pub fit: Fit,
    /// Its reason.
    pub reason: FitReason,
}

/// Why a fit is what it is. Confidences are the first hit's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FitReason {
    /// Nothing was found.
    NoHits,
    /// The query names the first hit.
    Named,
    /// It is sure enough.
    Confident {
        /// How sure.
        confidence: f32,
    },
    /// It is neither sure nor unlikely.
    Uncertain {
        /// How sure.
        confidence: f32,
    },
    /// It is unlikely.
    Unlikely {
        /// How sure.
        confidence: f32,
    },
    /// It is unlikely, and the settings want it all the same.
    UnlikelyButShown {
        /// How sure.
        confidence: f32,
    },
}

/// The one decision on whether a ranking is an answer, from its hits, best first. `refuses`: whether
/// hits that are all unlikely are no answer.
pub(crate) fn judge(ranked: &[Hit], refuses: bool) -> Judgement {
    let first = ranked.first().and_then(|hit| Some((hit.exact, hit.confidence?)));
    let (fit, reason) = match first {
        None => (Fit::None, FitReason::NoHits),
        Some((true, _)) => (Fit::Strong, FitReason::Named),
        Some((_, confidence)) if confidence >= STRONG => {
            (Fit::Strong, FitReason::Confident { confidence })
        }
        Some((_, confidence)) if confidence >= LEAST => {
            (Fit::Weak, FitReason::Uncertain { confidence })
        }
        Some((_, confidence)) if refuses => (Fit::None, FitReason::Unlikely { confidence }),
        Some((_, confidence)) => (Fit::Weak, FitReason::UnlikelyButShown { confidence }),
    };
    Judgement { fit, reason }
}

/// Whether a hit that is not the first is worth showing beside it. Every tool is near to a query by
/// some cosine, so what the vectors bring has no end of its own.
pub(crate) fn is_worth_showing(hit: &Hit) -> bool {
    hit.confidence.is_none_or(|confidence| confidence >= TAIL)
}

impl fmt::Display for FitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (confidence, told) = match self {
            Self::NoHits => return f.write_str("nothing matches"),
            Self::Named => return f.write_str("the first hit is named outright"),
            Self::Confident { confidence } => (confidence, format!("and {STRONG} is enough")),
            Self::Uncertain { confidence } => (confidence, format!("between {LEAST} and {STRONG}")),
            Self::Unlikely { confidence } => (confidence, format!("below {LEAST}")),
            Self::UnlikelyButShown { confidence } => {
                (confidence, "and nothing is refused".to_owned())
            }
        };
        write!(f, "the first hit has confidence {confidence:.2}, {told}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::fuse::MOST_COVERED;
    use super::*;
    use crate::catalog::ToolId;

    /// A tool that has this share of the query, and is so near to it where vectors are asked.
    fn sure(cosine: Option<f32>, coverage: f32) -> f32 {
        confidence(&Signals { cosine, words: 4.0 * coverage, asked: 4.0, exact: false })
    }

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
    fn nearer_and_more_of_the_query_is_surer_and_never_beyond_0_and_1() {
        let steps = |of: &dyn Fn(f32) -> f32| {
            let all: Vec<f32> = (0..=10_u8).map(|step| of(f32::from(step) / 10.0)).collect();
            assert!(
                all.is_sorted() && all[0] < all[10] && all[0] > 0.0 && all[10] < 1.0,
                "{all:?}"
            );
        };
        steps(&|coverage| sure(None, coverage));
        steps(&|coverage| sure(Some(0.3), coverage));
        steps(&|cosine| sure(Some(cosine), 0.5));
    }

    #[test]
    fn all_of_the_query_is_strong_and_nothing_of_it_is_no_answer() {
        assert!(sure(None, 1.5) >= STRONG && sure(Some(0.7), 1.5) >= STRONG);
        assert!(sure(None, 0.0) < LEAST && sure(Some(0.0), 0.0) < TAIL);
    }

    #[test]
    fn one_rare_word_over_and_over_is_no_surer_than_the_whole_query() {
        assert_eq!(sure(None, 9.0).to_bits(), sure(None, MOST_COVERED).to_bits());
        assert_eq!(sure(Some(0.2), 9.0).to_bits(), sure(Some(0.2), MOST_COVERED).to_bits());
    }

    #[test]
    fn what_is_named_or_all_of_a_server_is_just_what_was_asked_for() {
        let far = Signals { cosine: Some(-0.2), words: 0.0, asked: 7.0, exact: false };
        let whole_server = Signals { cosine: Some(0.0), words: 1.0, asked: 0.0, exact: false };
        let idle_words_alone = Signals { words: 0.0, ..whole_server };
        let all = [Signals { exact: true, ..far }, whole_server, idle_words_alone, far];
        let of = |signals: &Signals| confidence(signals) >= 1.0;
        assert_eq!(all.each_ref().map(of), [true, true, false, false]);
        assert!(confidence(&idle_words_alone) < LEAST);
    }

    #[test]
    fn the_first_hit_decides_at_each_place_and_below_it() {
        let named = Hit { exact: true, ..hit(1.0) };
        let (nearly_strong, too_little) = (STRONG - f32::EPSILON, LEAST - f32::EPSILON);
        for (hits, refuses, fit, reason) in [
            (&[][..], true, Fit::None, FitReason::NoHits),
            (&[], false, Fit::None, FitReason::NoHits),
            (&[named, hit(0.0)], true, Fit::Strong, FitReason::Named),
            (&[hit(STRONG)], true, Fit::Strong, FitReason::Confident { confidence: STRONG }),
            (
                &[hit(nearly_strong), hit(0.9)],
                true,
                Fit::Weak,
                FitReason::Uncertain { confidence: nearly_strong },
            ),
            (&[hit(LEAST)], true, Fit::Weak, FitReason::Uncertain { confidence: LEAST }),
            (&[hit(too_little)], true, Fit::None, FitReason::Unlikely { confidence: too_little }),
            (
                &[hit(too_little)],
                false,
                Fit::Weak,
                FitReason::UnlikelyButShown { confidence: too_little },
            ),
        ] {
            assert_eq!(judge(hits, refuses), Judgement { fit, reason });
        }
    }

    #[test]
    fn a_tail_ends_below_what_the_first_hit_must_have() {
        assert!(is_worth_showing(&hit(TAIL)) && !is_worth_showing(&hit(TAIL - f32::EPSILON)));
        assert!(is_worth_showing(&Hit { confidence: None, ..hit(0.0) }), "as other systems rank");
    }

    #[test]
    fn a_fit_is_printed_as_it_is_written() {
        for fit in [Fit::None, Fit::Weak, Fit::Strong] {
            assert_eq!(serde_json::to_value(fit).unwrap(), fit.to_string());
        }
    }

    #[test]
    fn a_better_fit_is_greater() {
        assert!(None < Some(Fit::None) && Fit::None < Fit::Weak && Fit::Weak < Fit::Strong);
    }
}
