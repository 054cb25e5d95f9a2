//! Tables whose tokenizer is in another crate.
//!
//! Published tables come with many kinds of tokenizers, and the crates that implement them are large. So this crate
//! does not read such tables: its caller passes the float rows and a [`Tokenizer`]. `toolcrib-model2vec` reads folders
//! with such tables.

use std::sync::Arc;

use crate::field::EmbeddedField;
use crate::segmenter::{ExternalSegmenter, Segmenter, Tokenizer};
use crate::table_file::MAX_DIMS;
use crate::{EmbeddingModel, Error, vector};

/// A table of float vectors and its tokenizer.
pub struct ExternalTable {
    /// Number of dimensions: the length of a row.
    pub dims: usize,
    /// The components of all rows, row by row.
    pub values: Vec<f32>,
    /// The row of each token, if tokens share rows. Otherwise a token's id is its row.
    pub mapping: Option<Vec<u32>>,
    /// The weight of each token. If absent, every token has weight 1.
    pub weights: Option<Vec<f32>>,
    /// Splits text into tokens.
    pub tokenizer: Arc<dyn Tokenizer>,
}

/// Field weights for external tables, in the order of [`EmbeddedField`]. They were chosen by hand, because published
/// tables are trained on sentences and have no field weights.
const FIELD_WEIGHTS: [f32; EmbeddedField::ALL.len()] = [1.0, 0.7, 1.0, 0.4, 0.3, 0.4];

impl EmbeddingModel {
    /// Builds a model from float rows, quantised to int8 like the built-in table.
    pub fn external(table: ExternalTable) -> Result<Self, Error> {
        let ExternalTable { dims, values, mapping, weights, tokenizer } = table;
        let rows = values.len().checked_div(dims).unwrap_or_default();
        if rows == 0 || dims as u64 > MAX_DIMS || values.len() % dims != 0 {
            return Err(Error::Shape { dims: dims as u64, rows: rows as u64 });
        }
        if let Some(index) = values.iter().position(|value| !value.is_finite()) {
            return Err(Error::NotFinite { part: "rows", index });
        }
        let out_of_range = mapping.iter().flatten().find(|row| **row as usize >= rows);
        if let Some(row) = out_of_range {
            return Err(Error::RowOutOfRange { row: *row, rows });
        }
        let tokens = mapping.as_ref().map_or(rows, Vec::len);
        if let Some(weights) = &weights {
            if weights.len() != tokens {
                return Err(Error::TokenWeights { found: weights.len(), needed: tokens });
            }
            if let Some(index) = weights.iter().position(|weight| !weight.is_finite()) {
                return Err(Error::NotFinite { part: "token weights", index });
            }
        }
        let mut codes = Vec::with_capacity(values.len());
        let mut steps = Vec::with_capacity(rows);
        for row in values.chunks_exact(dims) {
            let (step, row_codes) = vector::quantise(row);
            steps.push(step);
            codes.extend(row_codes.map(i8::cast_unsigned));
        }
        let segmenter = ExternalSegmenter { tokenizer, mapping, tokens };
        let scales = (0..tokens).map(|token| {
            let weight = weights.as_ref().map_or(1.0, |weights| weights[token]);
            steps[segmenter.row(token as u32)] * weight
        });
        let scales: Vec<f32> = scales.collect();
        Ok(Self {
            dims,
            tool_scales: scales.clone(),
            query_scales: scales,
            segmenter: Segmenter::External(segmenter),
            field_weights: FIELD_WEIGHTS,
            codes: codes.into(),
        })
    }
}
