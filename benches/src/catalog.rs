//! The catalog that is measured: the file named by `TOOLCRIB_BENCH_CATALOG`, or else the sample catalog.

use std::path::PathBuf;

use serde_json::Value;
use toolcrib_eval::files;
use toolcrib_text::first_sentence;

/// Maximum number of words in a query.
const WORDS: usize = 12;

/// Returns the lines of the measured catalog, each a tool definition in JSON.
pub fn lines() -> Result<Vec<String>, files::FileError> {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/toolcrib/sample/catalog.jsonl");
    let named = std::env::var_os("TOOLCRIB_BENCH_CATALOG").map(PathBuf::from);
    let mut lines = Vec::new();
    for file in files::catalog_files(&named.unwrap_or_else(|| PathBuf::from(sample)))? {
        let text = String::from_utf8_lossy(&files::read(&file)?).into_owned();
        lines.extend(text.lines().map(str::to_owned));
    }
    Ok(lines)
}

/// Returns the tools of the catalog, repeated until there are `size` tools. Each repetition gives the tools and servers
/// new names.
pub fn repeated(lines: &[String], size: usize) -> impl Iterator<Item = Value> {
    (0..size).filter_map(|i| {
        let (line, round) = (&lines[i % lines.len()], i / lines.len());
        let mut tool = serde_json::from_str::<Value>(line).ok()?;
        if round > 0 {
            for key in ["name", "server"] {
                let varied = format!("{}_{round}", tool[key].as_str().unwrap_or_default());
                tool[key] = varied.into();
            }
        }
        Some(tool)
    })
}

/// Returns a query for the tool with this description: the first words of the description's first sentence.
pub fn sentence(description: &str) -> String {
    let sentence = first_sentence(description, 200);
    sentence.split_whitespace().take(WORDS).collect::<Vec<_>>().join(" ")
}
