//! A table whose text is tokenized by another crate.
//!
//! Published tables come with tokenizers of many kinds, and the crates that read those are large. So this
//! crate only takes the result: float rows and a [`Tokenizer`]. `toolcrib-model2vec` reads such folders.

use std::sync::Arc;

use crate::field::Field;
use crate::reader::{ExternalReader, Reader, Tokenizer};
use crate::table::MOST_DIMS;
use crate::{Error, Model, vector};

/// A table of float vectors, and the tokenizer that belongs to it.
pub struct ExternalTable {
    /// Dimensions: the length of a row.
    pub dims: usize,
    /// The numbers, row after row.
    pub values: Vec<f32>,
    /// The row of each token, if tokens share rows. Otherwise a token's id is its row.
    pub mapping: Option<Vec<u32>>,
    /// The weight of each token; 1 if there are none.
    pub weights: Option<Vec<f32>>,
    /// Text into tokens.
    pub tokenizer: Arc<dyn Tokenizer>,
}

/// Not learned: published tables are trained on sentences and know no fields. In the order of [`Field`].
const WEIGHTS: [f32; Field::ALL.len()] = [1.0, 0.7, 1.0, 0.4, 0.3, 0.4];

impl Model {
    /// A model from float rows, quantised to int8 like the built-in table.
    pub fn external(table: ExternalTable) -> Result<Self, Error> {
        let ExternalTable { dims, values, mapping, weights, tokenizer } = table;
        let rows = values.len().checked_div(dims).unwrap_or_default();
        if rows == 0 || dims as u64 > MOST_DIMS || values.len() % dims != 0 {
            return Err(Error::Shape { dims: dims as u64, rows: rows as u64 });
        }
        if let Some(index) = values.iter().position(|value| !value.is_finite()) {
            return Err(Error::NotFinite { part: "rows", index });
        }
        let wrong = mapping.iter().flatten().find(|row| **row as usize >= rows);
        if let Some(row) = wrong {
            return Err(Error::Mapping { row: *row, rows });
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
            let (step, row) = vector::quantised(row);
            steps.push(step);
            codes.extend(row.map(i8::cast_unsigned));
        }
        let reader = ExternalReader { tokenizer, mapping, tokens };
        let scales = (0..tokens).map(|token| {
            let weight = weights.as_ref().map_or(1.0, |weights| weights[token]);
            steps[reader.row(token as u32)] * weight
        });
        let scales: Vec<f32> = scales.collect();
        Ok(Self {
            dims,
            told: scales.clone(),
            asked: scales,
            reader: Reader::External(reader),
            weights: WEIGHTS,
            codes: codes.into(),
        })
    }
}
