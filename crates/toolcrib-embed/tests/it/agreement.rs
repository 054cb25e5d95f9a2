//! The table is trained in Python and used in Rust: both must read a text as the same pieces.
//!
//! `training/golden.py` writes the cases with the module that the training uses.

use serde::Deserialize;

use crate::table;

#[derive(Deserialize)]
struct Case {
    text: String,
    pieces: Vec<String>,
}

#[test]
fn rust_and_python_read_the_same_pieces() {
    let entries: Vec<table::Entry<'_>> = include_str!("../golden/vocabulary.txt")
        .lines()
        .map(|entry| (entry, 1.0, &[1][..]))
        .collect();
    let model = table::model([1.0; 6], &entries);
    let cases: Vec<Case> = include_str!("../golden/pieces.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(cases.len() > 400, "{} cases", cases.len());
    for Case { text, pieces } in cases {
        assert_eq!(model.pieces(&text), pieces, "{text:?}");
    }
}
