//! Tests of reading published tables. The tables in these tests are small and written by hand.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use toolcrib_embed::{EmbeddedField, EmbeddingModel};
use toolcrib_model2vec::Error;

/// A tensor that a test puts into a file.
struct Tensor<'a> {
    name: &'a str,
    kind: &'a str,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

fn floats<'a>(name: &'a str, shape: &[usize], values: &[f32]) -> Tensor<'a> {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Tensor { name, kind: "F32", shape: shape.to_vec(), bytes }
}

fn mapping(rows: &[i64]) -> Tensor<'static> {
    let bytes = rows.iter().flat_map(|row| row.to_le_bytes()).collect();
    Tensor { name: "mapping", kind: "I64", shape: vec![rows.len()], bytes }
}

/// Returns a safetensors file, which consists of the length of the header, the header, and the numbers.
fn safetensors(tensors: &[Tensor<'_>]) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut data: Vec<u8> = Vec::new();
    for Tensor { name, kind, shape, bytes } in tensors {
        let offsets = [data.len(), data.len() + bytes.len()];
        let entry = json!({"dtype": kind, "shape": shape, "data_offsets": offsets});
        header.insert((*name).to_owned(), entry);
        data.extend(bytes);
    }
    let header = Value::from(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

/// Returns a BERT tokenizer with five pieces. It truncates and pads to 2 tokens, as `MiniLM`'s tokenizer does to 128.
fn tokenizer() -> Value {
    json!({
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 2}, "direction": "Right", "pad_to_multiple_of": null,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
        "added_tokens": [],
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": null,
        "decoder": null,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {"[PAD]": 0, "[UNK]": 1, "east": 2, "north": 3, "##s": 4}}
    })
}

/// The vectors of the five tokens. Only the unknown token has a third component.
const COMPASS: [f32; 15] =
    [0.0, 0.0, 0.0, 0.0, 0.0, 9.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0];

fn compass() -> Tensor<'static> {
    floats("embeddings", &[5, 3], &COMPASS)
}

