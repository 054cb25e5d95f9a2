//! Tests that docs/security.md names an existing test for every attack. If a test were renamed or removed, its row
//! would claim something that no test shows.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Collects the names of all tests in the files below a folder.
fn tests(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            // This matches `#[test]` and `#[tokio::test]`, with or without arguments. Other attributes may follow.
            for marked in text.split("test").skip(1).filter(|rest| rest.starts_with([']', '('])) {
                let name = marked.split_once("fn ").and_then(|(_, rest)| rest.split_once('('));
                found.extend(name.map(|(name, _)| name.to_owned()));
            }
        }
    }
}

#[test]
fn every_attack_has_a_test_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut known = BTreeSet::new();
    tests(&root.join("crates"), &mut known);
    let page = fs::read_to_string(root.join("docs/security.md")).unwrap();
    let attacks = page.split("## Attacks").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = attacks.lines().filter(|line| line.starts_with("| ") && !line.contains("| test |"));
    let mut count = 0;
    for row in rows {
        let tests = row.trim_end_matches('|').rsplit('|').next().unwrap();
        let named = tests.split('`').skip(1).step_by(2).filter(|name| name.contains("::"));
        let names: Vec<&str> = named.filter_map(|path| path.rsplit("::").next()).collect();
        assert!(!names.is_empty(), "no test in the row: {row}");
        for name in names {
            assert!(known.contains(name), "there is no test `{name}`, which this row names: {row}");
        }
        count += 1;
    }
    assert!(count > 50, "only {count} rows were found");
}
