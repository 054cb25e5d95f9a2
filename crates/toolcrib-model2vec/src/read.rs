//! Builds a model from the two files of a folder.

use std::sync::Arc;

use toolcrib_embed::{EmbeddingModel, ExternalTable};

use crate::Error;
use crate::tensors::{TENSORS_FILE, Tensors};
use crate::tokenizer::FileTokenizer;

/// Builds a model from the contents of the two files of a Model2Vec folder, `tokenizer.json` and `model.safetensors`.
pub fn read(tokenizer: &[u8], tensors: &[u8]) -> Result<EmbeddingModel, Error> {
    let Tensors { dims, values, mapping, weights } = Tensors::parse(tensors)?;
    let tokens = mapping.as_ref().map_or(values.len() / dims, Vec::len);
    let tokenizer = Arc::new(FileTokenizer::parse(tokenizer, tokens)?);
    let table = ExternalTable { dims, values, mapping, weights, tokenizer };
    EmbeddingModel::external(table).map_err(|error| Error {
        file: TENSORS_FILE,
        problem: error.to_string(),
        hint: "the two files are damaged or do not belong together: copy both again".into(),
    })
}
