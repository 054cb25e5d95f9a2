//! The measures of one ranked list, and their means.

use serde::{Deserialize, Serialize};

use crate::dataset::Judged;

/// The measures that are reported. Of one query each is 0 to 1; of a set, the mean over queries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Discounted gain of the first ten against the best possible order.
    #[serde(rename = "ndcg@10")]
    pub ndcg10: f64,
    /// Share of the gold tools that come first.
    #[serde(rename = "recall@1")]
    pub recall1: f64,
    /// Share among the first five.
    #[serde(rename = "recall@5")]
    pub recall5: f64,
    /// Share among the first ten.
    #[serde(rename = "recall@10")]
    pub recall10: f64,
    /// One by the rank of the first gold tool.
    pub mrr: f64,
    /// Whether the first five have all that is needed.
    #[serde(rename = "complete@5")]
    pub complete5: f64,
}

impl Metrics {
    /// The measures of one ranking.
    pub fn of<S: AsRef<str>>(judged: &Judged, ranked: &[S]) -> Self {
        let gain = |name: &str| {
            let gold = judged.gold.iter().any(|gold| gold == name);
            if gold { judged.rel.get(name).copied().unwrap_or(1.0) } else { 0.0 }
        };
        let discount = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
        let gains: Vec<f64> = ranked.iter().map(|name| gain(name.as_ref())).collect();
        let mut ideal: Vec<f64> = judged.gold.iter().map(|name| gain(name)).collect();
        ideal.sort_by(|a, b| b.total_cmp(a));
        ideal.truncate(if judged.any { 1 } else { 10 });
        let best: f64 = ideal.iter().enumerate().map(|(rank, gain)| gain * discount(rank)).sum();
        let got = gains.iter().take(10).enumerate().map(|(rank, gain)| gain * discount(rank));
        // With any one tool enough, the first one found is all that counts.
        let got: f64 = if judged.any { got.fold(0.0, f64::max) } else { got.sum() };
        let found = |k: usize| gains.iter().take(k).filter(|gain| **gain > 0.0).count() as f64;
        let recall = |k: usize| {
            if judged.any { found(k).min(1.0) } else { found(k) / judged.gold.len() as f64 }
        };
        let first = gains.iter().position(|gain| *gain > 0.0);
        Self {
            ndcg10: if best > 0.0 { got / best } else { 0.0 },
            recall1: recall(1),
            recall5: recall(5),
            recall10: recall(10),
            mrr: first.map_or(0.0, |rank| 1.0 / (rank as f64 + 1.0)),
            complete5: f64::from(u8::from(recall(5) >= 1.0)),
        }
    }

    /// The mean of several.
    pub fn mean(all: &[Self]) -> Self {
        let n = all.len().max(1) as f64;
        // An empty sum of floats is minus zero.
        let mean = |get: fn(&Self) -> f64| (all.iter().map(get).sum::<f64>() + 0.0) / n;
        Self {
            ndcg10: mean(|m| m.ndcg10),
            recall1: mean(|m| m.recall1),
            recall5: mean(|m| m.recall5),
            recall10: mean(|m| m.recall10),
            mrr: mean(|m| m.mrr),
            complete5: mean(|m| m.complete5),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn judged(gold: &[&str]) -> Judged {
        Judged {
            id: "q".into(),
            query: "q".into(),
            gold: gold.iter().map(ToString::to_string).collect(),
            rel: BTreeMap::default(),
            any: false,
        }
    }

    #[test]
    fn one_gold_tool_in_second_place() {
        let got = Metrics::of(&judged(&["b"]), &["a", "b", "c"]);
        let ndcg10 = 1.0 / 3f64.log2();
        let want =
            Metrics { ndcg10, recall1: 0.0, recall5: 1.0, recall10: 1.0, mrr: 0.5, complete5: 1.0 };
        assert_eq!(got, want);
    }

    #[test]
    fn half_of_what_is_needed() {
        let got = Metrics::of(&judged(&["a", "z"]), &["a", "b"]);
        assert_eq!((got.recall5, got.complete5, got.mrr), (0.5, 0.0, 1.0));
        assert!((got.ndcg10 - 1.0 / (1.0 + 1.0 / 3f64.log2())).abs() < 1e-12);
    }

    #[test]
    fn any_one_of_them_is_all_that_is_needed() {
        let judged = Judged { any: true, ..judged(&["a", "b", "c"]) };
        let got = Metrics::of(&judged, &["x", "c", "a"]);
        assert_eq!((got.recall1, got.recall5, got.complete5), (0.0, 1.0, 1.0));
        assert!((got.ndcg10 - 1.0 / 3f64.log2()).abs() < 1e-12);
    }

    #[test]
    fn graded_gold_prefers_the_better_tool_first() {
        let mut judged = judged(&["a", "b"]);
        judged.rel = [("a".to_owned(), 2.0), ("b".to_owned(), 1.0)].into();
        let best = Metrics::of(&judged, &["a", "b"]).ndcg10;
        let other = Metrics::of(&judged, &["b", "a"]).ndcg10;
        assert!((best - 1.0).abs() < 1e-12 && other < 1.0);
    }
}
