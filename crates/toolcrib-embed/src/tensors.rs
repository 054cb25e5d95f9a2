//! The tensors of a published table, as numbers.

use half::{bf16, f16};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::Error;
use crate::table::MOST_DIMS;

/// The file that the tensors come in.
pub(crate) const MODEL: &str = "model.safetensors";
/// What the table is called: by Model2Vec, by WordLlama.
const TABLES: [&str; 2] = ["embeddings", "embedding.weight"];

/// A file of tensors with a table among them.
pub(crate) struct Tensors<'a> {
    file: SafeTensors<'a>,
    dims: usize,
    values: Vec<f32>,
}

impl<'a> Tensors<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let file = SafeTensors::deserialize(bytes).map_err(|error| refused(error.to_string()))?;
        let Some(table) = TABLES.iter().find_map(|name| file.tensor(name).ok()) else {
            let mut names = file.names();
            names.sort_unstable();
            return Err(refused(format!(
                "no tensor `embeddings` or `embedding.weight` among `{}`",
                names.join("`, `")
            )));
        };
        let dims = match table.shape() {
            [rows, dims] if *rows > 0 && (1..=MOST_DIMS).contains(&(*dims as u64)) => *dims,
            shape => {
                return Err(refused(format!(
                    "a table of shape {shape:?}: rows of 1 to {MOST_DIMS} numbers are needed"
                )));
            }
        };
        let values = floats("embeddings", &table)?;
        Ok(Self { file, dims, values })
    }

    pub(crate) fn rows(&self) -> usize {
        self.values.len() / self.dims
    }

    pub(crate) fn dims(&self) -> usize {
        self.dims
    }

    /// Row after row.
    pub(crate) fn values(&self) -> &[f32] {
        &self.values
    }

    /// The row of each piece, if pieces share rows.
    pub(crate) fn mapping(&self) -> Result<Option<Vec<u32>>, Error> {
        let Ok(tensor) = self.file.tensor("mapping") else { return Ok(None) };
        let numbers: Vec<i64> = match tensor.dtype() {
            Dtype::I64 => chunks(&tensor, i64::from_le_bytes).collect(),
            Dtype::I32 => chunks(&tensor, i32::from_le_bytes).map(i64::from).collect(),
            other => return Err(refused(format!("`mapping` is of {other:?}, not I64"))),
        };
        let rows = self.rows();
        let checked = numbers.into_iter().map(|row| match u32::try_from(row) {
            Ok(known) if (known as usize) < rows => Ok(known),
            _ => Err(refused(format!("`mapping` names row {row} of {rows}"))),
        });
        checked.collect::<Result<_, _>>().map(Some)
    }

    /// The weight of each of `pieces`, if they have one.
    pub(crate) fn weights(&self, pieces: usize) -> Result<Option<Vec<f32>>, Error> {
        let Ok(tensor) = self.file.tensor("weights") else { return Ok(None) };
        let weights = floats("weights", &tensor)?;
        if weights.len() != pieces {
            return Err(refused(format!("{} `weights` for {pieces} pieces", weights.len())));
        }
        Ok(Some(weights))
    }
}

fn floats(name: &str, tensor: &TensorView<'_>) -> Result<Vec<f32>, Error> {
    let values: Vec<f32> = match tensor.dtype() {
        Dtype::F64 => chunks(tensor, f64::from_le_bytes).map(|value| value as f32).collect(),
        Dtype::F32 => chunks(tensor, f32::from_le_bytes).collect(),
        Dtype::F16 => chunks(tensor, f16::from_le_bytes).map(f16::to_f32).collect(),
        Dtype::BF16 => chunks(tensor, bf16::from_le_bytes).map(bf16::to_f32).collect(),
        // One scale for all rows, which a direction does not need.
        Dtype::I8 => chunks(tensor, i8::from_le_bytes).map(f32::from).collect(),
        other => {
            return Err(refused(format!("`{name}` is of {other:?}, not F32, F16, BF16 or I8")));
        }
    };
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(refused(format!("number {index} of `{name}` is not finite"))),
        None => Ok(values),
    }
}

/// The numbers of a tensor, `N` bytes each.
fn chunks<'a, const N: usize, T: 'a>(
    tensor: &TensorView<'a>,
    read: fn([u8; N]) -> T,
) -> impl Iterator<Item = T> + use<'a, N, T> {
    tensor.data().as_chunks().0.iter().map(move |bytes| read(*bytes))
}

fn refused(problem: String) -> Error {
    Error::Folder { file: MODEL, problem }
}