fn read(tensors: &[Tensor<'_>]) -> Result<EmbeddingModel, Error> {
    toolcrib_model2vec::read(tokenizer().to_string().as_bytes(), &safetensors(tensors))
}

fn assert_embeds(model: &EmbeddingModel, text: &str, values: [f32; 3]) {
    let vector = model.embed(text);
    let off = vector.values().iter().zip(values).any(|(a, b)| (a - b).abs() > 0.01);
    assert!(!off && vector.values().len() == 3, "{text}: {vector:?} is not {values:?}");
}

#[test]
fn text_is_not_truncated_and_unknown_tokens_are_skipped() {
    let model = read(&[compass()]).unwrap();
    assert_eq!(model.dims(), 3);
    assert_eq!(model.pieces("Easts, west north"), ["east", "##s", "north"]);
    assert_eq!(model.pieces("east"), ["east"]);
    assert_embeds(&model, "east east west east east north north north", [0.8, 0.6, 0.0]);
    assert_embeds(&model, "", [0.0; 3]);
    assert_embeds(&model, "west", [0.0; 3]);
}

#[test]
fn identifiers_are_converted_to_prose() {
    let mut at_blanks = tokenizer();
    at_blanks["pre_tokenizer"] = json!({"type": "WhitespaceSplit"});
    let tokenizer = at_blanks.to_string();
    let model = toolcrib_model2vec::read(tokenizer.as_bytes(), &safetensors(&[compass()])).unwrap();
    assert_eq!(model.pieces("eastNorth_east"), ["east", "north", "east"]);
    let fields = [(EmbeddedField::Name, "eastEast"), (EmbeddedField::Description, "east")];
    assert!((model.embed_fields(&fields).dot(&model.embed("east")) - 1.0).abs() < 1e-3);
}

#[test]
fn only_the_first_64_pieces_of_a_query_count() {
    let model = read(&[compass()]).unwrap();
    assert_eq!(model.pieces(&"east ".repeat(600)).len(), 512);
    assert_embeds(&model, &format!("{}north", "east ".repeat(64)), [1.0, 0.0, 0.0]);
}

#[test]
fn tokens_can_share_rows_and_have_weights() {
    let weights = [1.0_f64, 1.0, 2.0, 3.0, 0.0].iter().flat_map(|w| w.to_le_bytes()).collect();
    let weights = Tensor { name: "weights", kind: "F64", shape: vec![5], bytes: weights };
    let rows = [0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0, 0.0];
    let model =
        read(&[floats("embeddings", &[3, 3], &rows), mapping(&[0, 0, 1, 2, 1]), weights]).unwrap();
    assert_embeds(&model, "easts north", [0.8, 0.6, 0.0]);
}

#[test]
fn every_number_type_is_supported() {
    let half = |one: u16| {
        let north =
            COMPASS.iter().flat_map(|value| if *value > 0.0 { one } else { 0 }.to_le_bytes());
        north.collect::<Vec<u8>>()
    };
    let byte = COMPASS.iter().map(|value| u8::from(*value > 0.0)).collect();
    for (kind, bytes) in [("F16", half(0x3c00)), ("BF16", half(0x3f80)), ("I8", byte)] {
        // WordLlama uses this name for the tensor.
        let table = Tensor { name: "embedding.weight", kind, shape: vec![5, 3], bytes };
        assert_embeds(&read(&[table]).unwrap(), "north", [0.0, 1.0, 0.0]);
    }
}

#[test]
fn an_error_names_the_file_and_the_problem() {
    let table = || [compass()];
    let error_for = |tokenizer: &Value, tensors: &[Tensor<'_>]| {
        let file = safetensors(tensors);
        toolcrib_model2vec::read(tokenizer.to_string().as_bytes(), &file).unwrap_err().to_string()
    };
    let whole = tokenizer();
    let mut without_unknown = tokenizer();
    without_unknown["model"]["vocab"] = json!({"east": 0});
    let mut too_many = tokenizer();
    too_many["model"]["vocab"]["##th"] = json!(5);
    assert_eq!(
        error_for(&too_many, &table()),
        "`tokenizer.json`: token 5 has no row: `model.safetensors` has 5 tokens"
    );
    for broken in [json!({}), json!([]), without_unknown] {
        let problem = error_for(&broken, &table());
        assert!(problem.starts_with("`tokenizer.json`: "), "{problem}");
    }
    let tensors: [(&[Tensor<'_>], &str); 8] = [
        (
            &[floats("table", &[1], &[1.0]), floats("more", &[1], &[1.0])],
            "no tensor `embeddings` or `embedding.weight` among `more`, `table`",
        ),
        (
            &[floats("embeddings", &[15], &COMPASS)],
            "the table has shape [15], but two dimensions are needed",
        ),
        (&[floats("embeddings", &[0, 3], &[])], "the table is empty: 0 rows of 3 numbers"),
        (
            &[Tensor { name: "embeddings", kind: "I64", shape: vec![1, 1], bytes: vec![0; 8] }],
            "`embeddings` has type I64, not F32, F16, BF16 or I8",
        ),
        (
            &[floats("embeddings", &[5, 1], &[1.0, f32::NAN, 1.0, 1.0, 1.0])],
            "number 1 of the rows is not finite",
        ),
        (&[compass(), floats("weights", &[2], &[1.0, 2.0])], "2 token weights for 5 tokens"),
        (&[compass(), mapping(&[0, -1])], "`mapping` has the invalid row -1"),
        (
            &[compass(), mapping(&[0, 1, 2, 3, 5])],
            "a token maps to row 5, but the table has 5 rows",
        ),
    ];
    for (tensors, problem) in tensors {
        assert_eq!(error_for(&whole, tensors), format!("`model.safetensors`: {problem}"));
    }
    let whole_tensors = safetensors(&table());
    for length in 0..whole_tensors.len() {
        let tokenizer = whole.to_string();
        let cut = toolcrib_model2vec::read(tokenizer.as_bytes(), &whole_tensors[..length]);
        let problem = cut.unwrap_err().to_string();
        assert!(problem.starts_with("`model.safetensors`: "), "truncated to {length}: {problem}");
    }
}
