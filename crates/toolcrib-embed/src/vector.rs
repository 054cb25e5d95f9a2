//! The vector of a query or of a tool.

use crate::flat_index::QuantisedVector;
use crate::simd::Block;

/// A vector of length 1, or the zero vector if the text has no known piece.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector(Box<[f32]>);

impl Vector {
    /// Scales `values` to length 1. Returns the zero vector if this is impossible: there are no values, all values are
    /// zero, or the square of the length is not a normal f32 (too small, too large or not a number).
    pub fn normalised(mut values: Vec<f32>) -> Self {
        let square = dot_product(&values, &values);
        // A subnormal square has lost precision, so the length would be wrong.
        let scale = if square.is_normal() { square.sqrt().recip() } else { 0.0 };
        for value in &mut values {
            *value = if scale == 0.0 { 0.0 } else { *value * scale };
        }
        Self(values.into())
    }

    /// Returns the components.
    pub fn values(&self) -> &[f32] {
        &self.0
    }

    /// Whether this is the zero vector, whose dot product with every vector is 0.
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|value| *value == 0.0)
    }

    /// Returns the cosine similarity to another vector of the same model.
    pub fn dot(&self, other: &Self) -> f32 {
        dot_product(&self.0, &other.0)
    }

    /// Converts the components to int8. The step is 1/127 of the largest absolute value, so each component is off by at
    /// most half a step.
    pub fn quantised(&self) -> QuantisedVector {
        let (scale, codes) = quantise(&self.0);
        let mut blocks = vec![Block::ZERO; self.0.len().div_ceil(Block::LEN)].into_boxed_slice();
        for (code, target) in codes.zip(blocks.iter_mut().flat_map(|block| &mut block.0)) {
            *target = code;
        }
        QuantisedVector { dims: self.0.len(), scale, blocks }
    }
}

/// Quantises values to int8. Returns the step (1/127 of the largest absolute value) and the codes, in units of the
/// step.
pub(crate) fn quantise(values: &[f32]) -> (f32, impl Iterator<Item = i8>) {
    let largest = values.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    let steps = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    (largest / 127.0, values.iter().map(move |value| (value * steps).round() as i8))
}

/// Returns the dot product, summed in eight lanes in a fixed order, so that it has the same bits on every machine.
fn dot_product(a: &[f32], b: &[f32]) -> f32 {
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
    fn a_vector_has_length_one() {
        assert_eq!(Vector::normalised(vec![3.0, 4.0]), Vector::normalised(vec![6.0, 8.0]));
        assert_eq!(Vector::normalised(vec![0.0, -2.0]).values(), [0.0, -1.0]);
    }

    #[test]
    fn values_that_cannot_be_normalised_give_the_zero_vector() {
        for values in [
            vec![],
            vec![0.0, 0.0],
            vec![1e-20, 0.0],
            vec![1e-30, 0.0],
            vec![f32::MAX, 1.0],
            vec![f32::NAN],
        ] {
            let vector = Vector::normalised(values.clone());
            assert!(vector.is_zero(), "{values:?}");
            assert_eq!(vector.values().len(), values.len());
        }
    }

    #[test]
    fn the_largest_component_gets_the_largest_code() {
        let row = Vector::normalised(vec![1.0, -0.6, 0.25, 0.0]).quantised();
        assert_eq!(row.blocks[0].0[..5], [127, -76, 32, 0, 0]);
        let row = Vector::normalised(vec![0.0, -1.0]).quantised();
        assert_eq!((row.blocks[0].0[1], row.scale), (-127, 1.0 / 127.0));
    }
}
