//! Asking a set's queries and scoring the answers.

use std::time::Instant;

use serde::Serialize;
use toolcrib_core::policy::Rules;
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
    /// How many queries were asked.
    pub queries: usize,
    /// The scores.
    #[serde(flatten)]
    pub score: Score,
}

/// One line of a run file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ranked {
    /// The set.
    pub dataset: String,
    /// The query.
    pub id: String,
    /// The tools, best first.
    pub ranked: Vec<String>,
}

/// Asks the first `limit` queries of a set as plain words. `progress` hears of every one.
///
/// What is timed is the ranking itself, from the words to the order of tools.
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
    let (mut metrics, mut times, mut run) = (Vec::new(), Vec::new(), Vec::new());
    // A query that nothing serves has no recall; it is for other measures than these.
    let servable = dataset.queries.iter().filter(|judged| !judged.gold.is_empty());
    for judged in servable.take(limit) {
        let words = Words::plain(&judged.query, &limits);
        let begin = Instant::now();
        let hits = crib.rank(&words, &scope, DEPTH);
        times.push(begin.elapsed().as_secs_f64() * 1e6);
        let name = |id| crib.catalog().tool(id).name().to_owned();
        let ranked: Vec<String> = hits.iter().map(|hit| name(hit.id)).collect();
        metrics.push(Metrics::of(judged, &ranked));
        run.push(Ranked { dataset: dataset.name.clone(), id: judged.id.clone(), ranked });
        progress();
    }
    times.sort_by(f64::total_cmp);
    let sheet = Score {
        metrics: Metrics::mean(&metrics),
        build_ms,
        p50_us: percentile(&times, 0.50),
        p99_us: percentile(&times, 0.99),
    };
    let report = SetReport {
        name: dataset.name,
        tools: crib.catalog().len(),
        queries: metrics.len(),
        score: sheet,
    };
    (report, run)
}

/// The mean over sets, each counting the same.
pub fn mean(reports: &[SetReport]) -> Score {
    let n = reports.len().max(1) as f64;
    let metrics: Vec<Metrics> = reports.iter().map(|report| report.score.metrics).collect();
    let of =
        |get: fn(&Score) -> f64| reports.iter().map(|report| get(&report.score)).sum::<f64>() / n;
    Score {
        metrics: Metrics::mean(&metrics),
        build_ms: of(|score| score.build_ms),
        p50_us: of(|score| score.p50_us),
        p99_us: of(|score| score.p99_us),
    }
}

fn percentile(sorted: &[f64], share: f64) -> f64 {
    let at = ((sorted.len() as f64 * share).ceil() as usize).saturating_sub(1);
    sorted.get(at).copied().unwrap_or(0.0)
}
