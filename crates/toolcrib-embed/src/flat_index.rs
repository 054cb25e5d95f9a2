//! The vectors of a catalog in int8, searched exhaustively.
//!
//! A vector is one float scale and its int8 codes: 260 bytes for 256 dimensions. When a catalog changes, its new index
//! copies the vectors of unchanged tools ([`FlatIndex::push_from`]), and only the other tools are embedded.

use crate::simd::{Block, Kernel, ScanInput};

/// The vector of a query or of a tool, in int8.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantisedVector {
    pub(crate) dims: usize,
    /// The quantisation step: the value of an int8 code of 1.
    pub(crate) scale: f32,
    /// The codes, padded with zeros to full blocks.
    pub(crate) blocks: Box<[Block]>,
}

impl QuantisedVector {
    /// Returns the number of dimensions.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Returns the cosine similarity to another vector.
    ///
    /// # Panics
    /// If the other vector has a different number of dimensions.
    pub fn dot(&self, other: &Self) -> f32 {
        let mut index = FlatIndex::new(self.dims);
        index.push(self);
        index.dot(0, other)
    }

    /// Returns the vector as bytes, for a cache: the scale as a little-endian f32, then one byte per dimension.
    pub fn to_bytes(&self) -> Vec<u8> {
        let codes = self.blocks.iter().flat_map(|block| block.0).take(self.dims);
        self.scale.to_le_bytes().into_iter().chain(codes.map(i8::cast_unsigned)).collect()
    }

    /// Reads a vector of `dims` dimensions that [`QuantisedVector::to_bytes`] wrote. Returns `None` if the length is
    /// wrong, there are no dimensions, or the scale is negative, infinite or NaN.
    pub fn from_bytes(dims: usize, bytes: &[u8]) -> Option<Self> {
        let (scale, codes) = bytes.split_first_chunk()?;
        let scale = f32::from_le_bytes(*scale);
        if dims == 0 || codes.len() != dims || !scale.is_finite() || scale.is_sign_negative() {
            return None;
        }
        let mut blocks = vec![Block::ZERO; dims.div_ceil(Block::LEN)].into_boxed_slice();
        for (code, target) in codes.iter().zip(blocks.iter_mut().flat_map(|block| &mut block.0)) {
            *target = code.cast_signed();
        }
        Some(Self { dims, scale, blocks })
    }
}

/// Vectors of one model in int8, addressed by position from 0. A scan computes the similarity of a query to all of
/// them.
#[derive(Debug, Clone)]
pub struct FlatIndex {
    dims: usize,
    scales: Vec<f32>,
    /// The blocks of all vectors, one vector after another.
    blocks: Vec<Block>,
}

impl FlatIndex {
    /// Returns an empty index for vectors of `dims` dimensions (at least 1).
    pub fn new(dims: usize) -> Self {
        Self { dims, scales: Vec::new(), blocks: Vec::new() }
    }

    /// Reserves memory for `additional` more vectors.
    pub fn reserve(&mut self, additional: usize) {
        self.scales.reserve(additional);
        self.blocks.reserve(additional * self.blocks_per_vector());
    }

