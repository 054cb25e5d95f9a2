//! The tensors of a published table, as numbers.

use half::{bf16, f16};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::Error;

/// The file that the tensors come in.
pub(crate) const MODEL: &str = "model.safetensors";
/// The name of the table: Model2Vec's, WordLlama's.
const TABLES: [&str; 2] = ["embeddings", "embedding.weight"];

/// The tensors of a table.
pub(crate) struct Tensors {
    pub(crate) dims: usize,
    /// Row after row.
    pub(crate) values: Vec<f32>,
    /// The row of each token, if tokens share rows.
    pub(crate) mapping: Option<Vec<u32>>,
    /// The weight of each token, if they have one.
    pub(crate) weights: Option<Vec<f32>>,
}

impl Tensors {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let file = SafeTensors::deserialize(bytes).map_err(|error| refused(error.to_string()))?;
        let Some(table) = TABLES.iter().find_map(|name| file.tensor(name).ok()) else {
            let mut names = file.names();
            names.sort_unstable();
            return Err(refused(format!(
                "no tensor `embeddings` or `embedding.weight` among `{}`",
                names.join("`, `")
            )));
        };
        let [rows, dims] = *table.shape() else {
            let shape = table.shape();
            return Err(refused(format!(
                "the table has shape {shape:?}: rows of numbers are needed"
            )));
        };
        if rows == 0 || dims == 0 {
            return Err(refused(format!("the table is empty: {rows} rows of {dims} numbers")));
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
        other => return Err(refused(format!("`mapping` is of {other:?}, not I64"))),
    };
    let row = |number: i64| {
        u32::try_from(number).map_err(|_| refused(format!("`mapping` has the row {number}")))
    };
    numbers.into_iter().map(row).collect()
}

fn floats(name: &str, tensor: &TensorView<'_>) -> Result<Vec<f32>, Error> {
    Ok(match tensor.dtype() {
        Dtype::F64 => chunks(tensor, f64::from_le_bytes).map(|value| value as f32).collect(),
        Dtype::F32 => chunks(tensor, f32::from_le_bytes).collect(),
        Dtype::F16 => chunks(tensor, f16::from_le_bytes).map(f16::to_f32).collect(),
        Dtype::BF16 => chunks(tensor, bf16::from_le_bytes).map(bf16::to_f32).collect(),
        // One scale for all rows, which a direction does not need.
        Dtype::I8 => chunks(tensor, i8::from_le_bytes).map(f32::from).collect(),
        other => {
            return Err(refused(format!("`{name}` is of {other:?}, not F32, F16, BF16 or I8")));
        }
    })
}

/// The numbers of a tensor, `N` bytes each.
fn chunks<'a, const N: usize, T: 'a>(
    tensor: &TensorView<'a>,
    read: fn([u8; N]) -> T,
) -> impl Iterator<Item = T> + use<'a, N, T> {
    tensor.data().as_chunks().0.iter().map(move |bytes| read(*bytes))
}

fn refused(problem: String) -> Error {
    Error::format(MODEL, problem)
}
