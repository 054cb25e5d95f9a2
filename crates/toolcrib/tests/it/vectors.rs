//! Tests of vector tables that replace the built-in one, named on the command line or in the config.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{Run, file, own_path, run_in, sample, toolcrib};

/// The words of the test tables. The vectors of `rainy` and `umbrella` have the same direction, that of `invoice` has
/// another.
const WORDS: [(&str, [i8; 2]); 3] = [("rainy", [1, 0]), ("umbrella", [1, 0]), ("invoice", [0, 1])];
/// One weight for each field of a tool.
const FIELD_WEIGHTS: [f32; 6] = [1.0; 6];

fn empty_folder(name: &str) -> PathBuf {
    let folder = own_path(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Creates a folder with a vector table, as `training/` writes it.
fn own_table_folder(name: &str) -> PathBuf {
    let words = WORDS.map(|(word, _)| word).join("\n");
    let sizes = [2, WORDS.len(), words.len(), FIELD_WEIGHTS.len()];
    let scales = [1.0_f32; 2 * WORDS.len()];
    let mut table = b"TCRIBEM2".to_vec();
    table.extend(sizes.iter().flat_map(|size| (*size as u32).to_le_bytes()));
    table.extend(FIELD_WEIGHTS.iter().flat_map(|weight| weight.to_le_bytes()));
    table.extend(words.as_bytes());
    table.extend(scales.iter().flat_map(|scale| scale.to_le_bytes()));
    table.extend(WORDS.iter().flat_map(|(_, row)| row.map(i8::cast_unsigned)));
    let folder = empty_folder(name);
    fs::write(folder.join("table.bin"), table).unwrap();
    folder
}

/// Creates a folder with a vector table, as Model2Vec saves it.
fn published(name: &str) -> PathBuf {
    let mut vocabulary = json!({"[UNK]": 0});
    let mut rows = vec![0.0_f32; 2];
    for (id, (word, row)) in (1..).zip(WORDS) {
        vocabulary[word] = json!(id);
        rows.extend(row.map(f32::from));
    }
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary},
    });
    let header = json!({"embeddings": {"dtype": "F32", "shape": [4, 2], "data_offsets": [0, 32]}});
    let header = header.to_string();
    let mut tensors = (header.len() as u64).to_le_bytes().to_vec();
    tensors.extend(header.as_bytes());
    tensors.extend(rows.iter().flat_map(|value| value.to_le_bytes()));
    let folder = empty_folder(name);
    fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    fs::write(folder.join("model.safetensors"), tensors).unwrap();
    folder
}

fn catalog() -> String {
    let tools = [("stay_dry", "Umbrella."), ("get_paid", "Invoice.")].map(|(name, description)| {
        json!({"name": name, "description": description, "input_schema": {}}).to_string()
    });
    file("vectors.jsonl", &tools.join("\n"))
}

/// Returns the similarity and the name of the first hit.
fn nearest(run: &Run) -> (f64, String) {
    assert_eq!(run.code, 0, "{run:?}");
    let first: &Value = &run.json()["tools"][0];
    let cosine = first["nearness"]["cosine"].as_f64().unwrap();
    ((cosine * 100.0).round() / 100.0, first["name"].as_str().unwrap().to_owned())
}

#[test]
fn a_named_vector_table_is_used_for_ranking() {
    let (folder, catalog) = (own_table_folder("model-a"), catalog());
    let folder = folder.to_str().unwrap();
    let args = ["--catalog", &catalog, "--embedding-model", folder, "--json", "rainy"];
    let explained = toolcrib(&[&["explain"][..], &args].concat());
    assert_eq!(nearest(&explained), (1.0, "stay_dry".to_owned()));
    let found = toolcrib(&[&["search", "--limit", "1"][..], &args].concat()).json();
    assert_eq!(found["hits"][0]["name"], "stay_dry");
    let measured = toolcrib(&["eval", sample(), "--embedding-model", folder, "--json"]);
    let inside = toolcrib(&["eval", sample(), "--json"]);
    assert_ne!(measured.json()["mean"]["ndcg@10"], inside.json()["mean"]["ndcg@10"]);
}

#[cfg(feature = "model2vec")]
#[test]
fn a_model2vec_table_is_used_for_ranking() {
    let (folder, catalog) = (published("published-a"), catalog());
    let folder = folder.to_str().unwrap();
    let args = ["explain", "--catalog", &catalog, "--embedding-model", folder, "--json", "rainy"];
    assert_eq!(nearest(&toolcrib(&args)), (1.0, "stay_dry".to_owned()));
}

#[cfg(feature = "model2vec")]
#[test]
fn a_broken_model2vec_table_is_reported() {
    let folder = published("published-b");
    fs::write(folder.join("model.safetensors"), "not tensors").unwrap();
    let run = toolcrib(&["search", "--embedding-model", folder.to_str().unwrap(), "rainy"]);
    let stderr = run.err.replace(folder.to_str().unwrap(), "DIR");
    assert_eq!(run.code, 2);
    assert!(stderr.starts_with("error: `DIR`: `model.safetensors`: "), "{stderr}");
    assert!(stderr.contains("\nhint: use a folder that Model2Vec saved, "), "{stderr}");
}

