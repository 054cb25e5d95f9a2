//! The engine, with the tools and settings the arguments name.

use std::io::IsTerminal as _;

use toolcrib_core::{Catalog, Crib, DefinitionFormat, Settings, ingest};
use toolcrib_eval::files;

use crate::args::{Source, Vectors};
use crate::output::{Failure, remark};
use crate::{config, vectors};

/// The catalog that is there when nobody names one, written by us.
const SAMPLE: &str = include_str!("../sample/catalog.jsonl");

/// Findings that are printed one by one.
const SHOWN_FINDINGS: usize = 8;

/// The engine for a command that ranks nothing.
pub(crate) fn crib(source: &Source) -> Result<Crib, Failure> {
    made(source, config::settings(source)?)
}

/// The engine for a command that ranks.
pub(crate) fn ranker(source: &Source, vectors: &Vectors) -> Result<Crib, Failure> {
    let settings = config::settings(source)?;
    made(source, vectors::loaded(settings, vectors.embedding_model.as_deref(), None)?)
}

fn made(source: &Source, settings: Settings) -> Result<Crib, Failure> {
    let catalog = catalog(source, &settings)?;
    for finding in catalog.findings().iter().take(SHOWN_FINDINGS) {
        remark(&format!("note: {finding}"));
    }
    let more = catalog.findings().len().saturating_sub(SHOWN_FINDINGS);
    if more > 0 {
        remark(&format!("note: and {more} more"));
    }
    Ok(Crib::new(catalog, settings))
}

/// The engine over the sample.
pub(crate) fn sample(settings: Settings) -> Result<Crib, Failure> {
    let catalog = Catalog::from_json(SAMPLE.as_bytes())
        .map_err(|error| Failure::input("sample", &error, error.hint()))?;
    Ok(Crib::new(catalog, settings))
}

fn catalog(source: &Source, settings: &Settings) -> Result<Catalog, Failure> {
    let mut builder = Catalog::builder();
    let mut add = |bytes: &[u8], label: Option<&str>, place: &str| -> Result<(), Failure> {
        let read = |label: Option<&str>| {
            ingest(bytes, label, &settings.limits)
                .map_err(|error| Failure::input(format!("`{place}`"), &error, error.hint()))
        };
        let mut came = read(None)?;
        // What a server lists is that server's, and the file is called after it. What a request
        // holds is the agent's own.
        let listed = |shape| came.tools.iter().filter(|tool| tool.format() == shape).count();
        // A tool without a schema has no shape to tell.
        if listed(DefinitionFormat::Mcp) > 0
            && listed(DefinitionFormat::Mcp) + listed(DefinitionFormat::Own) == came.tools.len()
        {
            came = read(label)?;
        }
        // Which file, where there are several.
        if source.catalog.len() > 1 || source.catalog.iter().any(|path| path.is_dir()) {
            came.findings.iter_mut().for_each(|f| f.place = format!("{place}: {}", f.place));
        }
        builder.add(came);
        Ok(())
    };
    if source.catalog.is_empty() {
        // For people: a script that names no catalog means it.
        if std::io::stdout().is_terminal() {
            remark("note: no `--catalog`, so this is the sample catalog");
        }
        add(SAMPLE.as_bytes(), None, "sample")?;
    }
    for path in &source.catalog {
        for file in files::catalogs(path)? {
            let label = files::stem(&file);
            add(&files::read(&file)?, label.as_deref(), &file.display().to_string())?;
        }
    }
    Ok(builder.build())
}
