//! Tests of what all commands have in common: exit codes, hints, and one JSON document as output.

use crate::{file, toolcrib, with_input};

#[test]
fn wrong_usage_exits_with_2_and_a_hint() {
    for (args, error, hint) in [
        (&[][..], "no command", "toolcrib demo"),
        (&["serach", "x"], "unrecognized subcommand 'serach'", "did you mean `toolcrib search`?"),
        (&["zzz"], "unrecognized subcommand 'zzz'", "`toolcrib --help` lists all commands"),
        (&["doctor", "time"], "unexpected argument 'time'", "`toolcrib doctor --help` shows"),
        (&["call", "a/b", "--zone", "x"], "unexpected argument '--zone'", "as KEY=VALUE"),
        (&["connect", "curser"], "invalid value 'curser'", "did you mean `cursor`?"),
        (
            &["search", "create", "issue"],
            "unexpected argument 'issue' found",
            "put quotes around a query",
        ),
        (&["search", "--limit", "x", "y"], "invalid value 'x' for '--limit <N>'", "--help"),
        (
            &["search", "--preset", "nope", "y"],
            "invalid value 'nope' for '--preset <P>'",
            "possible values: default, words",
        ),
        (&["search", "--nope", "y"], "unexpected argument '--nope' found", ""),
        (&["eval"], "<DIR>", "--help"),
    ] {
        let run = toolcrib(args);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{args:?}");
        let lines: Vec<&str> = run.err.lines().collect();
        assert!(
            lines[0].starts_with("error: ") && lines[0].contains(error),
            "{args:?}: {}",
            run.err
        );
        assert!(lines[1].starts_with("hint: ") && lines[1].contains(hint), "{args:?}: {}", run.err);
    }
}

#[test]
fn wrong_input_exits_with_2_and_names_the_problem_the_place_and_a_hint() {
    for (text, error) in [
        ("", "`-`: not JSON: EOF while parsing a value at line 1, column 0"),
        ("{\"a\":1}", "`-`: no tools in this JSON: found an object with the keys `a`"),
        ("[1,", "`-`: not JSON: EOF while parsing a value at line 1, column 3"),
    ] {
        let run = with_input(&["search", "--catalog", "-", "x"], text);
        assert_eq!(run.code, 2);
        assert!(run.err.starts_with(&format!("error: {error}\nhint: ")), "{}", run.err);
    }
    let run = toolcrib(&["search", "--catalog", "/nowhere.json", "x"]);
    assert!(run.err.starts_with("error: cannot read `/nowhere.json`: "), "{}", run.err);
    assert_eq!(run.code, 2);
    let path = file("empty/readme.txt", "");
    let run = toolcrib(&["search", "--catalog", path.strip_suffix("/readme.txt").unwrap(), "x"]);
    assert!(run.err.contains("no catalog in"), "{}", run.err);
}

#[test]
fn with_json_an_error_is_one_document() {
    for args in [
        &["search", "--json", "--catalog", "/nowhere", "x"][..],
        &["stats", "--json", "--nope"],
        &["eval", "--json"],
    ] {
        let run = toolcrib(args);
        assert_eq!(run.code, 2);
        let document = run.json();
        assert!(document["error"].is_string() && document["hint"].is_string(), "{document}");
    }
}

#[test]
fn escape_sequences_in_arguments_are_not_printed() {
    let run = toolcrib(&["explain", "issue", "\u{1b}[31mfoo\u{7}"]);
    assert!(run.code == 2 && !run.err.contains(['\u{1b}', '\u{7}']), "{run:?}");
}

#[cfg(unix)]
#[test]
fn arguments_that_are_not_utf8_are_wrong_usage() {
    use std::os::unix::ffi::OsStrExt;
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_toolcrib"))
        .args([std::ffi::OsStr::new("search"), std::ffi::OsStr::from_bytes(b"\xff")])
        .output()
        .unwrap();
    assert_eq!(status.status.code(), Some(2));
}

#[test]
fn help_exits_with_0() {
    for args in [&["--help"][..], &["search", "--help"], &["--version"]] {
        let run = toolcrib(args);
        assert_eq!((run.code, run.err.as_str()), (0, ""));
        assert!(!run.out.is_empty());
    }
}

#[test]
fn a_deep_or_huge_catalog_is_handled() {
    let deep = format!(
        "[{{\"name\":\"a\",\"input_schema\":{}{}}},{{\"name\":\"fine\",\"input_schema\":{{}}}}]",
        "{\"a\":".repeat(100_000) + "1",
        "}".repeat(100_000)
    );
    let run = with_input(&["search", "--json", "--catalog", "-", "fine"], &deep);
    assert_eq!(run.json()["loaded"], serde_json::json!(["fine"]));
    assert!(run.err.contains("withheld: the definition has"), "{}", run.err);
}
