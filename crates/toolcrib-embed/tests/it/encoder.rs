//! Tests that the encoder with its int8 weights agrees with the original model in single precision.
//!
//! `training/golden_encoder.py` writes the test cases. They belong to one file of weights, whose id they contain.

use std::sync::LazyLock;

use serde::Deserialize;
use toolcrib_embed::{Encoder, Vector};

const WEIGHTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../toolcrib/weights/encoder.bin");
/// Maximum difference of a component. The weights have 8 bits, and one component of 384 is 0.05 on average.
const TOLERANCE: f32 = 0.02;

#[derive(Deserialize)]
struct Golden {
    id: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    text: String,
    max_tokens: usize,
    /// The tokens of the text, without the two special ones.
    ids: Vec<u32>,
    /// The first components of the vector.
    vector: Vec<f32>,
    parts: Vec<Part>,
}

#[derive(Deserialize)]
struct Part {
    start: usize,
    end: usize,
    vector: Option<Vec<f32>>,
}

static ENCODER: LazyLock<Encoder> = LazyLock::new(|| {
    let weights = std::fs::read(WEIGHTS).unwrap_or_else(|error| panic!("{WEIGHTS}: {error}"));
    Encoder::parse(weights.into()).unwrap()
});

fn golden() -> Golden {
    serde_json::from_str(include_str!("../golden/encoder.json")).unwrap()
}

/// Whether the first components of a vector are `expected`, except for the errors of int8 weights.
fn begins_with(vector: &Vector, expected: &[f32]) -> bool {
    vector.values().iter().zip(expected).all(|(a, b)| (a - b).abs() < TOLERANCE)
}

#[test]
fn the_test_cases_belong_to_the_weights() {
    let id = format!("{:032x}", u128::from_be_bytes(*ENCODER.id()));
    assert_eq!(golden().id, id, "run `training/golden_encoder.py` after a change of the weights");
}

#[test]
fn texts_have_the_same_tokens_as_in_the_original_model() {
    for Case { text, max_tokens, ids, .. } in golden().cases {
        let tokens = ENCODER.tokens(&text, max_tokens);
        let found: Vec<u32> = tokens.iter().map(|token| token.id).collect();
        assert_eq!(found, ids, "{text:?}");
    }
}

#[test]
fn vectors_of_texts_and_parts_are_near_those_of_the_original_model() {
    for Case { text, max_tokens, ids, vector, parts } in golden().cases {
        let ranges: Vec<_> = parts.iter().map(|part| part.start..part.end).collect();
        let encoded = ENCODER.embed(&text, max_tokens, &ranges);
        assert_eq!(encoded.tokens, ids.len() + 2);
        assert!(begins_with(&encoded.whole, &vector), "{text:?}: {:?}", encoded.whole);
        for (found, part) in encoded.parts.iter().zip(parts) {
            let text = &text[part.start..part.end];
            match (found, part.vector) {
                (Some(found), Some(vector)) => {
                    assert!(begins_with(found, &vector), "{text:?}: {found:?}, not {vector:?}");
                }
                (found, expected) => assert_eq!(found.is_some(), expected.is_some(), "{text:?}"),
            }
        }
    }
}

#[test]
fn every_kernel_gives_the_same_bits() {
    for Case { text, max_tokens, .. } in golden().cases.into_iter().step_by(5) {
        let expected = ENCODER.embed(&text, max_tokens, &[]);
        for (kernel, encoder) in ENCODER.with_each_kernel() {
            assert_eq!(encoder.embed(&text, max_tokens, &[]), expected, "{kernel}");
        }
    }
}
