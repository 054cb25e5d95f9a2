//! What a text's vector is.

use std::f32::consts::FRAC_1_SQRT_2;

use toolcrib_embed::{Field, Model, Vector};

use crate::table;

/// East, north, twice as far north, and nowhere.
fn compass() -> Model {
    table::model(
        [1.0, 0.0, 2.0, 1.0, 1.0, 1.0],
        &[
            ("east", 0.5, &[2, 0, 0]),
            ("north", 1.0, &[0, 1, 0]),
            ("far", 0.02, &[0, 100, 0]),
            ("up", 0.0, &[0, 0, 127]),
            ("far north", 1.0, &[-4, 0, 0]),
        ],
    )
}

fn assert_near(vector: &Vector, values: [f32; 3]) {
    let off = vector.values().iter().zip(values).any(|(a, b)| (a - b).abs() > 1e-6);
    assert!(!off && vector.values().len() == 3, "{vector:?} is not {values:?}");
}

#[test]
fn a_query_is_the_sum_of_its_pieces_at_length_one() {
    let model = compass();
    assert_near(&model.embed("East"), [1.0, 0.0, 0.0]);
    assert_near(&model.embed("east, north!"), [FRAC_1_SQRT_2, FRAC_1_SQRT_2, 0.0]);
    assert_near(&model.embed("eastEastEastEast north far"), [0.8, 0.6, 0.0]);
    // The phrase is added to its words: three north, four west.
    assert_near(&model.embed("far north"), [-0.8, 0.6, 0.0]);
}

#[test]
fn what_the_table_does_not_know_says_nothing() {
    let model = compass();
    for text in ["", "  ", "?!", "west", "up", "搜索"] {
        assert!(model.embed(text).is_zero(), "{text}");
        assert!(model.embed_fields(&[(Field::Name, text)]).is_zero(), "{text}");
    }
    assert!(model.embed_fields(&[]).is_zero());
}

#[test]
fn a_field_counts_by_its_weight_and_the_root_of_its_length() {
    let model = compass();
    let (name, title, description) = (Field::Name, Field::Title, Field::Description);
    // Four times east over the root of four is two; the description's north counts twice.
    let vector = model.embed_fields(&[(name, "east east east east"), (description, "north")]);
    assert_near(&vector, [FRAC_1_SQRT_2, FRAC_1_SQRT_2, 0.0]);
    // A field without weight is not there.
    assert_near(&model.embed_fields(&[(title, "north"), (name, "east")]), [1.0, 0.0, 0.0]);
    assert!(model.embed_fields(&[(title, "north")]).is_zero());
}

#[test]
fn the_texts_of_one_field_are_one_text() {
    let model = compass();
    let apart = [(Field::Name, "east"), (Field::Description, "north"), (Field::Name, "east north")];
    let together = [(Field::Name, "east east north"), (Field::Description, "north")];
    assert_eq!(model.embed_fields(&apart), model.embed_fields(&together));
}

#[test]
fn a_query_is_its_first_64_pieces() {
    let model = compass();
    let long = |pieces| format!("{}north", "east ".repeat(pieces));
    assert_near(&model.embed(&long(64)), [1.0, 0.0, 0.0]);
    assert!(model.embed(&long(63)).values()[1] > 0.0);
}

#[test]
fn a_field_is_its_first_pieces() {
    let model = table::model([1.0; 6], &[("east", 1.0, &[1, 0]), ("north", 1.0, &[0, 1])]);
    let most = [
        (Field::Name, 32),
        (Field::Title, 32),
        (Field::Description, 192),
        (Field::ParameterNames, 96),
        (Field::ParameterDescriptions, 192),
        (Field::Server, 16),
    ];
    for (field, most) in most {
        let north = |pieces| {
            // Two texts of one field are one.
            let long = "east ".repeat(pieces);
            model.embed_fields(&[(field, long.as_str()), (field, "north")]).values()[1]
        };
        assert_eq!(north(most), 0.0, "{field:?}");
        assert!(north(most - 1) > 0.0, "{field:?}");
    }
}

#[test]
fn a_piece_weighs_otherwise_in_a_query_than_in_a_tool() {
    let mut file = table::bytes([1.0; 6], &[("east", 1.0, &[1, 0]), ("north", 1.0, &[0, 1])]);
    // The scale of `north` for tools, before the four codes.
    let at = file.len() - 8;
    file[at..at + 4].copy_from_slice(&0.0_f32.to_le_bytes());
    let model = table::parse(file).unwrap();
    assert_eq!(model.embed("north").values(), [0.0, 1.0]);
    let tool = model.embed_fields(&[(Field::Name, "east north")]);
    assert_eq!((tool.values()[0] > 0.99, tool.values()[1]), (true, 0.0));
}

#[test]
fn the_table_inside_tells_a_mail_from_a_database() {
    let model = Model::builtin();
    let mut rows = model.rows();
    for text in ["send an email message", "query a database table", "weather forecast"] {
        rows.push(&model.embed_fields(&[(Field::Description, text)]).quantised());
    }
    let mut cosines = Vec::new();
    for (query, nearest) in [("mail", 0), ("rows of a column", 1), ("rain and temperature", 2)] {
        rows.scan(&model.embed(query).quantised(), &mut cosines);
        let best = (0..3).max_by(|a, b| cosines[*a].total_cmp(&cosines[*b]));
        assert_eq!(best, Some(nearest), "{query}: {cosines:?}");
    }
}
