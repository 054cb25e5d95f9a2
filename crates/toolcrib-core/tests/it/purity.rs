//! The core stays pure: its manifest names nothing that does I/O.

#[test]
fn the_core_depends_on_nothing_that_does_io() {
    let manifest = include_str!("../../Cargo.toml");
    let table = manifest
        .split("[dependencies]")
        .nth(1)
        .unwrap()
        .split("[dev-dependencies]")
        .next()
        .unwrap();
    let names: Vec<&str> = table
        .lines()
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|n| !n.is_empty())
        .collect();
    let pure = [
        "blake3",
        "frostem",
        "jsonschema",
        "regex",
        "rustc-hash",
        "serde",
        "serde_json",
        "thiserror",
        "toml",
        "toolcrib-embed",
        "toolcrib-text",
        "unicode-normalization",
    ];
    assert_eq!(names, pure, "a new dependency of the core must be pure, and be listed here");
}

#[test]
fn the_validator_cannot_open_a_socket() {
    let workspace = include_str!("../../../../Cargo.toml");
    let line = workspace.lines().find(|line| line.starts_with("jsonschema")).unwrap();
    assert!(line.contains("default-features = false"), "{line}");
}
