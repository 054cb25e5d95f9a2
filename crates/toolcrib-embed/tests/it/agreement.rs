//! The table is trained in Python and used in Rust: both must read a text as the same pieces.
//!
//! `training/golden.py` writes the cases with the module that the training uses.

use serde::Deserialize;
use toolcrib_embed::Field;

use crate::table;

#[derive(Deserialize)]
struct Case {
    text: String,
    pieces: Vec<String>,
}

/// The names of one tool's parameters.
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
fn rust_and_python_read_the_same_pieces() {
    let entries: Vec<table::Entry<'_>> =
        entries().into_iter().map(|entry| (entry, 1.0, &[1][..])).collect();
    let model = table::model([1.0; 6], &entries);
    let cases: Vec<Case> = cases(include_str!("../golden/pieces.jsonl"));
    assert!(cases.len() > 400, "{} cases", cases.len());
    for Case { text, pieces } in cases {
        assert_eq!(model.pieces(&text), pieces, "{text:?}");
    }
}

/// Each entry points its own way, so a tool's vector says how often each piece was read.
#[test]
fn rust_and_python_read_the_same_pieces_of_a_field_with_several_texts() {
    let entries = entries();
    let own_way = |own: usize| (0..entries.len()).map(|at| i8::from(at == own)).collect();
    let ways: Vec<Vec<i8>> = (0..entries.len()).map(own_way).collect();
    let rows: Vec<table::Entry<'_>> =
        entries.iter().zip(&ways).map(|(entry, way)| (*entry, 1.0, &way[..])).collect();
    let model = table::model([1.0; 6], &rows);
    for Names { names, pieces } in cases(include_str!("../golden/fields.jsonl")) {
        let texts: Vec<(Field, &str)> =
            names.iter().map(|name| (Field::ParameterNames, name.as_str())).collect();
        let vector = model.embed_fields(&texts);
        let count = |entry: &&str| pieces.iter().filter(|piece| piece == entry).count() as f32;
        let counts: Vec<f32> = entries.iter().map(count).collect();
        let length = counts.iter().map(|count| count * count).sum::<f32>().sqrt();
        let off = vector.values().iter().zip(&counts).any(|(a, b)| (a - b / length).abs() > 1e-5);
        assert!(!off, "{names:?} is not read as {pieces:?}");
    }
}
