//! A transformer encoder: the architecture of all-MiniLM-L6-v2, with int8 weights.
//!
//! It understands a text better than the static table, because the state of each token depends on all other tokens,
//! but it takes milliseconds instead of microseconds. One pass over a text also gives the vectors of its parts.
//!
//! Reading order: `weights_file` (the file format), `characters` and `tokenizer` (text into tokens), `forward` (the
//! layers), `attention`, `float` (functions of floats), `simd::matrix` (products with int8 matrices).

mod attention;
mod characters;
mod float;
mod forward;
#[cfg(test)]
mod synthetic;
#[cfg(test)]
mod tests;
mod tokenizer;
mod weights_file;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use self::tokenizer::Tokenizer;
use self::weights_file::Weights;
use crate::simd::Kernel;
use crate::{Error, FlatIndex, GeneralTypes, Vector};

pub use self::tokenizer::Token;

/// Number of special tokens of each input: one at the start, one at the end.
const SPECIAL: usize = 2;

/// A transformer encoder, whose tokenizer and weights come from one file.
#[derive(Clone)]
pub struct Encoder {
    weights: Weights,
    tokenizer: Tokenizer,
    kernel: Kernel,
}

/// The vectors of a text and of its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedText {
    /// The vector of the text: the mean of the final states of all tokens.
    pub whole: Vector,
    /// The vector of each requested part, or `None` if no token of the text lies in it.
    pub parts: Vec<Option<Vector>>,
    /// Number of tokens, including the two special ones.
    pub tokens: usize,
    /// How many of the tokens stand for a word that the vocabulary cannot spell.
    pub unknown: usize,
}

impl Encoder {
    /// Parses weights that `training/write_encoder.py` wrote. Matrices are used in place and not copied.
    pub fn parse(bytes: Cow<'static, [u8]>) -> Result<Self, Error> {
        let weights = Weights::parse(bytes)?;
        let tokenizer = Tokenizer::new(&weights)?;
        Ok(Self { weights, tokenizer, kernel: Kernel::best() })
    }

    /// Returns the number of dimensions of a vector.
    pub fn dims(&self) -> usize {
        self.weights.shape.hidden
    }

    /// Returns the hash of the weights. Vectors of different weights must not be compared.
    pub fn id(&self) -> &[u8; 16] {
        &self.weights.id
    }

    /// The types of general tools that the encoder can recognise. A file may have none.
    pub fn general_types(&self) -> &GeneralTypes {
        &self.weights.general_types
    }

    /// Returns an empty index for vectors of this encoder.
    pub fn new_index(&self) -> FlatIndex {
        FlatIndex::new(self.dims())
    }

    /// Returns the tokens of `text` that [`Encoder::embed`] uses, without the two special ones.
    pub fn tokens(&self, text: &str, max_tokens: usize) -> Vec<Token> {
        let limit = max_tokens.min(self.weights.shape.positions).saturating_sub(SPECIAL);
        self.tokenizer.tokens(text, limit)
    }

    /// Embeds the first `max_tokens` tokens of `text`, including the two special ones, and each of `parts`, which are
    /// byte ranges of the text. The time that this takes is roughly proportional to the number of tokens.
    ///
    /// The vector of a part is the mean of the final states of the tokens that lie entirely in its range. They come
    /// from the same pass, so they depend on the entire text. The special tokens belong to no part. `max_tokens` is
    /// limited by the number of positions of the model (128 in files that `training/write_encoder.py` writes), and the two special tokens are
    /// always present.
    pub fn embed(&self, text: &str, max_tokens: usize, parts: &[Range<usize>]) -> EncodedText {
        let Tokenizer { start, end, unknown, .. } = self.tokenizer;
        let tokens = self.tokens(text, max_tokens);
        let mut ids = Vec::with_capacity(tokens.len() + SPECIAL);
        ids.push(start);
        ids.extend(tokens.iter().map(|token| token.id));
        ids.push(end);
        let states = self.final_states(&ids);
        let part = |range: &Range<usize>| {
            let first = tokens.partition_point(|token| token.range.start < range.start);
            let inside = |token: &&Token| token.range.end <= range.end;
            let count = tokens[first..].iter().take_while(inside).count();
            // The state of the start token comes first.
            (count > 0).then(|| {
                mean(&states[(first + 1) * self.dims()..][..count * self.dims()], self.dims())
            })
        };
        EncodedText {
            whole: mean(&states, self.dims()),
            parts: parts.iter().map(part).collect(),
            tokens: ids.len(),
            unknown: tokens.iter().filter(|token| token.id == unknown).count(),
        }
    }

    /// Returns this encoder with each kernel that the CPU supports, slowest first, and the names of the kernels. For
    /// benchmarks and tests.
    #[doc(hidden)]
    pub fn with_each_kernel(&self) -> Vec<(String, Self)> {
        let with = |kernel: Kernel| (format!("{kernel:?}"), Self { kernel, ..self.clone() });
        Kernel::all().map(with).collect()
    }
}

/// Returns the mean of rows of `dims` components, normalised. The length of the sum does not matter, so it is not
/// divided by the number of rows.
fn mean(rows: &[f32], dims: usize) -> Vector {
    let mut sum = vec![0.0; dims];
    for row in rows.chunks_exact(dims) {
        for (sum, value) in sum.iter_mut().zip(row) {
            *sum += value;
        }
    }
    Vector::normalised(sum)
}

/// The output leaves out the vocabulary and the weights, which take megabytes.
impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder")
            .field("shape", &self.weights.shape)
            .field("id", &self.weights.id)
            .field("kernel", &self.kernel)
            .finish_non_exhaustive()
    }
}
