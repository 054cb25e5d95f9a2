//! Texts and tables from strangers: nothing panics, and nothing but a direction comes out.

use proptest::prelude::*;
use toolcrib_embed::{Error, Field, Model, Vector};

use crate::table;

fn is_direction(vector: &Vector) -> bool {
    vector.is_zero() || (vector.dot(vector) - 1.0).abs() < 1e-4
}

/// Words that the table knows, and anything else.
fn text() -> impl Strategy<Value = String> {
    let known = prop_oneof![Just("send"), Just("Message"), Just("pull_request"), Just("listFiles")];
    let part = prop_oneof![known.prop_map(str::to_owned), any::<String>(), "\\PC{0,8}"];
    proptest::collection::vec(part, 0..12).prop_map(|parts| parts.join(" "))
}

fn small() -> Vec<u8> {
    let entries: [table::Entry<'_>; 3] =
        [("send", 0.1, &[1, 2, 3]), ("##s", 0.2, &[-1, 0, 1]), ("pull request", 0.3, &[0, 9, 9])];
    table::bytes([1.0; 6], &entries)
}

proptest! {
    #[test]
    fn any_text_is_a_direction_or_nothing(texts in proptest::collection::vec(text(), 1..6)) {
        let model = Model::builtin();
        prop_assert!(is_direction(&model.embed(&texts[0])));
        let fields: Vec<(Field, &str)> =
            Field::ALL.into_iter().cycle().zip(texts.iter().map(String::as_str)).collect();
        prop_assert!(is_direction(&model.embed_fields(&fields)));
    }

    #[test]
    fn a_damaged_table_is_refused_or_works(
        at in 0..small().len(),
        damage in proptest::collection::vec(any::<u8>(), 1..9),
    ) {
        let mut file = small();
        for (byte, damage) in file[at..].iter_mut().zip(damage) {
            *byte = damage;
        }
        if let Ok(model) = table::parse(file) {
            prop_assert!(is_direction(&model.embed("sends a pull request")));
            let fields = [(Field::Name, "sends"), (Field::Server, "pull request")];
            prop_assert!(is_direction(&model.embed_fields(&fields)));
        }
    }

    #[test]
    fn bytes_that_are_no_table_are_refused(bytes in any::<Vec<u8>>()) {
        prop_assert_eq!(table::parse(bytes).unwrap_err(), Error::NotATable);
    }
}

#[test]
fn numbers_beyond_measure_are_no_direction() {
    let far = table::model([1.0; 6], &[("far", f32::MAX, &[127, -127]), ("near", 1e-30, &[1, 1])]);
    assert!(far.embed("far").is_zero());
    assert!(far.embed("far far near").is_zero());
    assert!(far.embed("near").is_zero());
    assert!(far.embed_fields(&[(Field::Name, "far"), (Field::Title, "far")]).is_zero());
}

#[test]
fn a_refusal_says_what_to_do() {
    let mut cut = small();
    cut.pop();
    let error = table::parse(cut).unwrap_err();
    assert_eq!(error.to_string(), "the table ends inside its rows: 102 bytes needed, 101 found");
    assert_eq!(error.hint(), "the file is damaged: copy or write it again");
}
