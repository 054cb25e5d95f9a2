//! The vectors of a catalog, in int8.
//!
//! A row has a scale of its own and int8 numbers: 260 bytes for 256 dimensions. A new generation of a
//! catalog copies the rows of the tools that stayed ([`Rows::push_from`]) and embeds only the others.

use crate::dot::{Block, Kernel, Scan};

/// One vector in int8, of a query or of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub(crate) dims: usize,
    /// What one step of the int8 numbers is worth.
    pub(crate) scale: f32,
    /// Zero after the last dimension.
    pub(crate) blocks: Box<[Block]>,
}

/// Many vectors of one model, in int8, counted from 0.
#[derive(Debug, Clone)]
pub struct Rows {
    dims: usize,
    scales: Vec<f32>,
    /// Row after row.
    blocks: Vec<Block>,
}

impl Rows {
    /// No rows yet, of vectors with `dims` numbers, at least one.
    pub(crate) fn new(dims: usize) -> Self {
        Self { dims, scales: Vec::new(), blocks: Vec::new() }
    }

    /// Makes room for `more` rows.
    pub fn reserve(&mut self, more: usize) {
        self.scales.reserve(more);
        self.blocks.reserve(more * self.width());
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// The memory they take, in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(self.scales.as_slice()) + size_of_val(self.blocks.as_slice())
    }

    /// Adds a row at the end.
    ///
    /// # Panics
    /// If it is a row of another model, with another number of dimensions.
    pub fn push(&mut self, row: &Row) {
        self.check(row);
        self.scales.push(row.scale);
        self.blocks.extend_from_slice(&row.blocks);
    }

    /// Adds a row of another generation at the end, as it is.
    ///
    /// # Panics
    /// If there is no such row, or one of another number of dimensions.
    pub fn push_from(&mut self, other: &Self, index: usize) {
        assert_eq!(self.dims, other.dims, "rows of two models");
        self.scales.push(other.scales[index]);
        self.blocks.extend_from_slice(other.row(index));
    }

    /// The cosine of one row and `query`.
    ///
    /// # Panics
    /// If there is no such row, or `query` has another number of dimensions.
    pub fn dot(&self, index: usize, query: &Row) -> f32 {
        self.check(query);
        let mut cosine = [0.0];
        let scan = Scan {
            rows: self.row(index),
            scales: &self.scales[index..=index],
            query: &query.blocks,
            query_scale: query.scale,
        };
        Kernel::best().scan(scan, &mut cosine);
        cosine[0]
    }

    /// The cosines of all rows and `query`, in the place of what `out` held.
    ///
    /// # Panics
    /// If `query` has another number of dimensions.
    pub fn scan(&self, query: &Row, out: &mut Vec<f32>) {
        self.check(query);
        out.clear();
        out.resize(self.len(), 0.0);
        let scan = Scan {
            rows: &self.blocks,
            scales: &self.scales,
            query: &query.blocks,
            query_scale: query.scale,
        };
        Kernel::best().scan(scan, out);
    }

    fn row(&self, index: usize) -> &[Block] {
        let width = self.width();
        &self.blocks[index * width..][..width]
    }

    /// Blocks of a row.
    fn width(&self) -> usize {
        self.dims.div_ceil(Block::LEN)
    }

    fn check(&self, row: &Row) {
        assert_eq!(self.dims, row.dims, "rows of two models");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Vector;

    fn rows(vectors: &[Vec<f32>]) -> Rows {
        let mut rows = Rows::new(vectors[0].len());
        for vector in vectors {
            rows.push(&Vector::of(vector.clone()).quantised());
        }
        rows
    }

    fn scanned(rows: &Rows, query: &[f32]) -> Vec<f32> {
        let mut out = vec![7.0; 3];
        rows.scan(&Vector::of(query.to_vec()).quantised(), &mut out);
        out
    }

    #[test]
    fn the_next_generation_has_what_stayed_and_what_is_new() {
        let (east, north, west) = (vec![1.0, 0.0], vec![0.0, 1.0], vec![-1.0, 0.0]);
        let before = rows(&[east.clone(), west, east.clone()]);
        assert_eq!(scanned(&before, &east), [1.0, -1.0, 1.0]);
        // One tool gone, one new, the others as they were.
        let mut next = Rows::new(2);
        next.push_from(&before, 2);
        next.push(&Vector::of(north).quantised());
        next.push_from(&before, 1);
        assert_eq!(scanned(&next, &east), [1.0, 0.0, -1.0]);
    }

    #[test]
    fn no_rows_have_no_cosines() {
        let none = Rows::new(3);
        assert!(none.is_empty());
        assert_eq!(scanned(&none, &[1.0, 2.0, 3.0]), [0.0; 0]);
    }

    #[test]
    fn what_says_nothing_is_like_nothing() {
        let rows = rows(&[vec![0.0; 5], vec![1.0; 5]]);
        assert_eq!(scanned(&rows, &[0.0; 5]), [0.0, 0.0]);
        assert_eq!(scanned(&rows, &[1.0; 5])[0], 0.0);
    }

    #[test]
    fn memory_is_a_byte_a_dimension_and_a_scale() {
        assert_eq!(rows(&vec![vec![1.0; 256]; 10]).bytes(), 10 * (256 + 4));
        assert_eq!(rows(&vec![vec![1.0; 65]; 10]).bytes(), 10 * (128 + 4));
    }

    #[test]
    #[should_panic(expected = "rows of two models")]
    fn rows_of_two_models_do_not_mix() {
        Rows::new(2).push(&Vector::of(vec![1.0]).quantised());
    }

    /// Vectors of one length, the query among them.
    fn vectors() -> impl Strategy<Value = Vec<Vec<f32>>> {
        (1_usize..200).prop_flat_map(|dims| {
            proptest::collection::vec(proptest::collection::vec(-1.0_f32..1.0, dims), 2..20)
        })
    }

    proptest! {
        #[test]
        fn a_scan_is_every_row_one_by_one(vectors in vectors()) {
            let rows = rows(&vectors);
            let query = Vector::of(vectors[0].clone()).quantised();
            let one_by_one: Vec<f32> = (0..rows.len()).map(|row| rows.dot(row, &query)).collect();
            prop_assert_eq!(scanned(&rows, &vectors[0]), one_by_one);
        }

        #[test]
        fn int8_is_off_by_no_more_than_half_a_step_a_number(vectors in vectors()) {
            let rows = rows(&vectors);
            let vectors: Vec<Vector> = vectors.into_iter().map(Vector::of).collect();
            let step = |vector: &Vector| vector.quantised().scale;
            let sum = |vector: &Vector| vector.values().iter().map(|value| value.abs()).sum::<f32>();
            let query = &vectors[0];
            for (row, vector) in vectors.iter().enumerate() {
                let error = (rows.dot(row, &query.quantised()) - vector.dot(query)).abs();
                let (own, other) = (step(vector) / 2.0, step(query) / 2.0);
                let dims = query.values().len() as f32;
                let most = own * sum(query) + other * sum(vector) + own * other * dims;
                prop_assert!(error <= most + 1e-5, "{} > {}", error, most);
            }
        }
    }
}
