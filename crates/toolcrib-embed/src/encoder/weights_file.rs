//! The file format of an encoder's weights, which `training/write_encoder.py` writes.
//!
//! All numbers are little-endian. The header has 64 bytes:
//!
//! - the magic bytes `TCRIBEN2`
//! - ten u32: the numbers of layers, hidden dimensions, heads, FFN dimensions, vocabulary entries and positions, the size
//!   of the vocabulary in bytes, the number of types of general tools, the size of their names in bytes, and the number of
//!   prototypes
//! - 16 bytes that identify the weights: the beginning of the SHA-256 of the ten numbers and of all that follows
//!   the header
//!
//! The sections follow, each padded to a multiple of 64 bytes: the vocabulary, one entry per line; the scale of each
//! word embedding; the position embeddings, to which the embedding of token type 0 was added; a layer norm; for each
//! layer the matrix of queries, keys and values, the attention's output matrix, a layer norm, the two FFN matrices
//! and a layer norm; and the int8 codes of the word embeddings. If there are types of general tools, five more sections
//! follow: their names, one per line; the classifiers of requests; those of tools; for each type the weights of all
//! prototypes; and the int8 codes of the prototypes, whose lengths do not matter. A classifier is one weight for each
//! dimension, and its bias. A layer norm is one section: gains, then biases. A matrix is three: scales, biases, and int8
//! codes in the layout of `simd::matrix`, so that nothing is rearranged at startup.
//!
//! The header is untrusted: its numbers are limited, and the file must have exactly the length that follows from
//! them.

use std::borrow::Cow;
use std::ops::Range;

use crate::simd::matrix::{MAX_INPUTS, PANEL, PackedMatrix};
use crate::{Error, FlatIndex, GeneralType, GeneralTypes, LinearProbe, Vector};

const MAGIC: &[u8; 8] = b"TCRIBEN2";
const HEADER: usize = 64;
const ALIGNMENT: u64 = 64;
/// The number of dimensions of a head is a multiple of this, so that loops over them need no remainder.
pub(super) const HEAD_UNIT: usize = 16;

/// The sizes of an encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) layers: usize,
    /// Number of components of a token's state.
    pub(super) hidden: usize,
    pub(super) heads: usize,
    /// Number of components between the two FFN matrices.
    pub(super) ffn: usize,
    /// Number of vocabulary entries.
    pub(super) entries: usize,
    /// Maximum number of tokens.
    pub(super) positions: usize,
    /// Size of the vocabulary, in bytes.
    pub(super) vocabulary: usize,
    /// Number of types of general tools.
    pub(super) general_types: usize,
    /// Size of their names, in bytes.
    pub(super) general_names: usize,
    /// Number of prototypes of requests for general tools.
    pub(super) prototypes: usize,
}

/// The gains and biases of a layer normalisation.
#[derive(Clone)]
pub(super) struct LayerNorm {
    pub(super) gains: Vec<f32>,
    pub(super) biases: Vec<f32>,
}

/// A matrix, whose codes stay in the file.
#[derive(Clone)]
pub(super) struct Matrix {
    codes: Range<usize>,
    scales: Vec<f32>,
    biases: Vec<f32>,
}

/// The weights of a layer.
#[derive(Clone)]
pub(super) struct Layer {
    pub(super) attention_input: Matrix,
    pub(super) attention_output: Matrix,
    pub(super) attention_norm: LayerNorm,
    pub(super) ffn_input: Matrix,
    pub(super) ffn_output: Matrix,
    pub(super) ffn_norm: LayerNorm,
}

/// A parsed weights file.
#[derive(Clone)]
pub(super) struct Weights {
    pub(super) id: [u8; 16],
    pub(super) shape: Shape,
    /// The vocabulary, with one entry per line.
    pub(super) vocabulary: Range<usize>,
    pub(super) word_scales: Vec<f32>,
    pub(super) positions: Vec<f32>,
    pub(super) embedding_norm: LayerNorm,
    pub(super) layers: Vec<Layer>,
    word_codes: Range<usize>,
    pub(super) general_types: GeneralTypes,
    bytes: Cow<'static, [u8]>,
}