    /// Returns the number of vectors.
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Whether the index has no vectors.
    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// Returns the number of dimensions of a vector.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Returns the size of the vectors in memory, in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(self.scales.as_slice()) + size_of_val(self.blocks.as_slice())
    }

    /// Appends a vector.
    ///
    /// # Panics
    /// If the vector has a different number of dimensions.
    pub fn push(&mut self, vector: &QuantisedVector) {
        self.check_dims(vector);
        self.scales.push(vector.scale);
        self.blocks.extend_from_slice(&vector.blocks);
    }

    /// Appends a copy of the vector at `index` of another index.
    ///
    /// # Panics
    /// If `index` is out of range, or `other` has a different number of dimensions.
    pub fn push_from(&mut self, other: &Self, index: usize) {
        assert_eq!(self.dims, other.dims, "vectors of different models");
        self.scales.push(other.scales[index]);
        self.blocks.extend_from_slice(other.vector_blocks(index));
    }

    /// Returns the cosine similarity of `query` and the vector at `index`.
    ///
    /// # Panics
    /// If `index` is out of range, or `query` has a different number of dimensions.
    pub fn dot(&self, index: usize, query: &QuantisedVector) -> f32 {
        self.check_dims(query);
        let mut cosine = [0.0];
        let scan = ScanInput {
            vectors: self.vector_blocks(index),
            scales: &self.scales[index..=index],
            query: &query.blocks,
            query_scale: query.scale,
        };
        Kernel::best().scan(scan, &mut cosine);
        cosine[0]
    }

    /// Replaces the contents of `out` by the cosine similarities of `query` and all vectors.
    ///
    /// # Panics
    /// If `query` has a different number of dimensions.
    pub fn scan(&self, query: &QuantisedVector, out: &mut Vec<f32>) {
        self.check_dims(query);
        out.clear();
        out.resize(self.len(), 0.0);
        let scan = ScanInput {
            vectors: &self.blocks,
            scales: &self.scales,
            query: &query.blocks,
            query_scale: query.scale,
        };
        Kernel::best().scan(scan, out);
    }

    fn vector_blocks(&self, index: usize) -> &[Block] {
        let width = self.blocks_per_vector();
        &self.blocks[index * width..][..width]
    }

    fn blocks_per_vector(&self) -> usize {
        self.dims.div_ceil(Block::LEN)
    }

    fn check_dims(&self, vector: &QuantisedVector) {
        assert_eq!(self.dims, vector.dims, "vectors of different models");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Vector;

    fn index_of(vectors: &[Vec<f32>]) -> FlatIndex {
        let mut index = FlatIndex::new(vectors[0].len());
        for vector in vectors {
            index.push(&Vector::normalised(vector.clone()).quantised());
        }
        index
    }

    fn scanned(index: &FlatIndex, query: &[f32]) -> Vec<f32> {
        let mut out = vec![7.0; 3];
        index.scan(&Vector::normalised(query.to_vec()).quantised(), &mut out);
        out
    }

    #[test]
    fn the_next_generation_combines_copied_and_new_vectors() {
        let (east, north, west) = (vec![1.0, 0.0], vec![0.0, 1.0], vec![-1.0, 0.0]);
        let before = index_of(&[east.clone(), west, east.clone()]);
        assert_eq!(scanned(&before, &east), [1.0, -1.0, 1.0]);
        // One vector is removed, one is new, two are copied.
        let mut next = FlatIndex::new(2);
        next.push_from(&before, 2);
        next.push(&Vector::normalised(north).quantised());
        next.push_from(&before, 1);
        assert_eq!(scanned(&next, &east), [1.0, 0.0, -1.0]);
    }

    #[test]
    fn scanning_an_empty_index_returns_nothing() {
        let empty = FlatIndex::new(3);
        assert!(empty.is_empty());
        assert_eq!(scanned(&empty, &[1.0, 2.0, 3.0]), [0.0; 0]);
    }

    #[test]
    fn the_zero_vector_has_similarity_zero_to_everything() {
        let index = index_of(&[vec![0.0; 5], vec![1.0; 5]]);
        assert_eq!(scanned(&index, &[0.0; 5]), [0.0, 0.0]);
        assert_eq!(scanned(&index, &[1.0; 5])[0], 0.0);
    }

    #[test]
    fn a_vector_takes_one_byte_per_dimension_and_a_scale() {
        assert_eq!(index_of(&vec![vec![1.0; 256]; 10]).bytes(), 10 * (256 + 4));
        assert_eq!(index_of(&vec![vec![1.0; 65]; 10]).bytes(), 10 * (128 + 4));
    }

    #[test]
    fn damaged_bytes_are_not_read_as_a_vector() {
        let bytes = Vector::normalised(vec![1.0, -2.0, 3.0]).quantised().to_bytes();
        assert_eq!(bytes.len(), 7);
        for (dims, length) in [(0, 4), (2, 7), (4, 7), (3, 6), (3, 3), (3, 0)] {
            assert_eq!(QuantisedVector::from_bytes(dims, &bytes[..length]), None);
        }
        for scale in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0, -0.0] {
            let damaged = [&scale.to_le_bytes(), &bytes[4..]].concat();
            assert_eq!(QuantisedVector::from_bytes(3, &damaged), None, "{scale}");
        }
    }

    #[test]
    #[should_panic(expected = "vectors of different models")]
    fn a_vector_with_other_dimensions_is_rejected() {
        FlatIndex::new(2).push(&Vector::normalised(vec![1.0]).quantised());
    }

    /// Generates vectors with the same number of dimensions; the first serves as the query.
    fn vectors() -> impl Strategy<Value = Vec<Vec<f32>>> {
        (1_usize..200).prop_flat_map(|dims| {
            proptest::collection::vec(proptest::collection::vec(-1.0_f32..1.0, dims), 2..20)
        })
    }

    proptest! {
        #[test]
        fn a_vector_is_unchanged_after_it_was_written_and_read(
            values in proptest::collection::vec(-1.0_f32..1.0, 1..200),
        ) {
            let vector = Vector::normalised(values).quantised();
            let read = QuantisedVector::from_bytes(vector.dims, &vector.to_bytes());
            prop_assert_eq!(read, Some(vector));
        }

        #[test]
        fn a_scan_gives_the_same_as_single_dot_products(vectors in vectors()) {
            let index = index_of(&vectors);
            let query = Vector::normalised(vectors[0].clone()).quantised();
            let one_by_one: Vec<f32> = (0..index.len()).map(|at| index.dot(at, &query)).collect();
            prop_assert_eq!(scanned(&index, &vectors[0]), one_by_one);
        }

        #[test]
        fn quantising_is_off_by_at_most_half_a_step_per_component(vectors in vectors()) {
            let index = index_of(&vectors);
            let vectors: Vec<Vector> = vectors.into_iter().map(Vector::normalised).collect();
            let step = |vector: &Vector| vector.quantised().scale;
            let sum = |vector: &Vector| vector.values().iter().map(|value| value.abs()).sum::<f32>();
            let query = &vectors[0];
            for (at, vector) in vectors.iter().enumerate() {
                let error = (index.dot(at, &query.quantised()) - vector.dot(query)).abs();
                let (own, other) = (step(vector) / 2.0, step(query) / 2.0);
                let dims = query.values().len() as f32;
                let bound = own * sum(query) + other * sum(vector) + own * other * dims;
                prop_assert!(error <= bound + 1e-5, "{} > {}", error, bound);
            }
        }
    }
}