/// The default build contains only Toolcrib's own tokenizer, so it cannot read Model2Vec's tables.
#[cfg(not(feature = "model2vec"))]
#[test]
fn a_model2vec_table_needs_a_build_with_the_feature() {
    let folder = published("published-a");
    let folder = folder.to_str().unwrap();
    let expected = format!(
        "error: `{folder}`: this build cannot read the files of Model2Vec, only a `table.bin`\nhint: install with `cargo install --path crates/toolcrib --features model2vec`\n"
    );
    for command in [&["search"][..], &["mcp", "--own"], &["serve", "--listen", "127.0.0.1:0"]] {
        let mut args = command.to_vec();
        args.extend(["--embedding-model", folder]);
        if command == ["search"] {
            args.push("rainy");
        }
        let run = toolcrib(&args);
        assert!(run.code == 2 && run.err.ends_with(&expected), "{command:?}: {run:?}");
    }
}

#[test]
fn our_own_table_takes_precedence_over_model2vec_files_in_the_same_folder() {
    let (folder, catalog) = (published("model-own"), catalog());
    let own = folder.join("table.bin");
    let inside = concat!(env!("CARGO_MANIFEST_DIR"), "/../toolcrib-embed/weights/table.bin");
    fs::copy(inside, &own).unwrap();
    let folder = folder.to_str().unwrap();
    // The folder has no encoder, so the table is compared with the built-in table alone.
    let explain = ["explain", "--catalog", &catalog, "--tier", "table", "--json", "rainy"];
    let with_own = [&explain[..], &["--embedding-model", folder]].concat();
    assert_eq!(toolcrib(&with_own).json(), toolcrib(&explain).json());
    fs::write(own, "TCRIBEM1").unwrap();
    let expected = format!(
        "error: `{folder}`: not a table of vectors: it does not begin with `TCRIBEM2`\nhint: use a table that was written by `training/`\n"
    );
    let run = toolcrib(&with_own);
    assert_eq!((run.code, run.err), (2, expected));
}

#[test]
fn the_config_names_a_table_relative_to_its_folder_or_to_home() {
    own_table_folder("home/model-b");
    let home = own_path("home");
    let catalog = catalog();
    for (name, path) in [("here.toml", "home/model-b"), ("home.toml", "~/model-b")] {
        let config = file(name, &format!("[rank]\nembedding_model = '{path}'\n"));
        let args = ["explain", "--catalog", &catalog, "--config", &config, "--json", "rainy"];
        // The path is resolved in the same way in any working folder.
        let run = run_in(Path::new("/"), &home, &args, "");
        assert_eq!(nearest(&run), (1.0, "stay_dry".to_owned()), "{path}");
    }
}

#[test]
fn a_ranker_without_vectors_rejects_a_table() {
    let folder = own_table_folder("model-c");
    let folder = folder.to_str().unwrap();
    for preset in ["words", "everruns", "hermes", "opencode", "claude-code"] {
        let run = toolcrib(&["search", "--preset", preset, "--embedding-model", folder, "rainy"]);
        let expected = format!(
            "error: `{folder}`: the ranker of this preset uses no vectors\nhint: remove `--embedding-model`, or choose a preset that ranks with vectors\n"
        );
        assert_eq!((run.code, run.err), (2, expected), "{preset}");
    }
    let config = file("by-words.toml", "[rank]\nby = 'words'\nembedding_model = 'model'\n");
    let run = toolcrib(&["search", "--config", &config, "rainy"]);
    let expected = format!(
        "error: `{config}`: `rank.embedding_model` is out of range\nhint: `rank.embedding_model` may be set only if `rank.by` is \"hybrid\"; no other ranker uses vectors\n"
    );
    assert_eq!((run.code, run.err), (2, expected));
}

#[test]
fn a_missing_or_broken_table_is_reported() {
    let (absent, broken) =
        (own_table_folder("model-d").join("absent"), own_table_folder("model-e"));
    fs::write(broken.join("table.bin"), "TCRIBEM2").unwrap();
    let error_for = |folder: &Path| {
        let folder = folder.to_str().unwrap();
        let run = toolcrib(&["search", "--embedding-model", folder, "rainy"]);
        (run.code, run.err.replace(folder, "DIR"))
    };
    let also = if cfg!(feature = "model2vec") {
        ", or with `tokenizer.json` and `model.safetensors`, as Model2Vec saves them"
    } else {
        ""
    };
    let expected = format!(
        "error: `DIR/table.bin`: no such file\nhint: name a folder with a `table.bin`, as `training/` writes it{also}\n"
    );
    assert_eq!(error_for(&absent), (2, expected));
    let (code, expected) = error_for(&broken);
    assert_eq!(code, 2);
    assert!(
        expected.starts_with("error: `DIR`: the table is truncated in its header"),
        "{expected}"
    );
    for (command, more) in [("mcp", vec!["--own"]), ("serve", vec!["--listen", "127.0.0.1:0"])] {
        let args = [&[command, "--embedding-model", absent.to_str().unwrap()][..], &more].concat();
        let run = toolcrib(&args);
        assert_eq!(run.code, 2, "{command}");
        assert!(run.err.contains("table.bin`: no such file\nhint: name a folder"), "{run:?}");
    }
}

/// A command that does not rank tools must not spend time on loading a table.
#[test]
fn a_command_that_does_not_rank_reads_no_table() {
    let config = file("absent.toml", "[rank]\nembedding_model = 'there/is/none'\n");
    assert_eq!(toolcrib(&["stats", "--config", &config]).code, 0);
    assert_eq!(toolcrib(&["search", "--config", &config, "rainy"]).code, 2);
}