impl Weights {
    /// Parses a file. Codes are not copied.
    pub(super) fn parse(bytes: Cow<'static, [u8]>) -> Result<Self, Error> {
        let Some((header, _)) = bytes.split_first_chunk::<HEADER>() else {
            return Err(Error::NotAnEncoder);
        };
        if !header.starts_with(MAGIC) {
            return Err(Error::NotAnEncoder);
        }
        let shape = Shape::parse(header)?;
        let mut id = [0; 16];
        id.copy_from_slice(&header[48..64]);
        let needed = shape.file_length();
        if needed != bytes.len() as u64 {
            return Err(Error::EncoderLength { needed, found: bytes.len() as u64 });
        }
        let Shape { hidden, ffn, entries, positions, .. } = shape;
        let mut rest = Sections { bytes: &bytes, at: HEADER };
        let vocabulary = rest.take(shape.vocabulary);
        let word_scales = rest.floats("word scales", entries)?;
        let position_embeddings = rest.floats("positions", positions * hidden)?;
        let embedding_norm = rest.norm(hidden)?;
        let mut layers = Vec::with_capacity(shape.layers);
        for _ in 0..shape.layers {
            layers.push(Layer {
                attention_input: rest.matrix(hidden, 3 * hidden)?,
                attention_output: rest.matrix(hidden, hidden)?,
                attention_norm: rest.norm(hidden)?,
                ffn_input: rest.matrix(hidden, ffn)?,
                ffn_output: rest.matrix(ffn, hidden)?,
                ffn_norm: rest.norm(hidden)?,
            });
        }
        let word_codes = rest.take(entries * hidden);
        let general_types = rest.general_types(&shape)?;
        Ok(Self {
            id,
            shape,
            vocabulary,
            word_scales,
            positions: position_embeddings,
            embedding_norm,
            layers,
            word_codes,
            general_types,
            bytes,
        })
    }

    /// Returns the text of the vocabulary. It is not copied if the file is `'static`.
    pub(super) fn vocabulary(&self) -> Result<Cow<'static, str>, Error> {
        let section = self.vocabulary.clone();
        match &self.bytes {
            Cow::Borrowed(bytes) => std::str::from_utf8(&bytes[section]).map(Cow::Borrowed),
            Cow::Owned(bytes) => {
                std::str::from_utf8(&bytes[section]).map(|text| text.to_owned().into())
            }
        }
        .map_err(|error| Error::VocabularyNotUtf8 { offset: error.valid_up_to() })
    }

    pub(super) fn matrix<'a>(&'a self, matrix: &'a Matrix) -> PackedMatrix<'a> {
        let codes = &self.bytes[matrix.codes.clone()];
        PackedMatrix { codes, scales: &matrix.scales, biases: &matrix.biases }
    }

    /// Returns the int8 codes of a word embedding.
    pub(super) fn word(&self, id: u32) -> &[u8] {
        let hidden = self.shape.hidden;
        &self.bytes[self.word_codes.clone()][id as usize * hidden..][..hidden]
    }
}

impl Shape {
    fn parse(header: &[u8; HEADER]) -> Result<Self, Error> {
        let mut numbers =
            header[8..48].as_chunks::<4>().0.iter().map(|n| u32::from_le_bytes(*n) as usize);
        let mut number = || numbers.next().unwrap_or_default();
        let shape = Self {
            layers: number(),
            hidden: number(),
            heads: number(),
            ffn: number(),
            entries: number(),
            positions: number(),
            vocabulary: number(),
            general_types: number(),
            general_names: number(),
            prototypes: number(),
        };
        match shape.problem() {
            Some(reason) => Err(Error::EncoderShape { reason }),
            None => Ok(shape),
        }
    }

    fn problem(&self) -> Option<&'static str> {
        let width = |width: usize| (1..=MAX_INPUTS).contains(&width) && width.is_multiple_of(PANEL);
        if !(1..=64).contains(&self.layers) {
            Some("it must have 1 to 64 layers")
        } else if !width(self.hidden) || !width(self.ffn) {
            Some("`hidden` and `ffn` must be multiples of 16, from 16 to 4096")
        } else if self.heads == 0 || !(self.hidden / HEAD_UNIT).is_multiple_of(self.heads) {
            Some("the size of a head must be a multiple of 16")
        } else if !(2..=1 << 16).contains(&self.positions) {
            Some("it must have 2 to 65536 positions")
        } else if !(1..=1 << 20).contains(&self.entries) || self.vocabulary > 1 << 26 {
            Some("the vocabulary must have 1 to 1048576 entries, and at most 64 MiB")
        } else if self.general_types > 64 || self.general_names > 4096 {
            Some("it must have at most 64 types of general tools, and 4096 bytes of names")
        } else if self.prototypes > 1 << 14 || (self.prototypes > 0 && self.general_types == 0) {
            Some("it must have at most 16384 prototypes, and none without types of general tools")
        } else {
            None
        }
    }

    /// Returns the length of a file with this shape. The limits of [`Shape::problem`] prevent an overflow.
    fn file_length(&self) -> u64 {
        let [hidden, ffn, entries, positions, text, layers] =
            [self.hidden, self.ffn, self.entries, self.positions, self.vocabulary, self.layers]
                .map(|number| number as u64);
        let padded = |bytes: u64| bytes.next_multiple_of(ALIGNMENT);
        let matrix = |inputs, outputs| 2 * padded(4 * outputs) + padded(inputs * outputs);
        let norm = padded(8 * hidden);
        let layer = matrix(hidden, 3 * hidden)
            + matrix(hidden, hidden)
            + matrix(hidden, ffn)
            + matrix(ffn, hidden)
            + 2 * norm;
        let words = padded(4 * entries) + padded(entries * hidden);
        let general = match self.general_types as u64 {
            0 => 0,
            types => {
                let prototypes = self.prototypes as u64;
                padded(self.general_names as u64)
                    + 2 * padded(4 * types * (hidden + 1))
                    + padded(4 * types * prototypes)
                    + padded(prototypes * hidden)
            }
        };
        HEADER as u64
            + general
            + padded(text)
            + words
            + padded(4 * positions * hidden)
            + norm
            + layers * layer
    }
}

