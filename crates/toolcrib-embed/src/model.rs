//! A table of vectors, and what becomes of a text with it.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use crate::dot::Kernel;
use crate::reader::Reader;
use crate::table::Table;
use crate::vocabulary::Vocabulary;
use crate::{Error, Field, Rows, Vector};

/// Pieces of a query that count; the training reads no more.
const QUERY_PIECES: usize = 64;
/// More than any field has.
const SHOWN_PIECES: usize = 512;

/// A table of vectors for the pieces of words.
#[derive(Clone)]
pub struct Model {
    pub(crate) dims: usize,
    pub(crate) reader: Reader,
    /// One for each field.
    pub(crate) weights: [f32; Field::ALL.len()],
    /// One for each piece: what a step of its row's int8 numbers is worth, times the piece's weight in
    /// a query.
    pub(crate) asked: Vec<f32>,
    /// The same with its weight in a tool: `please` says nothing in either, `get` little in a query and
    /// something in a name.
    pub(crate) told: Vec<f32>,
    /// Row after row; each byte is an i8.
    pub(crate) codes: Cow<'static, [u8]>,
}

impl Model {
    /// The table inside the program. The first call reads its vocabulary; the rows stay where they are.
    pub fn builtin() -> &'static Self {
        static BUILTIN: LazyLock<Model> = LazyLock::new(|| {
            let bytes: &'static [u8] = include_bytes!("../weights/table.bin");
            // The bytes are ours and a test reads them; there is nothing an operator could mend.
            Model::parse(Cow::Borrowed(bytes)).unwrap_or_else(|error| unreachable!("{error}"))
        });
        &BUILTIN
    }

    /// Reads a table as `training/` writes it.
    pub fn parse(bytes: Cow<'static, [u8]>) -> Result<Self, Error> {
        let Table { dims, weights, vocabulary, asked, told, codes } = Table::parse(bytes)?;
        let vocabulary = Vocabulary::parse(vocabulary, asked.len())?;
        Ok(Self { dims, reader: Reader::Wordpiece(vocabulary), weights, asked, told, codes })
    }

    /// Numbers in a vector.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// An empty catalog for the vectors of this model.
    pub fn rows(&self) -> Rows {
        Rows::new(self.dims)
    }

    /// The first 512 pieces that `text` is read as, as the vocabulary writes them.
    pub fn pieces(&self, text: &str) -> Vec<String> {
        let mut pieces = Vec::new();
        self.reader.each(text, SHOWN_PIECES, |piece| pieces.push(self.reader.written(piece)));
        pieces
    }

    /// The vector of a query: of its first 64 pieces.
    pub fn embed(&self, text: &str) -> Vector {
        let mut sum = vec![0.0; self.dims];
        self.add(text, &self.asked, QUERY_PIECES, &mut sum);
        Vector::of(sum)
    }

    /// The vector of a tool: each field's sum over the root of its number of pieces, so that a long
    /// description does not drown a name, times the field's weight. All texts of one field are one text,
    /// of which the beginning counts.
    pub fn embed_fields(&self, texts: &[(Field, &str)]) -> Vector {
        let mut sum = vec![0.0; self.dims];
        let mut own = vec![0.0; self.dims];
        for (field, weight) in Field::ALL.into_iter().zip(self.weights) {
            let mut pieces = 0;
            for (_, text) in texts.iter().filter(|(other, _)| *other == field) {
                pieces += self.add(text, &self.told, field.most_pieces() - pieces, &mut own);
            }
            if pieces > 0 {
                let share = weight / (pieces as f32).sqrt();
                for (sum, own) in sum.iter_mut().zip(&mut own) {
                    *sum += std::mem::take(own) * share;
                }
            }
        }
        Vector::of(sum)
    }

    /// Adds the vectors of the first `most` pieces of `text` to `sum`, and says how many there were.
    fn add(&self, text: &str, scales: &[f32], most: usize, sum: &mut [f32]) -> usize {
        let kernel = Kernel::best();
        let mut pieces = 0;
        self.reader.each(text, most, |piece| {
            let codes = &self.codes[self.reader.row(piece) * self.dims..][..self.dims];
            kernel.add(sum, codes, scales[piece as usize]);
            pieces += 1;
        });
        pieces
    }
}

/// Without its megabytes.
impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dims, asked, weights, .. } = self;
        f.debug_struct("Model")
            .field("dims", dims)
            .field("pieces", &asked.len())
            .field("weights", weights)
            .finish_non_exhaustive()
    }
}
