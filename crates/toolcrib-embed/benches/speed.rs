//! Measures how long it takes to embed a text and to scan a catalog.
//!
//! The table of vectors is the file named by `TOOLCRIB_BENCH_TABLE`, or the built-in one. The texts come from the
//! catalog named by `TOOLCRIB_BENCH_CATALOG`, one tool per line, or from the sample catalog of the `toolcrib` crate.
//! Queries are the first sentences of descriptions. Each scan alternates with a plain scan over floats. Compare the
//! ratio of the two scans: absolute times differ between machines, and on one machine from hour to hour.
//!
//! `cargo bench -p toolcrib-embed`

#![allow(clippy::print_stdout)]

use std::borrow::Cow;
use std::hint::black_box;
use std::time::Instant;

use serde_json::Value;
use toolcrib_embed::{EmbeddedField, EmbeddingModel, QuantisedVector, Vector};

/// Maximum number of words in a query.
const QUERY_WORDS: usize = 12;

type BoxError = Box<dyn std::error::Error>;

fn main() -> Result<(), BoxError> {
    let table = std::env::var_os("TOOLCRIB_BENCH_TABLE").map(std::fs::read).transpose()?;
    let model = match table {
        Some(bytes) => load_timed(bytes)?,
        None => EmbeddingModel::builtin(),
    };
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../toolcrib/sample/catalog.jsonl");
    let catalog = std::env::var_os("TOOLCRIB_BENCH_CATALOG").unwrap_or_else(|| sample.into());
    let tools: Vec<ToolText> = std::fs::read_to_string(catalog)?
        .lines()
        .map(|line| Ok(ToolText::of(&serde_json::from_str(line)?)))
        .collect::<Result<_, BoxError>>()?;
    println!("{} tools of real text, {} dimensions\n", tools.len(), model.dims());
    println!("| text | pieces, mean | p50 µs | p99 µs |\n|---|---:|---:|---:|");
    let queries: Vec<String> = tools.iter().map(ToolText::query).collect();
    let pieces = queries.iter().map(|query| model.pieces(query).len()).sum();
    time_embedding("a query", &queries, pieces, |query| model.embed(query).quantised());
    let fields: Vec<Vec<(EmbeddedField, &str)>> = tools.iter().map(ToolText::fields).collect();
    let field_pieces = fields.iter().flatten().map(|(_, text)| model.pieces(text).len()).sum();
    time_embedding("a tool", &fields, field_pieces, |fields| {
        model.embed_fields(fields).quantised()
    });
    println!(
        "\n| rows | scan µs | p99 µs | plain f32 µs | times faster |\n|---:|---:|---:|---:|---:|"
    );
    for count in [1_000, 10_000, 100_000] {
        time_scans(model, count);
    }
    Ok(())
}

/// Loads a table and prints how long parsing takes.
fn load_timed(bytes: Vec<u8>) -> Result<&'static EmbeddingModel, BoxError> {
    let bytes: &'static [u8] = Vec::leak(bytes);
    let mut times = Vec::new();
    for _ in 0..20 {
        let began = Instant::now();
        black_box(EmbeddingModel::parse(Cow::Borrowed(bytes))?);
        times.push(micros(began));
    }
    println!("{:.1} ms to read a table of {} bytes", quantile(&mut times, 0.5) / 1e3, bytes.len());
    Ok(Box::leak(Box::new(EmbeddingModel::parse(Cow::Borrowed(bytes))?)))
}

/// The texts of a tool, by field.
#[derive(Default)]
struct ToolText {
    name: String,
    description: String,
    server: String,
    parameters: String,
    details: Vec<String>,
}

impl ToolText {
    fn of(tool: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let properties = tool["input_schema"]["properties"].as_object();
        let names: Vec<&str> =
            properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let details =
            properties.into_iter().flatten().map(|(_, schema)| text(&schema["description"]));
        Self {
            name: text(&tool["name"]),
            description: text(&tool["description"]),
            server: text(&tool["server"]),
            parameters: names.join(" "),
            details: details.collect(),
        }
    }

    fn query(&self) -> String {
        let sentence = self.description.split(". ").next().unwrap_or_default();
        sentence.split_whitespace().take(QUERY_WORDS).collect::<Vec<_>>().join(" ")
    }

    fn fields(&self) -> Vec<(EmbeddedField, &str)> {
        let mut fields = vec![
            (EmbeddedField::Name, self.name.as_str()),
            (EmbeddedField::Description, &self.description),
            (EmbeddedField::ParameterNames, &self.parameters),
            (EmbeddedField::Server, &self.server),
        ];
        fields.extend(
            self.details.iter().map(|text| (EmbeddedField::ParameterDescriptions, text.as_str())),
        );
        fields
    }
}

/// Times the embedding of each text and prints one row. The first pass is a warm-up.
fn time_embedding<T>(
    label: &str,
    texts: &[T],
    pieces: usize,
    embed: impl Fn(&T) -> QuantisedVector,
) {
    let mut times = Vec::new();
    for _ in 0..2 {
        times.clear();
        for text in texts {
            let began = Instant::now();
            black_box(embed(text));
            times.push(micros(began));
        }
    }
    let mean = pieces as f64 / texts.len() as f64;
    let (p50, p99) = (quantile(&mut times, 0.5), quantile(&mut times, 0.99));
    println!("| {label} | {mean:.1} | {p50:.1} | {p99:.1} |");
}

fn time_scans(model: &EmbeddingModel, count: usize) {
    let dims = model.dims();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut vector = || Vector::normalised((0..dims).map(|_| noise(&mut state)).collect());
    let mut index = model.new_index();
    let mut floats = Vec::new();
    for _ in 0..count {
        let vector = vector();
        index.push(&vector.quantised());
        floats.extend_from_slice(vector.values());
    }
    let query = vector();
    let (mut out, mut scans, mut float_scans) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..2_000_000 / count + 20 {
        let began = Instant::now();
        index.scan(black_box(&query.quantised()), &mut out);
        black_box(&out);
        scans.push(micros(began));
        let began = Instant::now();
        out.clear();
        out.extend(floats.chunks_exact(dims).map(|row| float_dot(row, black_box(query.values()))));
        black_box(&out);
        float_scans.push(micros(began));
    }
    let (scan, p99) = (quantile(&mut scans, 0.5), quantile(&mut scans, 0.99));
    let float_scan = quantile(&mut float_scans, 0.5);
    println!("| {count} | {scan:.0} | {p99:.0} | {float_scan:.0} | {:.1} |", float_scan / scan);
}

/// Returns the dot product of two float vectors. It uses eight independent sums, which is the fastest way without
/// intrinsics.
fn float_dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 8];
    for (a, b) in a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    lanes.iter().sum()
}

/// Returns the next pseudo-random number between -1 and 1 (xorshift). The sequence is the same in each run.
fn noise(state: &mut u64) -> f32 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
}

fn micros(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

/// Sorts the values and returns the given quantile of them.
fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * share) as usize).copied().unwrap_or(f64::NAN)
}
