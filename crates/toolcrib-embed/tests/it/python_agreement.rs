//! Tests that Rust and Python split texts into the same pieces, because the table is trained in Python and used in
//! Rust.
//!
//! `training/golden.py` writes the test cases, with the same module that the training uses.

use serde::Deserialize;
use toolcrib_embed::EmbeddedField;

use crate::table_builder;

#[derive(Deserialize)]
struct Case {
    text: String,
    pieces: Vec<String>,
}

/// The names of one tool's parameters, and the pieces into which Python splits them.
#[derive(Deserialize)]
struct Names {
    names: Vec<String>,
    pieces: Vec<String>,
}

fn entries() -> Vec<&'static str> {
    include_str!("../golden/vocabulary.txt").lines().collect()
}

fn cases<T: for<'a> Deserialize<'a>>(lines: &str) -> Vec<T> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn rust_and_python_split_text_into_the_same_pieces() {
    let entries: Vec<table_builder::Entry<'_>> =
        entries().into_iter().map(|entry| (entry, 1.0, &[1][..])).collect();
    let model = table_builder::model([1.0; 6], &entries);
    let cases: Vec<Case> = cases(include_str!("../golden/pieces.jsonl"));
    assert!(cases.len() > 400, "{} cases", cases.len());
    for Case { text, pieces } in cases {
        assert_eq!(model.pieces(&text), pieces, "{text:?}");
    }
}

/// The vectors of the entries are orthogonal, so each component of a tool's vector shows how often one piece occurs.
#[test]
fn rust_and_python_split_a_field_with_several_texts_into_the_same_pieces() {
    let entries = entries();
    let unit = |own: usize| (0..entries.len()).map(|at| i8::from(at == own)).collect();
    let units: Vec<Vec<i8>> = (0..entries.len()).map(unit).collect();
    let rows: Vec<table_builder::Entry<'_>> =
        entries.iter().zip(&units).map(|(entry, unit)| (*entry, 1.0, &unit[..])).collect();
    let model = table_builder::model([1.0; 6], &rows);
    for Names { names, pieces } in cases(include_str!("../golden/fields.jsonl")) {
        let texts: Vec<(EmbeddedField, &str)> =
            names.iter().map(|name| (EmbeddedField::ParameterNames, name.as_str())).collect();
        let vector = model.embed_fields(&texts);
        let count = |entry: &&str| pieces.iter().filter(|piece| piece == entry).count() as f32;
        let counts: Vec<f32> = entries.iter().map(count).collect();
        let length = counts.iter().map(|count| count * count).sum::<f32>().sqrt();
        let off = vector.values().iter().zip(&counts).any(|(a, b)| (a - b / length).abs() > 1e-5);
        assert!(!off, "{names:?} is not split into {pieces:?}");
    }
}
