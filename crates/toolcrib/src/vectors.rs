//! Loads the models that tools are ranked with: a vector table, and the encoder of the deep tier.
//!
//! The table is built in, and so is the encoder, except in builds from a registry. A folder can replace them: it contains a
//! `table.bin`, as `training/` writes it, and may contain an `encoder.bin`. Without an `encoder.bin`, tools are ranked with the table of the folder alone. In a build with the
//! feature `model2vec`, the folder may instead contain the files that Model2Vec saves. Only commands that rank tools load
//! models.

use std::fs;
use std::path::{Path, PathBuf};

use toolcrib_core::Settings;
use toolcrib_core::rank::{DeepVectors, RankerKind, TierSetting, VectorTable};
use toolcrib_embed::EmbeddingModel;
use toolcrib_eval::files::FileError;

use crate::args::VectorArgs;
use crate::deep::{self, ENCODER_FILE, Embedding, parse_encoder};
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

/// Loads the models into `settings`: those of the folder that the command line names, else those of the folder that the
/// config names, else the built-in ones. The command line may also choose the tier. If `previous` already has the models from the same folder, they are reused.
pub(crate) fn load_vectors(
    mut settings: Settings,
    arguments: &VectorArgs,
    previous: Option<&Settings>,
    embedding: Embedding,
) -> Result<Settings, Failure> {
    if let Some(folder) = &arguments.embedding_model {
        settings.rank.embedding_model = Some(folder.clone());
    }
    if let Some(tier) = arguments.tier {
        settings.rank.tier = tier;
    }
    let reusable = previous.filter(|old| old.rank.embedding_model == settings.rank.embedding_model);
    settings.deep_vectors = match reusable {
        Some(previous) if previous.deep_vectors.is_available() => previous.deep_vectors.clone(),
        _ => load_deep_vectors(&settings, embedding)?,
    };
    let Some(folder) = settings.rank.embedding_model.clone() else { return Ok(settings) };
    if settings.rank.ranker != RankerKind::Hybrid {
        return Err(Failure::input(
            format!("`{}`", folder.display()),
            &"the ranker of this preset uses no vectors",
            "remove `--embedding-model`, or choose a preset that ranks with vectors",
        ));
    }
    settings.vector_table = match reusable {
        Some(previous) => previous.vector_table.clone(),
        None => table(&folder)?,
    };
    Ok(settings)
}

/// Loads the encoder that the settings choose, and the deep vectors of earlier runs. Returns no vectors if the ranker
/// uses none.
fn load_deep_vectors(settings: &Settings, embedding: Embedding) -> Result<DeepVectors, Failure> {
    let rank = &settings.rank;
    if rank.ranker != RankerKind::Hybrid || rank.tier == TierSetting::Table {
        return Ok(DeepVectors::default());
    }
    let deep = match &rank.embedding_model {
        Some(folder) => {
            let folder = expand_home(folder);
            let file = folder.join(ENCODER_FILE);
            let encoder =
                file.is_file().then(|| parse_encoder(&folder, read(&file)?)).transpose()?;
            encoder.map(|encoder| deep::deep_vectors(encoder, embedding))
        }
        None => deep::builtin_deep_vectors(embedding),
    };
    match deep {
        Some(deep) => Ok(deep),
        None if rank.tier == TierSetting::Deep => Err(Failure::input(
            "`rank.tier`",
            &"there is no encoder for the deep tier",
            match &rank.embedding_model {
                Some(_) => {
                    "add an `encoder.bin` to the folder of the embedding model, or set `rank.tier` to \"auto\""
                }
                None => {
                    "this build has no encoder; install another package of Toolcrib, or set `rank.tier` to \"auto\""
                }
            },
        )),
        None => Ok(DeepVectors::default()),
    }
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
