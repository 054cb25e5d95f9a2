//! The float parts of the encoder: layer normalisation, GELU, quantisation, and the exponential function.
//!
//! Only additions, multiplications, divisions, square roots and comparisons are used, in a fixed order and never
//! fused. IEEE 754 defines their results exactly, so the bits are equal on every machine. `f32::exp` and the like are
//! not used, because their results depend on the platform, and the compiler cannot vectorise them.
//!
//! All rows have a multiple of 16 components, which `weights_file` checks.

#![expect(clippy::inline_always, reason = "compiled once for each set of CPU features")]

use super::weights_file::LayerNorm;
use crate::simd::matrix::MAX_CODE;
use crate::simd::vector_loop::VectorLoop;

const LANES: usize = 8;
/// Added to the variance in layer normalisation, as in the original model.
const EPSILON: f32 = 1e-12;
/// 1.5 * 2^23. Adding it to a small float rounds the float to an integer, which is then in the lower bits of the sum.
/// The compiler vectorises this even for the baseline features, unlike `f32::round`.
const ROUNDING: f32 = 12_582_912.0;

/// Adds `update` to each row of `states`, if there is one, and normalises the row.
pub(super) struct Normalise<'a> {
    pub(super) states: &'a mut [f32],
    /// As long as `states`, or empty.
    pub(super) update: &'a [f32],
    pub(super) norm: &'a LayerNorm,
}

impl VectorLoop for Normalise<'_> {
    #[inline(always)]
    fn run(self) {
        for (state, update) in self.states.iter_mut().zip(self.update) {
            *state += update;
        }
        let LayerNorm { gains, biases } = self.norm;
        for row in self.states.chunks_exact_mut(gains.len()) {
            let count = row.len() as f32;
            let mean = sum(row, |value| value) / count;
            let variance = sum(row, |value| (value - mean) * (value - mean)) / count;
            let factor = 1.0 / (variance + EPSILON).sqrt();
            for ((value, gain), bias) in row.iter_mut().zip(gains).zip(biases) {
                *value = (*value - mean) * factor * gain + bias;
            }
        }
    }
}

/// Quantises rows of `width` components.
pub(super) struct Quantise<'a> {
    pub(super) values: &'a [f32],
    pub(super) width: usize,
    /// Receives two codes in each integer, the first in the lower half.
    pub(super) pairs: &'a mut [i32],
    /// Receives the scale of each row.
    pub(super) scales: &'a mut [f32],
}

impl VectorLoop for Quantise<'_> {
    #[inline(always)]
    fn run(self) {
        let rows = self.values.chunks_exact(self.width);
        let pairs = self.pairs.chunks_exact_mut(self.width / 2);
        for ((row, pairs), scale) in rows.zip(pairs).zip(self.scales) {
            let largest = largest(row, f32::abs);
            let steps = if largest > 0.0 { MAX_CODE as f32 / largest } else { 0.0 };
            *scale = largest / MAX_CODE as f32;
            for (pair, [a, b]) in pairs.iter_mut().zip(row.as_chunks().0) {
                *pair = code(a * steps) & 0xffff | code(b * steps) << 16;
            }
        }
    }
}

/// Rounds a value to the code of an activation. NaN, which only damaged weights can cause, becomes a code as well.
#[inline(always)]
fn code(value: f32) -> i32 {
    let limit = MAX_CODE as f32;
    let value = if value > -limit { value } else { -limit };
    let value = if value < limit { value } else { limit };
    ((value + ROUNDING).to_bits().cast_signed()).wrapping_sub(ROUNDING.to_bits().cast_signed())
}

/// Applies the activation function GELU to each value.
pub(super) struct Gelu<'a>(pub(super) &'a mut [f32]);

impl VectorLoop for Gelu<'_> {
    #[inline(always)]
    fn run(self) {
        for value in self.0 {
            *value = 0.5 * *value * (1.0 + erf(*value * std::f32::consts::FRAC_1_SQRT_2));
        }
    }
}

