//! Tests of the YAML reader with ordinary and with hostile documents.

#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn lists_mappings_and_text_of_every_style_are_read() {
    let text = "\
# A comment.
a: [1, 'two', \"th\\u0072ee\", {b: }]
c:
- |
  kept
  lines
- >-
  one
  line
? d
: e
";
    let value = json!({"a": [1, "two", "three", {"b": null}], "c": ["kept\nlines\n", "one line"], "d": "e"});
    assert_eq!(parse(text), Ok(value));
    assert_eq!(parse("--- \n# nothing\n"), Ok(Value::Null));
    assert_eq!(parse(""), Ok(Value::Null));
}

#[test]
fn keys_are_text_and_the_last_of_two_equal_keys_wins() {
    assert_eq!(parse("on: 1\n2: 2\non: 3\n"), Ok(json!({"on": 3, "2": 2})));
    let text = "a: &k on\n*k : 1\n&j 5: x\nb: *j\nc: *k\n";
    let value = json!({"a": true, "on": 1, "5": "x", "b": 5, "c": true});
    assert_eq!(parse(text), Ok(value));
    assert_eq!(error("[a]: 1"), "mapping key is a list or a mapping at line 1, column 1");
}

#[test]
fn aliases_are_copies_and_a_merge_adds_missing_keys() {
    let text = "\
base: &base {a: 1, b: 2}
more: &more {b: 3, c: 4}
one: {<<: *base, b: 5}
two: {<<: [*base, *more]}
name: &name x
*name : *name
";
    let value = parse(text).unwrap();
    assert_eq!(value["one"], json!({"b": 5, "a": 1}));
    assert_eq!(value["two"], json!({"a": 1, "b": 2, "c": 4}));
    assert_eq!(value["x"], "x");
    assert_eq!(parse("{<<: {a: 1}, <<: {a: 2}}"), Ok(json!({"a": 2})));
    assert_eq!(parse("{'<<': 1, !!str <<: 2}"), Ok(json!({"<<": 2})));
    assert_eq!(
        error("a: 1\n<<: 3\n"),
        "`<<` must be a mapping or a list of mappings at line 2, column 5"
    );
    assert_eq!(error("a: &a [*a]"), "alias inside the value it refers to at line 1, column 8");
}

#[test]
fn documents_that_are_too_large_or_too_deep_are_rejected() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(&deep(MAX_DEPTH)).is_ok());
    for depth in [MAX_DEPTH + 1, 300, 10_000] {
        assert_eq!(parse(&deep(depth)), Err(YamlError::TooLarge), "{depth}");
    }
    // This document is too deep only when the alias is expanded.
    let text = format!("a: &a {}\nb: [[[*a]]]\n", deep(MAX_DEPTH - 3));
    assert_eq!(parse(&text), Err(YamlError::TooLarge));
    // This document is too large because many aliases refer to one long text.
    let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(40));
    assert_eq!(parse(&text), Err(YamlError::TooLarge));
    // This document is too large because each of its nested anchors keeps a copy of everything inside it.
    let anchors = (0..100).map(|i| format!("&a{i} [")).collect::<Vec<_>>().concat();
    let text = format!("{anchors}{}{}", "x".repeat(1 << 20), "]".repeat(100));
    assert_eq!(parse(&text), Err(YamlError::TooLarge));
    assert_eq!(parse("a: 1\n---\nb: 2\n"), Err(YamlError::SeveralDocuments));
}
