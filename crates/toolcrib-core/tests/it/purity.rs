//! Checks that the pure crates do no I/O, read no clock, draw no random numbers and start no threads.
//!
//! Clippy checks the crates' own code, with the lists in `clippy.toml`. It does not see what dependencies do, so these
//! tests check the manifests for dependencies that are not pure.

use std::fs;
use std::path::{Path, PathBuf};

/// The pure crates, each with all its dependencies. A new dependency must itself be pure, and must be added to this
/// list.
const PURE: [(&str, &[&str]); 7] = [
    (
        "toolcrib-client-files",
        &[
            "granit-parser",
            "jsonc-parser",
            "serde_json",
            "similar",
            "thiserror",
            "toml",
            "toml_edit",
        ],
    ),
    (
        "toolcrib-core",
        &[
            "blake3",
            "frostem",
            "jsonschema",
            "lru",
            "regex",
            "rustc-hash",
            "schemars",
            "serde",
            "serde_json",
            "thiserror",
            "toml",
            "toolcrib-embed",
            "toolcrib-text",
            "unicode-normalization",
        ],
    ),
    (
        "toolcrib-dialect",
        &[
            "blake3",
            "bytes",
            "memchr",
            "schemars",
            "serde",
            "serde_json",
            "thiserror",
            "toolcrib-core",
            "toolcrib-text",
        ],
    ),
    (
        "toolcrib-embed",
        &["rustc-hash", "thiserror", "unicode-general-category", "unicode-normalization"],
    ),
    (
        "toolcrib-model2vec",
        &["half", "safetensors", "serde_json", "thiserror", "tokenizers", "toolcrib-embed"],
    ),
    ("toolcrib-text", &["serde", "serde_json"]),
    ("toolcrib-tokens", &["tiktoken-rs", "toolcrib-core"]),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

#[test]
fn pure_crates_depend_on_nothing_that_does_io() {
    for (name, pure) in PURE {
        let manifest = fs::read_to_string(crates().join(name).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let dependencies: Vec<&str> =
            manifest["dependencies"].as_table().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            dependencies, pure,
            "a new dependency of {name} must be pure, and be listed here"
        );
    }
}

#[test]
fn pure_crates_deny_the_disallowed_methods_and_types() {
    for (name, _) in PURE {
        let lib = fs::read_to_string(crates().join(name).join("src/lib.rs")).unwrap();
        let denied = "#![deny(clippy::disallowed_methods, clippy::disallowed_types)]";
        assert!(lib.contains(denied), "{name}: lib.rs must have `{denied}`");
    }
}

/// A schema may refer to another schema by its URL. The validator can fetch such a schema only with its default
/// features, so they must be off.
#[test]
fn the_validator_cannot_open_a_socket() {
    let workspace = fs::read_to_string(crates().parent().unwrap().join("Cargo.toml")).unwrap();
    let workspace: toml::Table = workspace.parse().unwrap();
    let jsonschema = &workspace["workspace"]["dependencies"]["jsonschema"];
    assert_eq!(jsonschema["default-features"].as_bool(), Some(false), "{jsonschema:?}");
    assert!(jsonschema.get("features").is_none(), "{jsonschema:?}");
}
