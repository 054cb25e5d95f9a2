//! Tests of output for people on terminals of different widths: lines fit, and no word is cut in the middle.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{file, own_path, toolcrib};

/// Runs the binary as if on a terminal of this width, and returns both outputs.
fn at_width(width: usize, home: &Path, args: &[&str]) -> String {
    let done = Command::new(env!("CARGO_BIN_EXE_toolcrib"))
        .args(args)
        .current_dir(home)
        .env_remove("XDG_CONFIG_HOME")
        .env("HOME", home)
        .env("COLUMNS", width.to_string())
        .output()
        .unwrap();
    String::from_utf8([done.stdout, done.stderr].concat()).unwrap()
}

/// Fails if a line is too long, unless it is one word, such as a path.
fn assert_fits(text: &str, width: usize) {
    for line in text.lines() {
        let is_one_word = line.split_whitespace().count() == 1;
        assert!(line.chars().count() <= width || is_one_word, "wider than {width}: {line}");
    }
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

#[test]
fn search_demo_and_help_fit_and_keep_their_words() {
    let home = own_path("home");
    fs::create_dir_all(&home).unwrap();
    for width in [60, 80, 120] {
        for args in [
            &["search", "create a github issue"][..],
            &["search", "how many calories are in a banana"],
        ] {
            let text = at_width(width, &home, args);
            assert_fits(&text, width);
            assert_eq!(words(&text), words(&toolcrib(args).out), "{width}");
        }
        // The demo shortens texts to the width, and help aligns them.
        for args in [
            &["demo"][..],
            &["demo", "--preset", "opencode"],
            &["--help"],
            &["help", "docs"],
            &["search", "--help"],
            &["help", "serve"],
        ] {
            assert_fits(&at_width(width, &home, args), width);
        }
    }
}

#[test]
fn search_prints_one_line_for_each_signature_if_the_width_is_unknown() {
    let out = toolcrib(&["search", "--limit", "1", "gitlab__create_issue"]).out;
    assert!(out.lines().any(|line| line.len() > 200), "{out}");
}

#[test]
fn import_prints_a_block_for_each_file() {
    let home = own_path("home");
    let config = r#"{"mcpServers": {"files": {"command": "npx", "args": ["-y", "files"], "envFile": "x"},
        "browser": {"command": "npx"}, "calendar": {"command": "npx"}, "documentation": {"command": "npx"}}}"#;
    file("home/.cursor/mcp.json", config);
    let config = r#"{"mcpServers": {"maps": {"command": "npx", "trust": true}}}"#;
    file("home/.gemini/settings.json", config);
    let text = at_width(60, &home, &["import"]);
    let path = |name: &str| home.join(name).display().to_string();
    let expected = format!(
        "cursor:\n{}\n  \
           servers  browser, calendar, documentation, files\n  \
           note     `files`: `envFile` is not read: set its variables\n           in `env`\n\n\
         gemini:\n{}\n  \
           servers  maps\n  \
           note     `maps`: `trust` is ignored: tool approvals stay\n           with your client\n",
        path(".cursor/mcp.json"),
        path(".gemini/settings.json"),
    );
    assert!(text.contains(&expected), "{text}\n---\n{expected}");
    let text = at_width(300, &home, &["import"]);
    let expected = format!("cursor: {}\n  servers  browser, ", path(".cursor/mcp.json"));
    assert!(text.contains(&expected), "{text}");
}
