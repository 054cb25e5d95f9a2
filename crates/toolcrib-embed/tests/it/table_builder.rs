//! Builds small tables in the format that `training/` writes.

use std::borrow::Cow;

use toolcrib_embed::{EmbeddingModel, Error};

/// A row of the table: its entry, its scale and its int8 codes.
pub(crate) type Entry<'a> = (&'a str, f32, &'a [i8]);

pub(crate) fn bytes(weights: [f32; 6], entries: &[Entry<'_>]) -> Vec<u8> {
    let vocabulary = entries.iter().map(|(entry, ..)| *entry).collect::<Vec<_>>().join("\n");
    let dims = entries[0].2.len();
    let mut file = b"TCRIBEM2".to_vec();
    for number in [dims, entries.len(), vocabulary.len(), weights.len()] {
        file.extend(u32::try_from(number).unwrap().to_le_bytes());
    }
    file.extend(weights.iter().flat_map(|weight| weight.to_le_bytes()));
    file.extend(vocabulary.as_bytes());
    // The scales for queries, then the same scales for tools.
    for _ in 0..2 {
        file.extend(entries.iter().flat_map(|(_, scale, _)| scale.to_le_bytes()));
    }
    file.extend(entries.iter().flat_map(|(.., row)| row.iter().map(|code| code.cast_unsigned())));
    file
}

pub(crate) fn parse(file: Vec<u8>) -> Result<EmbeddingModel, Error> {
    EmbeddingModel::parse(Cow::Owned(file))
}

pub(crate) fn model(weights: [f32; 6], entries: &[Entry<'_>]) -> EmbeddingModel {
    parse(bytes(weights, entries)).unwrap()
}
