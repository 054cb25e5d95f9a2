//! Types of general tools, which serve requests about any subject, and the classifiers that recognise them.
//!
//! A web search or a shell serves requests that say nothing about searching or commands, so such a request is not similar
//! to the tool. For each type, one classifier says whether a request needs a tool of this type, and another one whether a
//! tool is of this type. Both work on the vectors of an encoder, and are part of its file.

use crate::{QuantisedVector, Vector};

/// A type of general tool, for example web search.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneralType {
    /// The name, for explanations.
    pub name: String,
    /// Whether a request needs a tool of this type.
    pub request: LinearProbe,
    /// Whether a tool is of this type.
    pub tool: LinearProbe,
}

/// A linear classifier of vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearProbe {
    direction: QuantisedVector,
    scale: f32,
    bias: f32,
}

impl LinearProbe {
    /// Creates a classifier from its weights, one for each dimension, and its bias.
    pub fn new(weights: Vec<f32>, bias: f32) -> Self {
        let length = weights.iter().map(|weight| weight * weight).sum::<f32>().sqrt();
        // If the length overflows, only the bias counts.
        let scale = if length.is_finite() { length } else { 0.0 };
        Self { direction: Vector::normalised(weights).quantised(), scale, bias }
    }

    /// The direction in which the probability grows.
    pub fn direction(&self) -> &QuantisedVector {
        &self.direction
    }

    /// The probability for a vector with this cosine similarity to the [`direction`](Self::direction), from 0 to 1.
    pub fn probability(&self, cosine: f32) -> f32 {
        1.0 / (1.0 + (-self.scale * cosine - self.bias).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probability_is_the_logistic_function_of_the_weighted_sum() {
        let probe = LinearProbe::new(vec![3.0, 0.0, -4.0, 0.0], 0.5);
        for (vector, sum) in [([1.0, 0.0, 0.0, 0.0], 3.5), ([0.0, 1.0, 0.0, 0.0], 0.5)] {
            let cosine = Vector::normalised(vector.to_vec()).quantised().dot(probe.direction());
            let expected = 1.0 / (1.0 + f32::exp(-sum));
            assert!((probe.probability(cosine) - expected).abs() < 0.01, "{vector:?}");
        }
    }

    #[test]
    fn a_classifier_without_usable_weights_has_a_constant_probability() {
        for weight in [0.0, f32::MAX] {
            let probe = LinearProbe::new(vec![weight; 4], 0.0);
            assert_eq!((probe.probability(-1.0), probe.probability(1.0)), (0.5, 0.5));
        }
    }
}
