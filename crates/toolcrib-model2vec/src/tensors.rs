//! Reads the tensors of a published table.

use half::{bf16, f16};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::Error;

/// The name of the file with the tensors.
pub(crate) const TENSORS_FILE: &str = "model.safetensors";
/// The possible names of the tensor with the vectors: the first in Model2Vec, the second in WordLlama.
const TABLE_TENSORS: [&str; 2] = ["embeddings", "embedding.weight"];

/// The tensors of a table.
pub(crate) struct Tensors {
    pub(crate) dims: usize,
    /// The components of all rows, row by row.
    pub(crate) values: Vec<f32>,
    /// The row of each token, if tokens share rows.
    pub(crate) mapping: Option<Vec<u32>>,
    /// The weight of each token, if tokens have weights.
    pub(crate) weights: Option<Vec<f32>>,
}

impl Tensors {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let file =
            SafeTensors::deserialize(bytes).map_err(|error| format_error(error.to_string()))?;
        let Some(table) = TABLE_TENSORS.iter().find_map(|name| file.tensor(name).ok()) else {
            let mut names = file.names();
            names.sort_unstable();
            return Err(format_error(format!(
                "no tensor `embeddings` or `embedding.weight` among `{}`",
                names.join("`, `")
            )));
        };
        let [rows, dims] = *table.shape() else {
            let shape = table.shape();
            return Err(format_error(format!(
                "the table has shape {shape:?}, but two dimensions are needed"
            )));
        };
        if rows == 0 || dims == 0 {
            return Err(format_error(format!("the table is empty: {rows} rows of {dims} numbers")));
        }
        let weights = file.tensor("weights").ok().map(|tensor| floats("weights", &tensor));
        Ok(Self {
            dims,
            values: floats("embeddings", &table)?,
            mapping: file.tensor("mapping").ok().map(|tensor| mapping(&tensor)).transpose()?,
            weights: weights.transpose()?,
        })
    }
}

fn mapping(tensor: &TensorView<'_>) -> Result<Vec<u32>, Error> {
    let numbers: Vec<i64> = match tensor.dtype() {
        Dtype::I64 => chunks(tensor, i64::from_le_bytes).collect(),
        Dtype::I32 => chunks(tensor, i32::from_le_bytes).map(i64::from).collect(),
        other => return Err(format_error(format!("`mapping` has type {other:?}, not I64"))),
    };
    let row = |number: i64| {
        u32::try_from(number)
            .map_err(|_| format_error(format!("`mapping` has the invalid row {number}")))
    };
    numbers.into_iter().map(row).collect()
}

fn floats(name: &str, tensor: &TensorView<'_>) -> Result<Vec<f32>, Error> {
    Ok(match tensor.dtype() {
        Dtype::F64 => chunks(tensor, f64::from_le_bytes).map(|value| value as f32).collect(),
        Dtype::F32 => chunks(tensor, f32::from_le_bytes).collect(),
        Dtype::F16 => chunks(tensor, f16::from_le_bytes).map(f16::to_f32).collect(),
        Dtype::BF16 => chunks(tensor, bf16::from_le_bytes).map(bf16::to_f32).collect(),
        // The scale can be ignored, because all rows have the same scale and vectors are normalised later.
        Dtype::I8 => chunks(tensor, i8::from_le_bytes).map(f32::from).collect(),
        other => {
            let problem = format!("`{name}` has type {other:?}, not F32, F16, BF16 or I8");
            return Err(format_error(problem));
        }
    })
}

/// Returns the numbers of a tensor, `N` bytes each.
fn chunks<'a, const N: usize, T: 'a>(
    tensor: &TensorView<'a>,
    read: fn([u8; N]) -> T,
) -> impl Iterator<Item = T> + use<'a, N, T> {
    tensor.data().as_chunks().0.iter().map(move |bytes| read(*bytes))
}

fn format_error(problem: String) -> Error {
    Error::format(TENSORS_FILE, problem)
}
