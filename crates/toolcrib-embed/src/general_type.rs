//! Types of general tools, which serve requests about any subject, and the classifiers that recognise them.
//!
//! A web search or a shell serves requests that say nothing about searching or commands, so such a request is not similar
//! to the tool. For each type, one classifier says whether a request needs a tool of this type, and another one whether a
//! tool is of this type. Both work on the vectors of an encoder, and are part of its file.
//!
//! Tools of a type resemble each other, so a linear classifier recognises them. The requests for a web search are about
//! anything, so they are also compared with prototypes: vectors in the centres of groups of requests. A linear classifier
//! alone confuses several times as many requests (training/README.md).

use crate::{FlatIndex, QuantisedVector, Vector};

/// How fast the influence of a prototype falls with its distance to the request. It and the next constant are part of the file
/// format, because the weights of the prototypes were fitted with them.
const SHARPNESS: f32 = 6.0;
/// The cosine similarity at which the influence of a prototype is 1.
const UNIT_COSINE: f32 = 0.65;

/// The types of general tools that an encoder can recognise.
#[derive(Debug, Clone)]
pub struct GeneralTypes {
    types: Vec<GeneralType>,
    prototypes: FlatIndex,
}

/// A type of general tool, for example web search.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneralType {
    /// The name, for explanations.
    pub name: String,
    /// The linear part of the classifier of requests.
    pub request: LinearProbe,
    /// The weight of each prototype in the classifier of requests.
    pub prototype_weights: Vec<f32>,
    /// Whether a tool is of this type.
    pub tool: LinearProbe,
}

impl GeneralTypes {
    /// Creates types whose requests are compared with these prototypes. A prototype without a weight does not count.
    pub fn new(types: Vec<GeneralType>, prototypes: FlatIndex) -> Self {
        Self { types, prototypes }
    }

    /// Returns the types. Their order is that of [`request_probabilities`](Self::request_probabilities).
    pub fn as_slice(&self) -> &[GeneralType] {
        &self.types
    }

    /// Whether all classifiers are for vectors of `dims` dimensions.
    pub fn have_dims(&self, dims: usize) -> bool {
        let probes = self.types.iter().flat_map(|one| [&one.request, &one.tool]);
        self.prototypes.dims() == dims
            && probes.map(|probe| probe.direction().dims()).all(|found| found == dims)
    }

    /// Returns the probability that a request needs a tool of a type, for each type.
    ///
    /// # Panics
    /// If the vector has a different number of dimensions than the classifiers.
    pub fn request_probabilities(&self, request: &QuantisedVector) -> Vec<f32> {
        let mut influences = Vec::new();
        self.prototypes.scan(request, &mut influences);
        for influence in &mut influences {
            *influence = (SHARPNESS * (*influence - UNIT_COSINE)).exp();
        }
        let probability = |one: &GeneralType| {
            let linear = one.request.logit(request.dot(one.request.direction()));
            let pairs = one.prototype_weights.iter().zip(&influences);
            logistic(linear + pairs.map(|(weight, influence)| weight * influence).sum::<f32>())
        };
        self.types.iter().map(probability).collect()
    }
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
        logistic(self.logit(cosine))
    }

    fn logit(&self, cosine: f32) -> f32 {
        self.scale * cosine + self.bias
    }
}

/// Returns a number from 0 to 1, also if the logit is infinite or, because weights of both signs overflowed, NaN.
fn logistic(logit: f32) -> f32 {
    if logit.is_nan() { 0.0 } else { 1.0 / (1.0 + (-logit).exp()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantised(values: [f32; 4]) -> QuantisedVector {
        Vector::normalised(values.to_vec()).quantised()
    }

    #[test]
    fn the_probability_is_the_logistic_function_of_the_weighted_sum() {
        let probe = LinearProbe::new(vec![3.0, 0.0, -4.0, 0.0], 0.5);
        for (vector, sum) in [([1.0, 0.0, 0.0, 0.0], 3.5), ([0.0, 1.0, 0.0, 0.0], 0.5)] {
            let cosine = quantised(vector).dot(probe.direction());
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

    /// Types with two prototypes, in the first and in the second dimension.
    fn with_prototypes(weights: [f32; 2]) -> GeneralTypes {
        let mut prototypes = FlatIndex::new(4);
        prototypes.push(&quantised([1.0, 0.0, 0.0, 0.0]));
        prototypes.push(&quantised([0.0, 1.0, 0.0, 0.0]));
        let probe = LinearProbe::new(vec![0.0, 0.0, 0.0, 1.0], -1.0);
        let one = GeneralType {
            name: "search".to_owned(),
            request: probe.clone(),
            prototype_weights: weights.to_vec(),
            tool: probe,
        };
        GeneralTypes::new(vec![one], prototypes)
    }

    #[test]
    fn each_prototype_counts_for_requests_near_it() {
        let types = with_prototypes([1.0, -1.0]);
        let probability = |values| types.request_probabilities(&quantised(values))[0];
        // At a cosine of 1, a prototype counts exp(6 · .35) = 8.17; at a cosine of 0, exp(-6 · .65) = .02.
        for (request, logit) in [
            ([1.0, 0.0, 0.0, 0.0], 7.15),
            ([0.0, 1.0, 0.0, 0.0], -9.15),
            ([0.0, 0.0, 1.0, 0.0], -1.0),
            ([0.0, 0.0, 0.0, 1.0], 0.0),
        ] {
            let expected = 1.0 / (1.0 + f32::exp(-logit));
            assert!((probability(request) - expected).abs() < 0.01, "{request:?}");
        }
    }

    #[test]
    fn weights_that_overflow_give_a_probability() {
        for weights in [[f32::MAX, f32::MAX], [f32::MAX, f32::MIN], [f32::MIN, f32::MIN]] {
            for request in [[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]] {
                let found = with_prototypes(weights).request_probabilities(&quantised(request));
                assert!((0.0..=1.0).contains(&found[0]), "{weights:?}: {found:?}");
            }
        }
    }
}
