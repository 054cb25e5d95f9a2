//! Tools and settings, from wherever the arguments say.

use std::path::{Path, PathBuf};

use toolcrib_core::{Catalog, Crib, Settings, ingest};
use toolcrib_eval::files;

use crate::args::Source;
use crate::output::{Failure, remark};

/// The catalog that is there when nobody names one, written by us.
const SAMPLE: &str = include_str!("../sample/catalog.jsonl");

/// Findings that are printed one by one.
const SHOWN_FINDINGS: usize = 8;

/// The engine for a command.
pub(crate) fn crib(source: &Source) -> Result<Crib, Failure> {
    let settings = settings(source)?;
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

fn catalog(source: &Source, settings: &Settings) -> Result<Catalog, Failure> {
    let mut builder = Catalog::builder();
    let mut add = |bytes: &[u8], label: Option<&str>, place: &str| -> Result<(), Failure> {
        let mut came = ingest(bytes, label, &settings.limits)
            .map_err(|error| Failure::input(format!("`{place}`"), &error, error.hint()))?;
        // Which file, where there are several.
        if source.catalog.len() > 1 || source.catalog.iter().any(|path| path.is_dir()) {
            came.findings.iter_mut().for_each(|f| f.place = format!("{place}: {}", f.place));
        }
        builder.add(came);
        Ok(())
    };
    if source.catalog.is_empty() {
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

/// Settings of the preset, or of a config file where there is one.
fn settings(source: &Source) -> Result<Settings, Failure> {
    let Some(path) = source.config.clone().or_else(found_config) else {
        return Ok(source.preset.settings());
    };
    let bytes = files::read(&path)?;
    let place = format!("`{}`", path.display());
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::input(&place, &"not UTF-8 text", "save the file as UTF-8"))?;
    Settings::from_toml(&text).map_err(|error| Failure::input(place, &error, error.hint()))
}

/// `./toolcrib.toml`, else the one in the user's config folder.
fn found_config() -> Option<PathBuf> {
    let here = PathBuf::from("toolcrib.toml");
    let folder = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("HOME")?;
        Some(Path::new(&home).join(".config"))
    });
    let user = folder.map(|folder| folder.join("toolcrib").join("toolcrib.toml"));
    [Some(here), user].into_iter().flatten().find(|path| path.is_file())
}
