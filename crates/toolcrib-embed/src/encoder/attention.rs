//! Self-attention: how much each token takes from the values of each other token.
//!
//! Keys and values are rearranged into panels of 16 columns, so that the products of four queries and a panel stay in
//! registers. Each sum runs over its terms in order, so it does not depend on the width of the registers.

#![expect(clippy::inline_always, reason = "compiled once for each set of CPU features")]

use super::float::{exp, largest, sum};
use super::weights_file::HEAD_UNIT as PANEL;
use crate::simd::vector_loop::VectorLoop;

/// Number of queries that are handled together.
const ROWS: usize = 4;

/// Buffers that are reused for every head and layer.
#[derive(Default)]
pub(super) struct AttentionBuffers {
    /// For each panel of tokens, one row per dimension of the head.
    keys: Vec<[f32; PANEL]>,
    /// For each panel of dimensions, one row per token.
    values: Vec<[f32; PANEL]>,
    /// The attention of four queries to each token, padded to full panels.
    scores: [Vec<f32>; ROWS],
}

/// The attention of all heads.
pub(super) struct Attend<'a> {
    /// For each token, its query, key and value; each of them has the dimensions of all heads, one head after
    /// another.
    pub(super) inputs: &'a [f32],
    /// Total number of dimensions of the heads.
    pub(super) hidden: usize,
    pub(super) heads: usize,
    pub(super) buffers: &'a mut AttentionBuffers,
    /// Receives one row of `hidden` components per token.
    pub(super) out: &'a mut [f32],
}

impl VectorLoop for Attend<'_> {
    #[inline(always)]
    fn run(self) {
        let Self { inputs, hidden, heads, buffers, out } = self;
        let AttentionBuffers { keys, values, scores } = buffers;
        let tokens = inputs.len() / (3 * hidden);
        let dims = hidden / heads;
        let factor = 1.0 / (dims as f32).sqrt();
        let token_panels = tokens.div_ceil(PANEL);
        keys.resize(token_panels * dims, [0.0; PANEL]);
        values.resize(tokens * (dims / PANEL), [0.0; PANEL]);
        for scores in scores.iter_mut() {
            scores.resize(token_panels * PANEL, 0.0);
        }
        for head in 0..heads {
            for (token, row) in inputs.chunks_exact(3 * hidden).enumerate() {
                let keys = &mut keys[token / PANEL * dims..][..dims];
                for (column, key) in keys.iter_mut().zip(&row[hidden + head * dims..]) {
                    column[token % PANEL] = *key;
                }
                let row = &row[2 * hidden + head * dims..][..dims];
                for (panel, row) in row.as_chunks().0.iter().enumerate() {
                    values[panel * tokens + token] = *row;
                }
            }
            for first in (0..tokens).step_by(ROWS) {
                // The last group may be incomplete. Then the last token is computed more than once.
                let group: [usize; ROWS] = std::array::from_fn(|at| (first + at).min(tokens - 1));
                let queries =
                    group.map(|token| &inputs[token * 3 * hidden + head * dims..][..dims]);
                for (panel, keys) in keys.chunks_exact(dims).enumerate() {
                    for (sums, scores) in tile(queries, keys).iter().zip(scores.iter_mut()) {
                        scores[panel * PANEL..][..PANEL].copy_from_slice(sums);
                    }
                }
                let mut totals = [0.0; ROWS];
                for (scores, total) in scores.iter_mut().zip(&mut totals) {
                    *total = exponentiate(scores, tokens, factor);
                }
                for (panel, values) in values.chunks_exact(tokens).enumerate() {
                    let scores = std::array::from_fn(|at| &scores[at][..tokens]);
                    for ((sums, token), total) in tile(scores, values).iter().zip(group).zip(totals)
                    {
                        let out = &mut out[token * hidden + head * dims + panel * PANEL..][..PANEL];
                        for (out, sum) in out.iter_mut().zip(sums) {
                            *out = sum / total;
                        }
                    }
                }
            }
        }
    }
}

/// Returns the products of four rows and a panel.
#[inline(always)]
fn tile(rows: [&[f32]; ROWS], panel: &[[f32; PANEL]]) -> [[f32; PANEL]; ROWS] {
    let mut sums = [[0.0; PANEL]; ROWS];
    let rows = rows.map(|row| &row[..panel.len()]);
    for (at, columns) in panel.iter().enumerate() {
        for (sums, row) in sums.iter_mut().zip(&rows) {
            let factor = row[at];
            for (sum, column) in sums.iter_mut().zip(columns) {
                *sum += factor * column;
            }
        }
    }
    sums
}

/// Replaces each score by its exponential, relative to the largest one, and returns their sum. The padding after the
/// scores of the tokens becomes so small that it does not change the sum.
#[inline(always)]
fn exponentiate(scores: &mut [f32], tokens: usize, factor: f32) -> f32 {
    scores[tokens..].fill(f32::MIN);
    let largest = largest(scores, |score| score);
    for score in scores.iter_mut() {
        *score = exp((*score - largest) * factor);
    }
    sum(scores, |score| score)
}
