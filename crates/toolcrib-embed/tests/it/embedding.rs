//! Tests of how texts and tools are embedded.

use std::f32::consts::FRAC_1_SQRT_2;

use toolcrib_embed::{EmbeddedField, EmbeddingModel, Vector};

use crate::table_builder;

/// Returns a model in which `east` and `north` point in the directions that they name, `far` points north with length
/// 2, and `up` has length 0.
fn compass() -> EmbeddingModel {
    table_builder::model(
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
fn a_query_is_the_normalised_sum_of_its_pieces() {
    let model = compass();
    assert_near(&model.embed("East"), [1.0, 0.0, 0.0]);
    assert_near(&model.embed("east, north!"), [FRAC_1_SQRT_2, FRAC_1_SQRT_2, 0.0]);
    assert_near(&model.embed("eastEastEastEast north far"), [0.8, 0.6, 0.0]);
    // The vector of the phrase is added to those of its words. The sum is 3 north and 4 west.
    assert_near(&model.embed("far north"), [-0.8, 0.6, 0.0]);
}

#[test]
fn text_without_known_pieces_gives_the_zero_vector() {
    let model = compass();
    for text in ["", "  ", "?!", "west", "up", "搜索"] {
        assert!(model.embed(text).is_zero(), "{text}");
        assert!(model.embed_fields(&[(EmbeddedField::Name, text)]).is_zero(), "{text}");
    }
    assert!(model.embed_fields(&[]).is_zero());
}

#[test]
fn a_field_is_scaled_by_its_weight_and_the_square_root_of_its_length() {
    let model = compass();
    let (name, title, description) =
        (EmbeddedField::Name, EmbeddedField::Title, EmbeddedField::Description);
    // In the name, four times `east` divided by the square root of four is 2. In the description, one `north` times the
    // weight 2 is also 2.
    let vector = model.embed_fields(&[(name, "east east east east"), (description, "north")]);
    assert_near(&vector, [FRAC_1_SQRT_2, FRAC_1_SQRT_2, 0.0]);
    // A field with weight 0 is ignored.
    assert_near(&model.embed_fields(&[(title, "north"), (name, "east")]), [1.0, 0.0, 0.0]);
    assert!(model.embed_fields(&[(title, "north")]).is_zero());
}

#[test]
fn several_texts_of_a_field_count_as_one_text() {
    let model = compass();
    let apart = [
        (EmbeddedField::Name, "east"),
        (EmbeddedField::Description, "north"),
        (EmbeddedField::Name, "east north"),
    ];
    let together =
        [(EmbeddedField::Name, "east east north"), (EmbeddedField::Description, "north")];
    assert_eq!(model.embed_fields(&apart), model.embed_fields(&together));
}

#[test]
fn only_the_first_64_pieces_of_a_query_count() {
    let model = compass();
    let long = |pieces| format!("{}north", "east ".repeat(pieces));
    assert_near(&model.embed(&long(64)), [1.0, 0.0, 0.0]);
    assert!(model.embed(&long(63)).values()[1] > 0.0);
}

#[test]
fn only_the_first_pieces_of_a_field_count() {
    let model = table_builder::model([1.0; 6], &[("east", 1.0, &[1, 0]), ("north", 1.0, &[0, 1])]);
    let max_pieces = [
        (EmbeddedField::Name, 32),
        (EmbeddedField::Title, 32),
        (EmbeddedField::Description, 192),
        (EmbeddedField::ParameterNames, 96),
        (EmbeddedField::ParameterDescriptions, 192),
        (EmbeddedField::Server, 16),
    ];
    for (field, max_pieces) in max_pieces {
        let north = |pieces| {
            // The two texts of the field count as one text, so `north` is its last piece.
            let long = "east ".repeat(pieces);
            model.embed_fields(&[(field, long.as_str()), (field, "north")]).values()[1]
        };
        assert_eq!(north(max_pieces), 0.0, "{field:?}");
        assert!(north(max_pieces - 1) > 0.0, "{field:?}");
    }
}

#[test]
fn a_piece_can_have_different_weights_in_queries_and_tools() {
    let mut file =
        table_builder::bytes([1.0; 6], &[("east", 1.0, &[1, 0]), ("north", 1.0, &[0, 1])]);
    // The scale of `north` for tools is the last number before the four codes.
    let at = file.len() - 8;
    file[at..at + 4].copy_from_slice(&0.0_f32.to_le_bytes());
    let model = table_builder::parse(file).unwrap();
    assert_eq!(model.embed("north").values(), [0.0, 1.0]);
    let tool = model.embed_fields(&[(EmbeddedField::Name, "east north")]);
    assert_eq!((tool.values()[0] > 0.99, tool.values()[1]), (true, 0.0));
}

#[test]
fn the_built_in_table_distinguishes_mail_databases_and_weather() {
    let model = EmbeddingModel::builtin();
    let mut index = model.new_index();
    for text in ["send an email message", "query a database table", "weather forecast"] {
        index.push(&model.embed_fields(&[(EmbeddedField::Description, text)]).quantised());
    }
    let mut cosines = Vec::new();
    for (query, nearest) in [("mail", 0), ("rows of a column", 1), ("rain and temperature", 2)] {
        index.scan(&model.embed(query).quantised(), &mut cosines);
        let best = (0..3).max_by(|a, b| cosines[*a].total_cmp(&cosines[*b]));
        assert_eq!(best, Some(nearest), "{query}: {cosines:?}");
    }
}