/// Returns the error function, with an absolute error below 5e-7. The rational approximation is that of Eigen.
#[inline(always)]
fn erf(x: f32) -> f32 {
    let x = if x > -4.0 { x } else { -4.0 };
    let x = if x < 4.0 { x } else { 4.0 };
    let square = x * x;
    let mut above = -2.726_142_3e-10 * square + 2.770_681_5e-8;
    above = above * square + -2.101_024e-6;
    above = above * square + -5.692_506_4e-5;
    above = above * square + -7.349_906_3e-4;
    above = above * square + -2.954_6e-3;
    above = above * square + -1.609_603_3e-2;
    let mut below = -1.456_607_2e-5 * square + -2.133_740_6e-4;
    below = below * square + -1.682_827e-3;
    below = below * square + -7.373_329e-3;
    below = below * square + -1.426_473_9e-2;
    x * above / below
}

/// Returns e to the power of `x`, with a relative error below 2e-7. Only for `x` up to 0; below -87, the result is
/// that of -87. The polynomial is that of Cephes.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    let x = if x > -87.0 { x } else { -87.0 };
    let rounded = x * std::f32::consts::LOG2_E + ROUNDING;
    let power = rounded - ROUNDING;
    // The natural logarithm of 2 in two parts, of which the first has few bits, so that the product is exact.
    let rest = x - power * 0.693_359_4 - power * -2.121_944_4e-4;
    let mut sum = 1.987_569_1e-4 * rest + 1.398_2e-3;
    sum = sum * rest + 8.333_452e-3;
    sum = sum * rest + 4.166_579_6e-2;
    sum = sum * rest + 1.666_666_5e-1;
    sum = sum * rest + 0.5;
    let mantissa = sum * rest * rest + rest + 1.0;
    mantissa * f32::from_bits(rounded.to_bits().wrapping_add(127) << 23)
}

/// Returns the sum of `map` of each value, in eight lanes in a fixed order.
#[inline(always)]
pub(super) fn sum(values: &[f32], map: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    for values in values.as_chunks::<LANES>().0 {
        for (lane, value) in lanes.iter_mut().zip(values) {
            *lane += map(*value);
        }
    }
    lanes.iter().sum()
}

/// Returns the largest `map` of any value.
#[inline(always)]
pub(super) fn largest(values: &[f32], map: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [f32::MIN; LANES];
    for values in values.as_chunks::<LANES>().0 {
        for (lane, value) in lanes.iter_mut().zip(values) {
            let value = map(*value);
            *lane = if value > *lane { value } else { *lane };
        }
    }
    lanes.into_iter().fold(f32::MIN, |a, b| if b > a { b } else { a })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_accurate() {
        for step in 0..=43_500_u16 {
            let x = -f32::from(step) / 500.0;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp(x)) - exact).abs() / exact;
            assert!(error < 2e-7, "exp({x}) is off by {error}");
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::MIN), exp(-87.0));
        assert_eq!(exp(f32::NAN), exp(-87.0));
    }

    #[test]
    fn erf_is_accurate() {
        // Values of the error function, from tables.
        let exact = [(0.0, 0.0), (0.1, 0.112_462_92), (0.5, 0.520_499_9), (1.0, 0.842_700_8)];
        for (x, exact) in exact.into_iter().chain([(1.5, 0.966_105_16), (2.0, 0.995_322_3)]) {
            assert!((erf(x) - exact).abs() < 5e-7, "erf({x}) = {}", erf(x));
            assert_eq!(erf(-x), -erf(x));
        }
        for x in [4.0, 5.0, f32::MAX, f32::INFINITY] {
            assert!((erf(x) - 1.0).abs() < 5e-7 && (erf(-x) + 1.0).abs() < 5e-7);
        }
    }

    #[test]
    fn the_largest_activation_gets_the_largest_code() {
        let mut values = [0.0; 16];
        values[..5].copy_from_slice(&[-2.0, 1.0, 2.0, 0.0, -0.5]);
        let (mut pairs, mut scales) = ([0; 8], [0.0]);
        Quantise { values: &values, width: 16, pairs: &mut pairs, scales: &mut scales }.run();
        let codes: Vec<i32> =
            pairs.iter().flat_map(|pair| [(pair << 16) >> 16, pair >> 16]).collect();
        assert_eq!(codes[..6], [-4095, 2048, 4095, 0, -1024, 0]);
        assert_eq!(scales, [2.0 / 4095.0]);
    }

    #[test]
    fn numbers_that_are_not_finite_give_codes_within_the_range() {
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
            assert!(code(value).abs() <= MAX_CODE);
        }
    }
}
