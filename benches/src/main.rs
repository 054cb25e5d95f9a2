//! Measures speed and memory use of the engine at growing catalog sizes, on real tool descriptions.
//!
//! The catalog is the file named by `TOOLCRIB_BENCH_CATALOG`, or else the sample catalog, repeated under varied names
//! until it is large enough. Queries are first sentences of its descriptions, similar to what a model writes when it
//! knows what it wants. Times are medians and percentiles over all queries, so that a single interruption does not
//! matter. Compare only numbers of the same run.
//!
//! `cargo run --release -p toolcrib-bench -- [TOOLS]...`

#![allow(clippy::print_stdout)]

use std::time::Instant;

use toolcrib_bench::{lines, median, quantile, repeated, resident_mb, sentence};
use toolcrib_core::{
    Catalog, Conversation, Crib, Limits, Preset, Scope, Settings, TurnContext, WordQuery, ingest,
};

/// Number of queries per catalog size.
const QUERIES: usize = 2_000;

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![1_000, 10_000, 100_000] } else { sizes };
    let lines = match lines() {
        Ok(lines) => lines,
        Err(error) => {
            println!("error: {error}\nhint: {}", error.hint());
            std::process::exit(2);
        }
    };
    println!("{} distinct tools of real text", lines.len());
    println!(
        "| tools | ingest ms | build ms | index MB | process MB | words p50 µs | p99 µs | embed ms | vectors MB | hybrid p50 µs | p99 µs | same disclosure µs |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for size in sizes {
        measure(&lines, size);
    }
}

fn measure(lines: &[String], size: usize) {
    let tools: Vec<String> = repeated(lines, size).map(|tool| tool.to_string()).collect();
    let text = tools.join("\n");
    drop(tools);
    let before = resident_mb("self");
    let (catalog, ingest_ms) = timed(|| {
        let mut builder = Catalog::builder();
        if let Ok(came) = ingest(text.as_bytes(), None, &Limits::default()) {
            builder.add(came);
        }
        builder.build()
    });
    let (words, build_ms) = timed(|| Crib::new(catalog, Preset::Words.settings()));
    let held = resident_mb("self") - before;
    let index = words.index_bytes();
    let hybrid = words.with_settings(Settings::default());
    let (_, embed_ms) = timed(|| hybrid.prepare());
    let scope = Scope::all(words.catalog());
    let queries = queries(&words);
    let [mut by_words, mut by_both] = [Vec::new(), Vec::new()];
    // The first pass is a warm-up. The two rankers alternate, so that changes in the load of the machine affect both.
    for _ in 0..2 {
        for (crib, times) in [(&words, &mut by_words), (&hybrid, &mut by_both)] {
            times.clear();
            for words in &queries {
                let (hits, ms) = timed(|| crib.rank(words, &scope, 10));
                assert!(hits.len() <= 10);
                times.push(ms * 1e3);
            }
            times.sort_by(f64::total_cmp);
        }
    }
    println!(
        "| {} | {ingest_ms:.0} | {build_ms:.0} | {:.1} | {held:.0} | {:.0} | {:.0} | {embed_ms:.0} | {:.1} | {:.0} | {:.0} | {:.1} |",
        words.catalog().len(),
        index as f64 / 1e6,
        quantile(&by_words, 0.5),
        quantile(&by_words, 0.99),
        (hybrid.index_bytes() - index) as f64 / 1e6,
        quantile(&by_both, 0.5),
        quantile(&by_both, 0.99),
        same_disclosure(&words, &scope),
    );
}

fn queries(crib: &Crib) -> Vec<WordQuery> {
    let tools = crib.catalog().tools();
    let step = (tools.len() / QUERIES).max(1);
    tools
        .iter()
        .step_by(step)
        .map(|tool| sentence(tool.description()))
        .filter(|text| !text.is_empty())
        .map(|text| WordQuery::plain(&text, &Limits::default()))
        .collect()
}

/// Returns the median time in microseconds of a disclosure when nothing has changed since the previous disclosure.
fn same_disclosure(crib: &Crib, scope: &Scope) -> f64 {
    let turn = TurnContext::new(scope);
    let mut conversation = Conversation::new();
    crib.disclose(&turn, &mut conversation);
    median((0..101).map(|_| timed(|| crib.disclose(&turn, &mut conversation)).1 * 1e3).collect())
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let begin = Instant::now();
    let done = work();
    (done, begin.elapsed().as_secs_f64() * 1e3)
}
