//! How long a text takes to become a vector, and a catalog to be scanned.
//!
//! The table is the one named by `TOOLCRIB_BENCH_TABLE`, or the program's own; the text is the catalog
//! named by `TOOLCRIB_BENCH_CATALOG`, one tool a line, or the sample. Queries are first sentences of
//! descriptions. A scan is timed beside a plain one over floats, in turns: compare ratios, since
//! machines differ and one machine differs from hour to hour.
//!
//! `cargo bench -p toolcrib-embed`

#![allow(clippy::print_stdout)]

use std::borrow::Cow;
use std::hint::black_box;
use std::time::Instant;

use serde_json::Value;
use toolcrib_embed::{Field, Model, Row, Vector};

/// Words of a query.
const WORDS: usize = 12;

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let named = std::env::var_os("TOOLCRIB_BENCH_TABLE").map(std::fs::read).transpose()?;
    let model = match named {
        Some(bytes) => start(bytes)?,
        None => Model::builtin(),
    };
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../toolcrib/sample/catalog.jsonl");
    let named = std::env::var_os("TOOLCRIB_BENCH_CATALOG").unwrap_or_else(|| sample.into());
    let tools: Vec<Tool> = std::fs::read_to_string(named)?
        .lines()
        .map(|line| Ok(Tool::of(&serde_json::from_str(line)?)))
        .collect::<Result<_, Failed>>()?;
    println!("{} tools of real text, {} dimensions\n", tools.len(), model.dims());
    println!("| text | pieces, mean | p50 µs | p99 µs |\n|---|---:|---:|---:|");
    let queries: Vec<String> = tools.iter().map(Tool::query).collect();
    let pieces = queries.iter().map(|query| model.pieces(query).len()).sum();
    embedded("a query", &queries, pieces, |query| model.embed(query).quantised());
    let fields: Vec<Vec<(Field, &str)>> = tools.iter().map(Tool::fields).collect();
    let all = fields.iter().flatten().map(|(_, text)| model.pieces(text).len()).sum();
    embedded("a tool", &fields, all, |fields| model.embed_fields(fields).quantised());
    println!(
        "\n| rows | scan µs | p99 µs | plain f32 µs | times faster |\n|---:|---:|---:|---:|---:|"
    );
    for count in [1_000, 10_000, 100_000] {
        scanned(model, count);
    }
    Ok(())
}

/// What a start pays for a table.
fn start(bytes: Vec<u8>) -> Result<&'static Model, Failed> {
    let bytes: &'static [u8] = Vec::leak(bytes);
    let mut times = Vec::new();
    for _ in 0..20 {
        let began = Instant::now();
        black_box(Model::parse(Cow::Borrowed(bytes))?);
        times.push(micros(began));
    }
    println!("{:.1} ms to read a table of {} bytes", at(&mut times, 0.5) / 1e3, bytes.len());
    Ok(Box::leak(Box::new(Model::parse(Cow::Borrowed(bytes))?)))
}

/// The text of a tool, by field.
#[derive(Default)]
struct Tool {
    name: String,
    description: String,
    server: String,
    parameters: String,
    details: Vec<String>,
}

impl Tool {
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
        sentence.split_whitespace().take(WORDS).collect::<Vec<_>>().join(" ")
    }

    fn fields(&self) -> Vec<(Field, &str)> {
        let mut fields = vec![
            (Field::Name, self.name.as_str()),
            (Field::Description, &self.description),
            (Field::ParameterNames, &self.parameters),
            (Field::Server, &self.server),
        ];
        fields
            .extend(self.details.iter().map(|text| (Field::ParameterDescriptions, text.as_str())));
        fields
    }
}

/// Once to warm up, once to measure.
fn embedded<T>(what: &str, texts: &[T], pieces: usize, embed: impl Fn(&T) -> Row) {
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
    let (p50, p99) = (at(&mut times, 0.5), at(&mut times, 0.99));
    println!("| {what} | {mean:.1} | {p50:.1} | {p99:.1} |");
}

fn scanned(model: &Model, count: usize) {
    let dims = model.dims();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut vector = || Vector::of((0..dims).map(|_| noise(&mut state)).collect());
    let mut rows = model.rows();
    let mut floats = Vec::new();
    for _ in 0..count {
        let vector = vector();
        rows.push(&vector.quantised());
        floats.extend_from_slice(vector.values());
    }
    let query = vector();
    let (mut out, mut scans, mut plains) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..2_000_000 / count + 20 {
        let began = Instant::now();
        rows.scan(black_box(&query.quantised()), &mut out);
        black_box(&out);
        scans.push(micros(began));
        let began = Instant::now();
        out.clear();
        out.extend(floats.chunks_exact(dims).map(|row| plain(row, black_box(query.values()))));
        black_box(&out);
        plains.push(micros(began));
    }
    let (scan, p99) = (at(&mut scans, 0.5), at(&mut scans, 0.99));
    let plain = at(&mut plains, 0.5);
    println!("| {count} | {scan:.0} | {p99:.0} | {plain:.0} | {:.1} |", plain / scan);
}

/// As fast as floats get without instructions of their own: eight sums side by side.
fn plain(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 8];
    for (a, b) in a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    lanes.iter().sum()
}

/// Numbers between -1 and 1, the same on each run.
fn noise(state: &mut u64) -> f32 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
}

fn micros(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

/// The value below which a share of all values lies.
fn at(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * share) as usize).copied().unwrap_or(f64::NAN)
}
