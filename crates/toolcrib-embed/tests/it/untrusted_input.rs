//! Property tests of untrusted texts and tables: nothing panics, and every vector has length 1 or is zero.

use proptest::prelude::*;
use toolcrib_embed::{EmbeddedField, EmbeddingModel, Error, Vector};

use crate::table_builder;

fn is_normalised(vector: &Vector) -> bool {
    vector.is_zero() || (vector.dot(vector) - 1.0).abs() < 1e-4
}

/// Generates words that the table has, mixed with arbitrary text.
fn text() -> impl Strategy<Value = String> {
    let known = prop_oneof![Just("send"), Just("Message"), Just("pull_request"), Just("listFiles")];
    let part = prop_oneof![known.prop_map(str::to_owned), any::<String>(), "\\PC{0,8}"];
    proptest::collection::vec(part, 0..12).prop_map(|parts| parts.join(" "))
}

fn small_table() -> Vec<u8> {
    let entries: [table_builder::Entry<'_>; 3] =
        [("send", 0.1, &[1, 2, 3]), ("##s", 0.2, &[-1, 0, 1]), ("pull request", 0.3, &[0, 9, 9])];
    table_builder::bytes([1.0; 6], &entries)
}

proptest! {
    #[test]
    fn the_vector_of_any_text_has_length_one_or_is_zero(texts in proptest::collection::vec(text(), 1..6)) {
        let model = EmbeddingModel::builtin();
        prop_assert!(is_normalised(&model.embed(&texts[0])));
        let fields: Vec<(EmbeddedField, &str)> =
            EmbeddedField::ALL.into_iter().cycle().zip(texts.iter().map(String::as_str)).collect();
        prop_assert!(is_normalised(&model.embed_fields(&fields)));
    }

    #[test]
    fn a_damaged_table_is_rejected_or_works(
        at in 0..small_table().len(),
        damage in proptest::collection::vec(any::<u8>(), 1..9),
    ) {
        let mut file = small_table();
        for (byte, damage) in file[at..].iter_mut().zip(damage) {
            *byte = damage;
        }
        if let Ok(model) = table_builder::parse(file) {
            prop_assert!(is_normalised(&model.embed("sends a pull request")));
            let fields = [(EmbeddedField::Name, "sends"), (EmbeddedField::Server, "pull request")];
            prop_assert!(is_normalised(&model.embed_fields(&fields)));
        }
    }

    #[test]
    fn bytes_without_the_magic_are_rejected(bytes in any::<Vec<u8>>()) {
        prop_assert_eq!(table_builder::parse(bytes).unwrap_err(), Error::NotATable);
    }
}

#[test]
fn numbers_that_overflow_or_underflow_give_the_zero_vector() {
    let far = table_builder::model(
        [1.0; 6],
        &[("far", f32::MAX, &[127, -127]), ("near", 1e-30, &[1, 1])],
    );
    assert!(far.embed("far").is_zero());
    assert!(far.embed("far far near").is_zero());
    assert!(far.embed("near").is_zero());
    assert!(
        far.embed_fields(&[(EmbeddedField::Name, "far"), (EmbeddedField::Title, "far")]).is_zero()
    );
}

#[test]
fn an_error_has_a_hint() {
    let mut cut = small_table();
    cut.pop();
    let error = table_builder::parse(cut).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the table is truncated in its rows: 102 bytes needed, 101 found"
    );
    assert_eq!(
        error.hint(),
        "the file is damaged: copy it again or write it again with `training/`"
    );
}
