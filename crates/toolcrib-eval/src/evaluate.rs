//! Asking a set's queries and scoring the answers.

use std::time::Instant;

use serde::Serialize;
use toolcrib_core::policy::Rules;
use toolcrib_core::rank::Fit;
use toolcrib_core::{Crib, Limits, Scope, Settings, Words};

use crate::dataset::Dataset;
use crate::metrics::Metrics;

/// Results that are asked for.
pub const DEPTH: usize = 10;

/// A score sheet line: of one set, or the mean of several.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Score {
    /// How good.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// Share of the queries that some tool serves which were answered, and not told that no tool fits.
    /// None where the ranker does not judge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered: Option<f64>,
    /// The same share of the queries that no tool serves. None where there are none either.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unservable_answered: Option<f64>,
    /// Milliseconds to index the catalog.
    pub build_ms: f64,
    /// Microseconds of the median search.
    pub p50_us: f64,
    /// Microseconds of the 99th percentile.
    pub p99_us: f64,
}

/// What came out for one set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetReport {
    /// Its name.
    pub name: String,
    /// How many tools it has.
    pub tools: usize,
    /// How many queries that some tool serves were asked.
    pub queries: usize,
    /// How many that no tool serves.
    pub unservable: usize,
    /// The scores.
    #[serde(flatten)]
    pub score: Score,
}

/// One line of a run file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranked {
    /// The set.
    pub dataset: String,
    /// The query.
    pub id: String,
    /// The tools, best first.
    pub ranked: Vec<String>,
    /// How sure each of them is. Empty where the ranker does not judge.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confidence: Vec<f32>,
}

/// Asks the first `limit` queries of a set as plain words. `progress` hears of every one.
///
/// What is timed is the ranking itself, from the words to the order of tools. A query without gold is one
/// that nothing serves: it has no recall, and right is to refuse it.
pub fn evaluate(
    dataset: Dataset,
    settings: &Settings,
    limit: usize,
    mut progress: impl FnMut(),
) -> (SetReport, Vec<Ranked>) {
    let begin = Instant::now();
    // What a set holds is to be found, whatever a rule would keep out of the search.
    let settings = Settings { rules: Rules::default(), ..settings.clone() };
    let crib = Crib::new(dataset.catalog, settings);
    crib.prepare();
    let build_ms = begin.elapsed().as_secs_f64() * 1e3;
    let scope = Scope::all(crib.catalog());
    let limits = Limits::default();
    let (mut tally, mut run) = (Tally::default(), Vec::new());
    for judged in dataset.queries.iter().take(limit) {
        let words = Words::plain(&judged.query, &limits);
        let begin = Instant::now();
        let hits = crib.rank(&words, &scope, DEPTH);
        tally.times.push(begin.elapsed().as_secs_f64() * 1e6);
        let name = |id| crib.catalog().tool(id).name().to_owned();
        let ranked: Vec<String> = hits.iter().map(|hit| name(hit.id)).collect();
        let judgement = crib.judge(&hits).map(|judgement| judgement.fit != Fit::None);
        if judged.gold.is_empty() {
            tally.unservable_answered.push(judgement);
        } else {
            tally.metrics.push(Metrics::of(judged, &ranked));
            tally.answered.push(judgement);
        }
        let confidence = hits.iter().filter_map(|hit| hit.confidence).collect();
        let (dataset, id) = (dataset.name.clone(), judged.id.clone());
        run.push(Ranked { dataset, id, ranked, confidence });
        progress();
    }
    let report = SetReport {
        name: dataset.name,
        tools: crib.catalog().len(),
        queries: tally.metrics.len(),
        unservable: tally.unservable_answered.len(),
        score: tally.score(build_ms),
    };
    (report, run)
}

/// What came out for each query.
#[derive(Default)]
struct Tally {
    metrics: Vec<Metrics>,
    /// Whether it was answered; None where the ranker does not judge.
    answered: Vec<Option<bool>>,
    unservable_answered: Vec<Option<bool>>,
    /// Microseconds of each search.
    times: Vec<f64>,
}

impl Tally {
    fn score(mut self, build_ms: f64) -> Score {
        self.times.sort_by(f64::total_cmp);
        Score {
            metrics: Metrics::mean(&self.metrics),
            answered: share(&self.answered),
            unservable_answered: share(&self.unservable_answered),
            build_ms,
            p50_us: percentile(&self.times, 0.50),
            p99_us: percentile(&self.times, 0.99),
        }
    }
}

/// The mean over sets, each counting the same in what it has.
pub fn mean(reports: &[SetReport]) -> Score {
    let n = reports.len().max(1) as f64;
    // A set in which nothing can be found has no share in how well things are found.
    let findable = reports.iter().filter(|report| report.queries > 0);
    let metrics: Vec<Metrics> = findable.map(|report| report.score.metrics).collect();
    let of =
        |get: fn(&Score) -> f64| reports.iter().map(|report| get(&report.score)).sum::<f64>() / n;
    let of_some = |get: fn(&Score) -> Option<f64>| {
        let some: Vec<f64> = reports.iter().filter_map(|report| get(&report.score)).collect();
        (!some.is_empty()).then(|| some.iter().sum::<f64>() / some.len() as f64)
    };
    Score {
        metrics: Metrics::mean(&metrics),
        answered: of_some(|score| score.answered),
        unservable_answered: of_some(|score| score.unservable_answered),
        build_ms: of(|score| score.build_ms),
        p50_us: of(|score| score.p50_us),
        p99_us: of(|score| score.p99_us),
    }
}

/// The share that was answered; None of nothing, and where nothing was judged.
fn share(answered: &[Option<bool>]) -> Option<f64> {
    let judged: Option<Vec<bool>> = answered.iter().copied().collect();
    let judged = judged.filter(|judged| !judged.is_empty())?;
    Some(judged.iter().filter(|answered| **answered).count() as f64 / judged.len() as f64)
}

fn percentile(sorted: &[f64], share: f64) -> f64 {
    let at = ((sorted.len() as f64 * share).ceil() as usize).saturating_sub(1);
    sorted.get(at).copied().unwrap_or(0.0)
}
