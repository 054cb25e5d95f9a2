//! Builds the engine from the catalogs and settings that the arguments name.

use std::io::IsTerminal as _;

use toolcrib_core::{Catalog, Crib, DefinitionFormat, Settings, ingest};
use toolcrib_eval::files;

use crate::args::{SourceArgs, VectorArgs};
use crate::deep::Embedding;
use crate::output::{Failure, print_stderr};
use crate::{config, vectors};

/// The catalog that is used if no `--catalog` is given.
const SAMPLE: &str = include_str!("../sample/catalog.jsonl");

/// Maximum number of findings that are printed.
const MAX_FINDINGS_SHOWN: usize = 8;

/// Builds the engine for a command that does not rank tools and so needs no vector table.
pub(crate) fn crib(source: &SourceArgs) -> Result<Crib, Failure> {
    build(source, config::settings(source)?)
}

/// Builds the engine for a command that ranks tools, and loads the vector table.
pub(crate) fn crib_with_vectors(
    source: &SourceArgs,
    vectors: &VectorArgs,
) -> Result<Crib, Failure> {
    let settings = config::settings(source)?;
    build(source, vectors::load_vectors(settings, vectors, None, Embedding::BeforeRanking)?)
}

fn build(source: &SourceArgs, settings: Settings) -> Result<Crib, Failure> {
    let catalog = catalog(source, &settings)?;
    for finding in catalog.findings().iter().take(MAX_FINDINGS_SHOWN) {
        print_stderr(&format!("note: {finding}"));
    }
    let more = catalog.findings().len().saturating_sub(MAX_FINDINGS_SHOWN);
    if more > 0 {
        print_stderr(&format!("note: {more} more findings are not shown"));
    }
    Ok(Crib::new(catalog, settings))
}

/// Builds the engine over the sample catalog.
pub(crate) fn sample(settings: Settings) -> Result<Crib, Failure> {
    let catalog = Catalog::from_json(SAMPLE.as_bytes())
        .map_err(|error| Failure::input("sample", &error, error.hint()))?;
    Ok(Crib::new(catalog, settings))
}

fn catalog(source: &SourceArgs, settings: &Settings) -> Result<Catalog, Failure> {
    let mut builder = Catalog::builder();
    let mut add = |bytes: &[u8], label: Option<&str>, place: &str| -> Result<(), Failure> {
        let read = |label: Option<&str>| {
            ingest(bytes, label, &settings.limits)
                .map_err(|error| Failure::input(format!("`{place}`"), &error, error.hint()))
        };
        let mut ingested = read(None)?;
        // A file with a `tools/list` result is named after the server that sent it, so the name of the file becomes the
        // name of the server. The tools in a file with a request to a model belong to no server.
        let listed = |format| ingested.tools.iter().filter(|tool| tool.format() == format).count();
        // Tools without a schema are counted as `Own`, because their format cannot be determined.
        if listed(DefinitionFormat::Mcp) > 0
            && listed(DefinitionFormat::Mcp) + listed(DefinitionFormat::Own) == ingested.tools.len()
        {
            ingested = read(label)?;
        }
        // If there are several files, each finding names the file that it refers to.
        if source.catalog.len() > 1 || source.catalog.iter().any(|path| path.is_dir()) {
            ingested
                .findings
                .iter_mut()
                .for_each(|f| f.location = format!("{place}: {}", f.location));
        }
        builder.add(ingested);
        Ok(())
    };
    if source.catalog.is_empty() {
        // The note is printed only on a terminal, because a script that names no catalog uses the sample on purpose.
        if std::io::stdout().is_terminal() {
            print_stderr("note: using the sample catalog; name your own with `--catalog`");
        }
        add(SAMPLE.as_bytes(), None, "sample")?;
    }
    for path in &source.catalog {
        for file in files::catalog_files(path)? {
            let label = files::implied_server(&file);
            add(&files::read(&file)?, label.as_deref(), &file.display().to_string())?;
        }
    }
    Ok(builder.build())
}