/// The sections of a file whose length was checked.
struct Sections<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Sections<'_> {
    fn take(&mut self, length: usize) -> Range<usize> {
        let section = self.at..self.at + length;
        self.at += length.next_multiple_of(ALIGNMENT as usize);
        section
    }

    fn floats(&mut self, part: &'static str, count: usize) -> Result<Vec<f32>, Error> {
        let section = self.take(4 * count);
        let numbers = self.bytes[section].as_chunks::<4>().0.iter();
        let numbers: Vec<f32> = numbers.map(|bytes| f32::from_le_bytes(*bytes)).collect();
        match numbers.iter().position(|number| !number.is_finite()) {
            Some(index) => Err(Error::NotFinite { part, index }),
            None => Ok(numbers),
        }
    }

    fn norm(&mut self, width: usize) -> Result<LayerNorm, Error> {
        let mut gains = self.floats("layer norms", 2 * width)?;
        let biases = gains.split_off(width);
        Ok(LayerNorm { gains, biases })
    }

    fn matrix(&mut self, inputs: usize, outputs: usize) -> Result<Matrix, Error> {
        let scales = self.floats("scales of a matrix", outputs)?;
        let biases = self.floats("biases of a matrix", outputs)?;
        Ok(Matrix { codes: self.take(inputs * outputs), scales, biases })
    }

    fn general_types(&mut self, shape: &Shape) -> Result<GeneralTypes, Error> {
        let types = shape.general_types;
        if types == 0 {
            return Ok(GeneralTypes::new(Vec::new(), FlatIndex::new(shape.hidden)));
        }
        let names = self.take(shape.general_names);
        // The names are printed, so they may not contain control characters.
        let is_name = |name: &str| !name.is_empty() && !name.contains(char::is_control);
        let names = std::str::from_utf8(&self.bytes[names]).unwrap_or_default().to_owned();
        if names.split('\n').count() != types || !names.split('\n').all(is_name) {
            return Err(Error::EncoderShape {
                reason: "each type of general tool must have a name without control characters",
            });
        }
        let requests = self.probes("classifiers of requests", shape)?;
        let tools = self.probes("classifiers of tools", shape)?;
        let weights = self.floats("weights of prototypes", types * shape.prototypes)?;
        let mut weights = weights.chunks_exact(shape.prototypes.max(1)).map(<[f32]>::to_vec);
        let of_name = |(name, (request, tool)): (&str, _)| GeneralType {
            name: name.to_owned(),
            request,
            prototype_weights: weights.next().unwrap_or_default(),
            tool,
        };
        let types = names.split('\n').zip(requests.into_iter().zip(tools)).map(of_name).collect();
        Ok(GeneralTypes::new(types, self.vectors(shape.prototypes, shape.hidden)))
    }

    fn probes(&mut self, part: &'static str, shape: &Shape) -> Result<Vec<LinearProbe>, Error> {
        let numbers = self.floats(part, shape.general_types * (shape.hidden + 1))?;
        let probe = |numbers: &[f32]| {
            let (bias, weights) = numbers.split_last()?;
            Some(LinearProbe::new(weights.to_vec(), *bias))
        };
        Ok(numbers.chunks_exact(shape.hidden + 1).filter_map(probe).collect())
    }

    /// Reads vectors whose lengths do not matter from their codes.
    fn vectors(&mut self, count: usize, dims: usize) -> FlatIndex {
        let codes = self.take(count * dims);
        let mut vectors = FlatIndex::new(dims);
        vectors.reserve(count);
        for row in self.bytes[codes].chunks_exact(dims) {
            let values = row.iter().map(|code| f32::from(code.cast_signed())).collect();
            vectors.push(&Vector::normalised(values).quantised());
        }
        vectors
    }
}
