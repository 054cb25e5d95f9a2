//! The pass through the layers: token ids in, the final state of each token out.
//!
//! States are floats. Before each matrix they are quantised, one scale per token, because the products with int8
//! weights are sums of integers. All buffers are allocated once per text and reused in every layer.

use super::Encoder;
use super::attention::{Attend, AttentionBuffers};
use super::float::{Gelu, Normalise, Quantise};
use super::weights_file::{Matrix, Shape};
use crate::simd::matrix::QuantisedRows;

/// Buffers for quantised activations.
struct QuantisedBuffers {
    pairs: Vec<i32>,
    scales: Vec<f32>,
}

impl Encoder {
    /// Returns the final states of the tokens, one row per token. There must be at least one token, and at most as
    /// many as the model has positions.
    pub(super) fn final_states(&self, ids: &[u32]) -> Vec<f32> {
        let Shape { hidden, heads, ffn, .. } = self.weights.shape;
        let tokens = ids.len();
        let mut states = self.embedding_states(ids);
        let mut attention_input = vec![0.0; tokens * 3 * hidden];
        let mut ffn_states = vec![0.0; tokens * ffn];
        let mut attended = vec![0.0; tokens * hidden];
        let mut update = vec![0.0; tokens * hidden];
        let pairs = vec![0; tokens * hidden.max(ffn) / 2];
        let mut quantised = QuantisedBuffers { pairs, scales: vec![0.0; tokens] };
        let mut buffers = AttentionBuffers::default();
        for layer in &self.weights.layers {
            self.multiply(&layer.attention_input, &states, &mut quantised, &mut attention_input);
            self.kernel.run(Attend {
                inputs: &attention_input,
                hidden,
                heads,
                buffers: &mut buffers,
                out: &mut attended,
            });
            self.multiply(&layer.attention_output, &attended, &mut quantised, &mut update);
            let norm = &layer.attention_norm;
            self.kernel.run(Normalise { states: &mut states, update: &update, norm });
            self.multiply(&layer.ffn_input, &states, &mut quantised, &mut ffn_states);
            self.kernel.run(Gelu(&mut ffn_states));
            self.multiply(&layer.ffn_output, &ffn_states, &mut quantised, &mut update);
            let norm = &layer.ffn_norm;
            self.kernel.run(Normalise { states: &mut states, update: &update, norm });
        }
        states
    }

    /// Returns the states before the first layer: for each token the sum of its word and position embeddings,
    /// normalised.
    fn embedding_states(&self, ids: &[u32]) -> Vec<f32> {
        let weights = &self.weights;
        let hidden = weights.shape.hidden;
        let mut states = weights.positions[..ids.len() * hidden].to_vec();
        for (state, id) in states.chunks_exact_mut(hidden).zip(ids) {
            self.kernel.add(state, weights.word(*id), weights.word_scales[*id as usize]);
        }
        let norm = &weights.embedding_norm;
        self.kernel.run(Normalise { states: &mut states, update: &[], norm });
        states
    }

    /// Quantises `values` and writes the products with the matrix into `out`.
    fn multiply(
        &self,
        matrix: &Matrix,
        values: &[f32],
        quantised: &mut QuantisedBuffers,
        out: &mut [f32],
    ) {
        let scales = &mut quantised.scales[..];
        let pairs = &mut quantised.pairs[..values.len() / 2];
        let width = values.len() / scales.len();
        self.kernel.run(Quantise { values, width, pairs, scales });
        self.kernel.multiply(self.weights.matrix(matrix), QuantisedRows { pairs, scales }, out);
    }
}
