//! Retrieval metrics of one ranking, and their means.

use serde::{Deserialize, Serialize};

use crate::dataset::JudgedQuery;

/// The reported metrics, each from 0 to 1. For a dataset, they are the means over its queries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RetrievalMetrics {
    /// Normalised discounted cumulative gain of the first ten results.
    #[serde(rename = "ndcg@10")]
    pub ndcg10: f64,
    /// Share of the relevant tools that are the first result.
    #[serde(rename = "recall@1")]
    pub recall1: f64,
    /// Share of the relevant tools that are among the first five results.
    #[serde(rename = "recall@5")]
    pub recall5: f64,
    /// Share of the relevant tools that are among the first ten results.
    #[serde(rename = "recall@10")]
    pub recall10: f64,
    /// Reciprocal rank of the first relevant tool.
    pub mrr: f64,
    /// 1 if the first five results contain all relevant tools, otherwise 0. For a query with [`JudgedQuery::any`], one
    /// relevant tool is enough.
    #[serde(rename = "complete@5")]
    pub complete5: f64,
}

impl RetrievalMetrics {
    /// Computes the metrics of one ranking. `ranked` lists the best tool first.
    pub fn of<S: AsRef<str>>(judged: &JudgedQuery, ranked: &[S]) -> Self {
        let gain = |name: &str| {
            let gold = judged.gold.iter().any(|gold| gold == name);
            if gold { judged.rel.get(name).copied().unwrap_or(1.0) } else { 0.0 }
        };
        let discount = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
        let gains: Vec<f64> = ranked.iter().map(|name| gain(name.as_ref())).collect();
        let mut ideal: Vec<f64> = judged.gold.iter().map(|name| gain(name)).collect();
        ideal.sort_by(|a, b| b.total_cmp(a));
        ideal.truncate(if judged.any { 1 } else { 10 });
        let discounted = |(rank, gain): (usize, &f64)| gain * discount(rank);
        let ideal_dcg: f64 = ideal.iter().enumerate().map(discounted).sum();
        let gained = gains.iter().take(10).enumerate().map(discounted);
        // If any one tool is sufficient, only the result with the highest discounted gain counts.
        let dcg: f64 = if judged.any { gained.fold(0.0, f64::max) } else { gained.sum() };
        let found = |k: usize| gains.iter().take(k).filter(|gain| **gain > 0.0).count() as f64;
        let recall = |k: usize| {
            if judged.any { found(k).min(1.0) } else { found(k) / judged.gold.len() as f64 }
        };
        let first = gains.iter().position(|gain| *gain > 0.0);
        Self {
            ndcg10: if ideal_dcg > 0.0 { dcg / ideal_dcg } else { 0.0 },
            recall1: recall(1),
            recall5: recall(5),
            recall10: recall(10),
            mrr: first.map_or(0.0, |rank| 1.0 / (rank as f64 + 1.0)),
            complete5: f64::from(u8::from(recall(5) >= 1.0)),
        }
    }

    /// Returns the mean of each metric.
    pub fn mean(all: &[Self]) -> Self {
        let n = all.len().max(1) as f64;
        // The sum of no floats is -0.0. Adding 0.0 makes it 0.0.
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

    fn judged(gold: &[&str]) -> JudgedQuery {
        JudgedQuery {
            id: "q".into(),
            query: "q".into(),
            gold: gold.iter().map(ToString::to_string).collect(),
            rel: BTreeMap::default(),
            any: false,
        }
    }

    #[test]
    fn one_relevant_tool_on_rank_two() {
        let got = RetrievalMetrics::of(&judged(&["b"]), &["a", "b", "c"]);
        let ndcg10 = 1.0 / 3f64.log2();
        let want = RetrievalMetrics {
            ndcg10,
            recall1: 0.0,
            recall5: 1.0,
            recall10: 1.0,
            mrr: 0.5,
            complete5: 1.0,
        };
        assert_eq!(got, want);
    }

    #[test]
    fn one_of_two_relevant_tools_is_half_the_recall() {
        let got = RetrievalMetrics::of(&judged(&["a", "z"]), &["a", "b"]);
        assert_eq!((got.recall5, got.complete5, got.mrr), (0.5, 0.0, 1.0));
        assert!((got.ndcg10 - 1.0 / (1.0 + 1.0 / 3f64.log2())).abs() < 1e-12);
    }

    #[test]
    fn one_tool_is_full_recall_if_any_is_sufficient() {
        let judged = JudgedQuery { any: true, ..judged(&["a", "b", "c"]) };
        let got = RetrievalMetrics::of(&judged, &["x", "c", "a"]);
        assert_eq!((got.recall1, got.recall5, got.complete5), (0.0, 1.0, 1.0));
        assert!((got.ndcg10 - 1.0 / 3f64.log2()).abs() < 1e-12);
    }

    #[test]
    fn graded_relevance_prefers_the_better_tool_first() {
        let mut judged = judged(&["a", "b"]);
        judged.rel = [("a".to_owned(), 2.0), ("b".to_owned(), 1.0)].into();
        let best = RetrievalMetrics::of(&judged, &["a", "b"]).ndcg10;
        let other = RetrievalMetrics::of(&judged, &["b", "a"]).ndcg10;
        assert!((best - 1.0).abs() < 1e-12 && other < 1.0);
    }
}
