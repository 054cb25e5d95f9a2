//! Runs the queries of a dataset and scores the rankings.

use std::time::Instant;

use serde::Serialize;
use toolcrib_core::policy::Rules;
use toolcrib_core::rank::{Explanation, Fit};
use toolcrib_core::{Crib, Limits, Scope, Settings, WordQuery};

use crate::dataset::Dataset;
use crate::metrics::RetrievalMetrics;

/// The number of results that are requested for each query.
pub const RESULTS_PER_QUERY: usize = 10;
/// The number of tools of each query for which a run file has evidence.
pub const WITH_EVIDENCE: usize = 5;

/// The scores of one dataset, or their means over several datasets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EvalScore {
    /// The quality of the ranking.
    #[serde(flatten)]
    pub metrics: RetrievalMetrics,
    /// Like recall@5, but a servable query that is refused counts as 0. `None` if the ranker computes no confidence.
    #[serde(rename = "effective_recall@5", skip_serializing_if = "Option::is_none")]
    pub effective_recall5: Option<f64>,
    /// Share of the servable queries, which are those with relevant tools, that were answered with tools instead of "no
    /// tool fits". `None` if the ranker computes no confidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered: Option<f64>,
    /// Share of the unservable queries that were answered with tools; lower is better. `None` if the ranker computes no
    /// confidence or if there are no unservable queries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unservable_answered: Option<f64>,
    /// Time to index the catalog, in milliseconds.
    pub build_ms: f64,
    /// Median time of a search, in microseconds.
    pub p50_us: f64,
    /// 99th percentile of the time of a search, in microseconds.
    pub p99_us: f64,
}

/// The results for one dataset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DatasetReport {
    /// The name of the dataset.
    pub name: String,
    /// Number of tools.
    pub tools: usize,
    /// Number of servable queries that were run.
    pub queries: usize,
    /// Number of unservable queries that were run.
    pub unservable: usize,
    /// The scores.
    #[serde(flatten)]
    pub score: EvalScore,
}

/// One line of a run file: the ranking for one query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunLine {
    /// The name of the dataset.
    pub dataset: String,
    /// The id of the query.
    pub id: String,
    /// The names of the tools, best first.
    pub ranked: Vec<String>,
    /// The confidence of each tool, from 0 to 1. Empty if the ranker computes no confidence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confidence: Vec<f32>,
    /// The values from which the confidences of the first tools were computed, at most [`WITH_EVIDENCE`] of them. Empty if
    /// the ranker does not use vectors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
}

/// The values from which the confidence of a tool was computed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Evidence {
    /// The highest similarity among the best hits. It is `None` if the query has no vector.
    pub similarity: Option<f32>,
    /// The median similarity of the candidates.
    pub background: f32,
    /// By how much the score of the tool is below the best score.
    pub gap: f32,
    /// The highest probability, among the five best hits, that the query needs a general tool and the hit is one.
    pub general: f32,
    /// The share of the query's weight that the tool covers with its words.
    pub coverage: f32,
}

impl Evidence {
    fn of(explanation: &Explanation) -> Option<Self> {
        let values = explanation.similarity.as_ref()?;
        Some(Self {
            similarity: values.top_similarity,
            background: values.background,
            gap: values.gap,
            general: values.top_general,
            coverage: explanation.coverage?,
        })
    }
}

/// What [`evaluate`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvalOptions {
    /// Maximum number of queries.
    pub limit: usize,
    /// Whether the lines of the run file have evidence, which takes as long as several searches.
    pub evidence: bool,
}

