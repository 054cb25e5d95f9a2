//! One vector, of a query or of a tool.

use crate::dot::Block;
use crate::rows::Row;

/// A direction: numbers of length 1 together, or all zero where a text says nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector(Box<[f32]>);

impl Vector {
    /// The direction of `values`. Zero where they have none: no values, all zero, or beyond what an f32
    /// can measure.
    pub fn of(mut values: Vec<f32>) -> Self {
        let square = product(&values, &values);
        // A square below the normal numbers has lost its digits, and the length with them.
        let scale = if square.is_normal() { square.sqrt().recip() } else { 0.0 };
        for value in &mut values {
            *value = if scale == 0.0 { 0.0 } else { *value * scale };
        }
        Self(values.into())
    }

    /// The numbers.
    pub fn values(&self) -> &[f32] {
        &self.0
    }

    /// Whether it says nothing; its dot product with everything is 0.
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|value| *value == 0.0)
    }

    /// The cosine of two vectors of one model.
    pub fn dot(&self, other: &Self) -> f32 {
        product(&self.0, &other.0)
    }

    /// The same direction in int8: each number is off by at most half a step of 1/127 of the largest.
    pub fn quantised(&self) -> Row {
        let (scale, codes) = quantised(&self.0);
        let mut blocks = vec![Block::ZERO; self.0.len().div_ceil(Block::LEN)].into_boxed_slice();
        for (code, place) in codes.zip(blocks.iter_mut().flat_map(|block| &mut block.0)) {
            *place = code;
        }
        Row { dims: self.0.len(), scale, blocks }
    }
}

/// Numbers as steps of 1/127 of the largest, and what a step is worth.
pub(crate) fn quantised(values: &[f32]) -> (f32, impl Iterator<Item = i8>) {
    let largest = values.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    let steps = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    (largest / 127.0, values.iter().map(move |value| (value * steps).round() as i8))
}

/// Summed in eight lanes in a fixed order, so that every machine gets the same bits.
fn product(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 8];
    for (a, b) in a.chunks(8).zip(b.chunks(8)) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    lanes.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_a_direction() {
        assert_eq!(Vector::of(vec![3.0, 4.0]), Vector::of(vec![6.0, 8.0]));
        assert_eq!(Vector::of(vec![0.0, -2.0]).values(), [0.0, -1.0]);
    }

    #[test]
    fn what_has_no_direction_is_zero() {
        for values in [
            vec![],
            vec![0.0, 0.0],
            vec![1e-20, 0.0],
            vec![1e-30, 0.0],
            vec![f32::MAX, 1.0],
            vec![f32::NAN],
        ] {
            let vector = Vector::of(values.clone());
            assert!(vector.is_zero(), "{values:?}");
            assert_eq!(vector.values().len(), values.len());
        }
    }

    #[test]
    fn the_largest_number_is_the_largest_code() {
        let row = Vector::of(vec![1.0, -0.6, 0.25, 0.0]).quantised();
        assert_eq!(row.blocks[0].0[..5], [127, -76, 32, 0, 0]);
        let row = Vector::of(vec![0.0, -1.0]).quantised();
        assert_eq!((row.blocks[0].0[1], row.scale), (-127, 1.0 / 127.0));
    }
}
