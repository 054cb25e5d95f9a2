//! Loads a vector table from a folder, to replace the built-in table.
//!
//! The folder contains a `table.bin`, as `training/` writes it. In a build with the feature `model2vec`, the folder may
//! instead contain the files that Model2Vec saves. Only commands that rank tools load a table.

use std::fs;
use std::path::{Path, PathBuf};

use toolcrib_core::Settings;
use toolcrib_core::rank::{RankerKind, VectorTable};
use toolcrib_embed::EmbeddingModel;
use toolcrib_eval::files::FileError;

use crate::output::Failure;

/// Name of the file that contains a vector table written by `training/`.
const TABLE_FILE: &str = "table.bin";
/// A folder that contains this file was saved by Model2Vec.
const TOKENIZER_FILE: &str = "tokenizer.json";

/// A hint for the user that says which files the folder must contain.
const FOLDER_HINT: &str = if cfg!(feature = "model2vec") {
    "name a folder with a `table.bin`, as `training/` writes it, or with `tokenizer.json` and `model.safetensors`, as Model2Vec saves them"
} else {
    "name a folder with a `table.bin`, as `training/` writes it"
};

/// Loads a vector table into `settings`: the table named on the command line, else the one named in the config, else
/// the built-in one. If `previous` already has the table from the same folder, that table is reused.
pub(crate) fn load_vectors(
    mut settings: Settings,
    folder_argument: Option<&Path>,
    previous: Option<&Settings>,
) -> Result<Settings, Failure> {
    if let Some(folder_argument) = folder_argument {
        settings.rank.embedding_model = Some(folder_argument.to_owned());
    }
    let Some(folder) = settings.rank.embedding_model.clone() else { return Ok(settings) };
    if settings.rank.ranker != RankerKind::Hybrid {
        return Err(Failure::input(
            format!("`{}`", folder.display()),
            &"the ranker of this preset uses no vectors",
            "remove `--embedding-model`, or choose a preset that ranks with vectors",
        ));
    }
    settings.vector_table = match previous {
        Some(previous) if previous.rank.embedding_model == settings.rank.embedding_model => {
            previous.vector_table.clone()
        }
        _ => table(&folder)?,
    };
    Ok(settings)
}

fn table(folder: &Path) -> Result<VectorTable, Failure> {
    let folder = expand_home(folder);
    let own = folder.join(TABLE_FILE);
    let model = if folder.join(TOKENIZER_FILE).is_file() && !own.is_file() {
        read_model2vec(&folder)?
    } else {
        EmbeddingModel::parse(read(&own)?.into())
            .map_err(|error| unusable(&folder, &error, error.hint()))?
    };
    Ok(VectorTable::from(model))
}

/// Reads a table in Model2Vec's format.
#[cfg(feature = "model2vec")]
fn read_model2vec(folder: &Path) -> Result<EmbeddingModel, Failure> {
    let (tokenizer, tensors) =
        (read(&folder.join(TOKENIZER_FILE))?, read(&folder.join("model.safetensors"))?);
    toolcrib_model2vec::read(&tokenizer, &tensors)
        .map_err(|error| unusable(folder, &error, error.hint.clone()))
}

/// Returns the error that this build cannot read Model2Vec's format.
#[cfg(not(feature = "model2vec"))]
fn read_model2vec(folder: &Path) -> Result<EmbeddingModel, Failure> {
    Err(unusable(
        folder,
        &"this build cannot read the files of Model2Vec, only a `table.bin`",
        "install with `cargo install --path crates/toolcrib --features model2vec`",
    ))
}

fn unusable(folder: &Path, problem: &impl ToString, hint: impl Into<String>) -> Failure {
    Failure::input(format!("`{}`", folder.display()), problem, hint)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|source| {
        let shown = path.display().to_string();
        match source.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
                Failure::input(format!("`{shown}`"), &"no such file", FOLDER_HINT)
            }
            _ => FileError::Io { path: shown, source }.into(),
        }
    })
}

/// Expands a leading `~/`, as is done for all other paths in a config.
fn expand_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => path.to_owned(),
    }
}
