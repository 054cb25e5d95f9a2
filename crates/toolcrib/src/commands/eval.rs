//! `toolcrib eval`: measures the quality of the ranking.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use toolcrib_core::Crib;
use toolcrib_eval::{
    Dataset, DatasetReport, EvalOptions, EvalScore, RunLine, evaluate, mean_score,
};

use crate::args::EvalArgs;
use crate::deep::{self, Embedding};
use crate::output::{Failure, Output, print_stderr};
use crate::progress::ProgressBar;
use crate::vectors;

#[derive(Serialize)]
struct EvalReport {
    preset: &'static str,
    datasets: Vec<DatasetReport>,
    mean: EvalScore,
}

pub(crate) fn run(args: &EvalArgs, output: &mut Output) -> Result<bool, Failure> {
    let settings = vectors::load_vectors(
        args.preset.settings(),
        &args.vectors,
        None,
        Embedding::BeforeRanking,
    )?;
    let limit = args.limit.unwrap_or(usize::MAX);
    let options = EvalOptions { limit, evidence: args.run_file.is_some() };
    let mut datasets = Vec::new();
    let mut runs = Vec::new();
    for folder in &args.folders {
        let set = Dataset::open(folder).map_err(|error| {
            Failure::input(format!("`{}`", folder.display()), &error, error.hint())
        })?;
        if set.queries.is_empty() {
            print_stderr(&format!("warning: skipping `{}`, which has no queries", set.name));
            continue;
        }
        for finding in set.catalog.findings().iter().filter(|finding| finding.is_withheld()) {
            print_stderr(&format!("warning: `{}`: {finding}", set.name));
        }
        warn_of_missing_gold(&set);
        let mut progress = ProgressBar::on_stderr(&set.name, set.queries.len().min(limit));
        let embed = |crib: &Crib| deep::embed_missing(crib, "embedding tools");
        let (report, run) = evaluate(set, &settings, options, embed, || progress.advance());
        progress.clear();
        datasets.push(report);
        runs.extend(run);
    }
    if let Some(path) = &args.run_file {
        write_runs(path, &runs)?;
    }
    let measured_any = !datasets.is_empty();
    let report = EvalReport { preset: args.preset.name(), mean: mean_score(&datasets), datasets };
    if output.is_json() {
        output.document(&report)?;
    } else {
        output.line(&table(&report).to_string())?;
    }
    Ok(measured_any)
}

/// Warns about expected tools (gold names) that are not in the catalog. Each one lowers the score, so the ranking would
/// look worse than it is.
fn warn_of_missing_gold(set: &Dataset) {
    let gold = set.queries.iter().flat_map(|judged| &judged.gold);
    let mut absent: Vec<&String> = gold.filter(|name| set.catalog.find(name).is_none()).collect();
    absent.sort_unstable();
    absent.dedup();
    if let Some(first) = absent.first() {
        let count = absent.len();
        print_stderr(&format!(
            "warning: `{}`: {count} gold names are not in the catalog, for example `{first}`",
            set.name
        ));
    }
}

fn write_runs(path: &Path, runs: &[RunLine]) -> Result<(), Failure> {
    let failed = |source| Failure::Write { path: path.display().to_string(), source };
    let mut file = BufWriter::new(File::create(path).map_err(failed)?);
    for ranked in runs {
        let line = serde_json::to_string(ranked).map_err(|error| failed(error.into()))?;
        writeln!(file, "{line}").map_err(failed)?;
    }
    file.flush().map_err(failed)
}

fn table(report: &EvalReport) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header([
        "dataset",
        "tools",
        "queries",
        "nDCG@10",
        "R@1",
        "R@5",
        "R@10",
        "MRR",
        "complete@5",
        "effective R@5",
        "answered",
        "unservable",
        "unservable answered",
        "build ms",
        "p50 µs",
        "p99 µs",
    ]);
    for set in &report.datasets {
        let counts = [set.tools, set.queries, set.unservable];
        table.add_row(row(&set.name, Some(counts), &set.score));
    }
    table.add_row(row("mean", None, &report.mean));
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Formats a row of the table. `counts` holds the dataset's number of tools, of queries that some tool serves, and of
/// queries that no tool serves. It is `None` for the row with the mean of all datasets.
fn row(name: &str, counts: Option<[usize; 3]>, score: &EvalScore) -> Vec<String> {
    // If no tool serves any of the dataset's queries, there is no ranking quality to show.
    let has_quality = counts.is_none_or(|[_, queries, _]| queries > 0);
    let [tools, queries, unservable] =
        counts.map(|counts| counts.map(|count| count.to_string())).unwrap_or_default();
    let metrics = &score.metrics;
    let shares = [
        metrics.ndcg10,
        metrics.recall1,
        metrics.recall5,
        metrics.recall10,
        metrics.mrr,
        metrics.complete5,
    ];
    let shares = shares.map(|share| format_share(has_quality.then_some(share)));
    let times = [score.build_ms, score.p50_us, score.p99_us].map(|time| format!("{time:.1}"));
    let mut cells = vec![name.to_owned(), tools, queries];
    cells.extend(shares);
    let (effective, answered) =
        (format_share(score.effective_recall5), format_share(score.answered));
    cells.extend([effective, answered, unservable, format_share(score.unservable_answered)]);
    cells.extend(times);
    cells
}

/// Formats a share, or `-` if it was not measured.
fn format_share(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{share:.3}"))
}
