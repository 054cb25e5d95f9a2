//! Another table of vectors than the one inside the program: a folder, read for whoever ranks.
//!
//! Such a folder has a `table.bin` as `training/` writes it or, in a build with the feature `model2vec`,
//! the files that Model2Vec saves. Commands that rank nothing do not read it.

use std::fs;
use std::path::{Path, PathBuf};

use toolcrib_core::Settings;
use toolcrib_core::rank::{RankerKind, VectorTable};
use toolcrib_embed::Model;
use toolcrib_eval::files::FileError;

use crate::output::Failure;

/// What a table of our own making is called.
const OWN: &str = "table.bin";
/// The file by which a folder of Model2Vec is recognised.
const TOKENIZER: &str = "tokenizer.json";

/// What a folder must have.
const NEEDED: &str = if cfg!(feature = "model2vec") {
    "name a folder with a `table.bin`, as `training/` writes it, or with `tokenizer.json` and `model.safetensors`, as Model2Vec saves them"
} else {
    "name a folder with a `table.bin`, as `training/` writes it"
};

/// Settings with the table that the command line names, else the one that the file names, else the one
/// inside the program. What `before` has of the same folder is not read again.
pub(crate) fn loaded(
    mut settings: Settings,
    named: Option<&Path>,
    before: Option<&Settings>,
) -> Result<Settings, Failure> {
    if let Some(named) = named {
        settings.rank.embedding_model = Some(named.to_owned());
    }
    let Some(folder) = settings.rank.embedding_model.clone() else { return Ok(settings) };
    if settings.rank.ranker != RankerKind::Hybrid {
        return Err(Failure::input(
            format!("`{}`", folder.display()),
            &"this ranker asks for no vectors",
            "leave out `--embedding-model`, or the preset that ranks without vectors",
        ));
    }
    settings.vector_table = match before {
        Some(before) if before.rank.embedding_model == settings.rank.embedding_model => {
            before.vector_table.clone()
        }
        _ => table(&folder)?,
    };
    Ok(settings)
}

fn table(folder: &Path) -> Result<VectorTable, Failure> {
    let folder = at_home(folder);
    let own = folder.join(OWN);
    let model = if folder.join(TOKENIZER).is_file() && !own.is_file() {
        published(&folder)?
    } else {
        Model::parse(read(&own)?.into()).map_err(|error| refused(&folder, &error, error.hint()))?
    };
    Ok(VectorTable::from(model))
}

/// A table that others publish.
#[cfg(feature = "model2vec")]
fn published(folder: &Path) -> Result<Model, Failure> {
    let (tokenizer, tensors) =
        (read(&folder.join(TOKENIZER))?, read(&folder.join("model.safetensors"))?);
    toolcrib_model2vec::read(&tokenizer, &tensors)
        .map_err(|error| refused(folder, &error, error.hint.clone()))
}

/// The tokenizers of published tables are not in this build.
#[cfg(not(feature = "model2vec"))]
fn published(folder: &Path) -> Result<Model, Failure> {
    Err(refused(
        folder,
        &"this build reads only a `table.bin`, not the files of Model2Vec",
        "install with `cargo install --path crates/toolcrib --features model2vec`",
    ))
}

fn refused(folder: &Path, problem: &impl ToString, hint: impl Into<String>) -> Failure {
    Failure::input(format!("`{}`", folder.display()), problem, hint)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|source| {
        let shown = path.display().to_string();
        match source.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
                Failure::input(format!("`{shown}`"), &"no such file", NEEDED)
            }
            _ => FileError::Io { path: shown, source }.into(),
        }
    })
}

/// `~/` is the home folder, as in the other paths of a config.
fn at_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => path.to_owned(),
    }
}
