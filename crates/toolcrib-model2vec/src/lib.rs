//! Tables that others publish: a folder with a `tokenizer.json` and a `model.safetensors`.
//!
//! That is Model2Vec's format, and WordLlama's under another name for the tensor. Newer folders have two
//! more tensors: `weights`, one for each token, and `mapping`, the row of each token where many tokens
//! share one. Their `config.json` is not read: all it could say here is whether vectors are normalised,
//! and ours always are.
//!
//! A crate of its own because a general tokenizer brings 40 others. The program needs it only for
//! such folders, under its feature `model2vec`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod error;
mod tensors;
mod tokenizer;

pub use error::Error;

use std::sync::Arc;

use toolcrib_embed::{ExternalTable, Model};

use tensors::{MODEL, Tensors};
use tokenizer::FileTokenizer;

/// Reads the two files of a Model2Vec folder, `tokenizer.json` and `model.safetensors`.
pub fn read(tokenizer: &[u8], tensors: &[u8]) -> Result<Model, Error> {
    let Tensors { dims, values, mapping, weights } = Tensors::parse(tensors)?;
    let tokens = mapping.as_ref().map_or(values.len() / dims, Vec::len);
    let tokenizer = Arc::new(FileTokenizer::parse(tokenizer, tokens)?);
    Model::external(ExternalTable { dims, values, mapping, weights, tokenizer })
        .map_err(|error| Error { file: MODEL, problem: error.to_string() })
}