/// Runs the first queries of a dataset as plain words, and calls `progress` after each query. Returns the scores and the
/// ranking of each query.
///
/// Only the ranking is timed, from the words to the ordered tools. A query without relevant tools is unservable: it has
/// no recall, and the correct answer is that no tool fits.
pub fn evaluate(
    dataset: Dataset,
    settings: &Settings,
    options: EvalOptions,
    embed_missing: impl FnOnce(&Crib),
    mut progress: impl FnMut(),
) -> (DatasetReport, Vec<RunLine>) {
    let begin = Instant::now();
    // Every tool of a dataset must be searchable, so rules that would exclude tools are removed.
    let mut settings = settings.clone();
    settings.rules = Rules::default();
    let crib = Crib::new(dataset.catalog, settings);
    crib.prepare();
    let build_ms = begin.elapsed().as_secs_f64() * 1e3;
    embed_missing(&crib);
    let scope = Scope::all(crib.catalog());
    let limits = Limits::default();
    let (mut results, mut run) = (QueryResults::default(), Vec::new());
    for judged in dataset.queries.iter().take(options.limit) {
        let words = WordQuery::plain(&judged.query, &limits);
        let begin = Instant::now();
        let hits = crib.rank(&words, &scope, RESULTS_PER_QUERY);
        results.times.push(begin.elapsed().as_secs_f64() * 1e6);
        let name = |id| crib.catalog().tool(id).name().to_owned();
        let ranked: Vec<String> = hits.iter().map(|hit| name(hit.id)).collect();
        let answered = crib.decide_fit(&hits).map(|judgement| judgement.fit != Fit::None);
        if judged.gold.is_empty() {
            results.unservable_answered.push(answered);
        } else {
            let metrics = RetrievalMetrics::of(judged, &ranked);
            let recall = |answered| if answered { metrics.recall5 } else { 0.0 };
            results.effective_recall5.push(answered.map(recall));
            results.metrics.push(metrics);
            results.answered.push(answered);
        }
        let confidence = hits.iter().filter_map(|hit| hit.confidence).collect();
        let explained = if options.evidence { &hits[..hits.len().min(WITH_EVIDENCE)] } else { &[] };
        let explained = explained.iter().filter_map(|hit| crib.explain(&words, &scope, hit.id));
        let evidence = explained.filter_map(|explanation| Evidence::of(&explanation)).collect();
        let (dataset, id) = (dataset.name.clone(), judged.id.clone());
        run.push(RunLine { dataset, id, ranked, confidence, evidence });
        progress();
    }
    let report = DatasetReport {
        name: dataset.name,
        tools: crib.catalog().len(),
        queries: results.metrics.len(),
        unservable: results.unservable_answered.len(),
        score: results.score(build_ms),
    };
    (report, run)
}

/// The results of all queries. Each list has one entry per query that it is about.
#[derive(Default)]
struct QueryResults {
    /// The metrics of each servable query.
    metrics: Vec<RetrievalMetrics>,
    /// The recall@5 of each servable query, or 0 if it was refused; `None` if the ranker computes no confidence.
    effective_recall5: Vec<Option<f64>>,
    /// Whether each servable query was answered; `None` if the ranker computes no confidence.
    answered: Vec<Option<bool>>,
    /// Whether each unservable query was answered; `None` if the ranker computes no confidence.
    unservable_answered: Vec<Option<bool>>,
    /// The time of each search, in microseconds.
    times: Vec<f64>,
}

impl QueryResults {
    fn score(mut self, build_ms: f64) -> EvalScore {
        self.times.sort_by(f64::total_cmp);
        EvalScore {
            metrics: RetrievalMetrics::mean(&self.metrics),
            effective_recall5: mean(&self.effective_recall5),
            answered: share(&self.answered),
            unservable_answered: share(&self.unservable_answered),
            build_ms,
            p50_us: percentile(&self.times, 0.50),
            p99_us: percentile(&self.times, 0.99),
        }
    }
}

/// Returns the mean scores over datasets. Each value is averaged over the datasets that have this value, all with equal
/// weight.
pub fn mean_score(reports: &[DatasetReport]) -> EvalScore {
    let n = reports.len().max(1) as f64;
    // A dataset without servable queries has no retrieval metrics, so it is left out of their mean.
    let servable = reports.iter().filter(|report| report.queries > 0);
    let metrics: Vec<RetrievalMetrics> = servable.map(|report| report.score.metrics).collect();
    let mean = |get: fn(&EvalScore) -> f64| {
        reports.iter().map(|report| get(&report.score)).sum::<f64>() / n
    };
    let mean_of_present = |get: fn(&EvalScore) -> Option<f64>| {
        let some: Vec<f64> = reports.iter().filter_map(|report| get(&report.score)).collect();
        (!some.is_empty()).then(|| some.iter().sum::<f64>() / some.len() as f64)
    };
    EvalScore {
        metrics: RetrievalMetrics::mean(&metrics),
        effective_recall5: mean_of_present(|score| score.effective_recall5),
        answered: mean_of_present(|score| score.answered),
        unservable_answered: mean_of_present(|score| score.unservable_answered),
        build_ms: mean(|score| score.build_ms),
        p50_us: mean(|score| score.p50_us),
        p99_us: mean(|score| score.p99_us),
    }
}

/// Returns the share of queries that were answered; `None` if there are no queries, or the ranker computes no
/// confidence.
fn share(answered: &[Option<bool>]) -> Option<f64> {
    let as_number =
        |answered: &Option<bool>| answered.map(|answered| f64::from(u8::from(answered)));
    mean(&answered.iter().map(as_number).collect::<Vec<_>>())
}

/// Returns the mean; `None` if there are no values or if one of them is missing.
fn mean(values: &[Option<f64>]) -> Option<f64> {
    let all: Option<Vec<f64>> = values.iter().copied().collect();
    let all = all.filter(|all| !all.is_empty())?;
    Some(all.iter().sum::<f64>() / all.len() as f64)
}

fn percentile(sorted: &[f64], share: f64) -> f64 {
    let index = ((sorted.len() as f64 * share).ceil() as usize).saturating_sub(1);
    sorted.get(index).copied().unwrap_or(0.0)
}
