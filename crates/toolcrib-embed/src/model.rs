//! The embedding model: a table of piece vectors, and how texts are embedded with it.

use std::borrow::Cow;
use std::fmt;

use crate::segmenter::Segmenter;
use crate::simd::Kernel;
use crate::table_file::TableFile;
use crate::vocabulary::PieceVocabulary;
use crate::{EmbeddedField, Error, FlatIndex, Vector};

/// Maximum number of pieces of a query that are embedded. `training/` uses the same limit.
const MAX_QUERY_PIECES: usize = 64;
/// Maximum number of pieces that [`EmbeddingModel::pieces`] returns. It is larger than the limit of any field.
const MAX_LISTED_PIECES: usize = 512;

/// A table with one vector for each word piece.
#[derive(Clone)]
pub struct EmbeddingModel {
    pub(crate) dims: usize,
    pub(crate) segmenter: Segmenter,
    /// The weight of each field.
    pub(crate) field_weights: [f32; EmbeddedField::ALL.len()],
    /// For each piece, the factor that converts its int8 codes to floats in a query: the quantisation step of its row
    /// times the learned weight of the piece in queries.
    pub(crate) query_scales: Vec<f32>,
    /// The same factor as `query_scales`, but for tools. The two differ: `get`, for example, has a low weight in
    /// queries and a higher one in tools.
    pub(crate) tool_scales: Vec<f32>,
    /// The int8 codes, row by row; each byte is an i8.
    pub(crate) codes: Cow<'static, [u8]>,
}

impl EmbeddingModel {
    /// Returns the table inside the binary. The first call parses its vocabulary; the vectors are not copied.
    #[cfg(feature = "builtin-table")]
    pub fn builtin() -> &'static Self {
        static BUILTIN: std::sync::LazyLock<EmbeddingModel> = std::sync::LazyLock::new(|| {
            let bytes: &'static [u8] = include_bytes!("../weights/table.bin");
            // The bytes are part of the binary and a test parses them, so this cannot fail at run time.
            EmbeddingModel::parse(Cow::Borrowed(bytes))
                .unwrap_or_else(|error| unreachable!("{error}"))
        });
        &BUILTIN
    }

    /// Parses a table file as `training/` writes it.
    pub fn parse(bytes: Cow<'static, [u8]>) -> Result<Self, Error> {
        let TableFile { dims, field_weights, vocabulary, query_scales, tool_scales, codes } =
            TableFile::parse(bytes)?;
        let vocabulary = PieceVocabulary::parse(vocabulary, query_scales.len())?;
        let segmenter = Segmenter::Wordpiece(vocabulary);
        Ok(Self { dims, segmenter, field_weights, query_scales, tool_scales, codes })
    }

    /// Returns the number of dimensions of a vector.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Returns an empty index for vectors of this model.
    pub fn new_index(&self) -> FlatIndex {
        FlatIndex::new(self.dims)
    }

    /// Splits `text` into pieces and returns the first 512, spelled as in the vocabulary.
    pub fn pieces(&self, text: &str) -> Vec<String> {
        let mut pieces = Vec::new();
        let segmenter = &self.segmenter;
        segmenter
            .each_piece(text, MAX_LISTED_PIECES, |piece| pieces.push(segmenter.piece_text(piece)));
        pieces
    }

    /// Embeds a query. Only its first 64 pieces are used.
    pub fn embed(&self, text: &str) -> Vector {
        let mut sum = vec![0.0; self.dims];
        self.add(text, &self.query_scales, MAX_QUERY_PIECES, &mut sum);
        Vector::normalised(sum)
    }

    /// Embeds a tool. The sum of each field is divided by the square root of its number of pieces, so that a
    /// long description does not outweigh the name, and multiplied by the weight of the field. Several texts
    /// of one field count as one text, of which only the beginning is embedded.
    pub fn embed_fields(&self, texts: &[(EmbeddedField, &str)]) -> Vector {
        let mut sum = vec![0.0; self.dims];
        let mut field_sum = vec![0.0; self.dims];
        for (field, weight) in EmbeddedField::ALL.into_iter().zip(self.field_weights) {
            let mut pieces = 0;
            for (_, text) in texts.iter().filter(|(other, _)| *other == field) {
                let left = field.max_pieces() - pieces;
                pieces += self.add(text, &self.tool_scales, left, &mut field_sum);
            }
            if pieces > 0 {
                let factor = weight / (pieces as f32).sqrt();
                for (sum, field_sum) in sum.iter_mut().zip(&mut field_sum) {
                    *sum += std::mem::take(field_sum) * factor;
                }
            }
        }
        Vector::normalised(sum)
    }

    /// Adds the vectors of the first `max_pieces` pieces of `text` to `sum`. Returns how many were added.
    fn add(&self, text: &str, scales: &[f32], max_pieces: usize, sum: &mut [f32]) -> usize {
        let kernel = Kernel::best();
        let mut pieces = 0;
        self.segmenter.each_piece(text, max_pieces, |piece| {
            let codes = &self.codes[self.segmenter.row(piece) * self.dims..][..self.dims];
            kernel.add(sum, codes, scales[piece as usize]);
            pieces += 1;
        });
        pieces
    }
}

/// The output leaves out the vocabulary and the vectors, which are megabytes.
impl fmt::Debug for EmbeddingModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dims, query_scales, field_weights, .. } = self;
        f.debug_struct("EmbeddingModel")
            .field("dims", dims)
            .field("pieces", &query_scales.len())
            .field("field_weights", field_weights)
            .finish_non_exhaustive()
    }
}
