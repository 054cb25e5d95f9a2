//! Edits any text as a client's file, and undoes the edit.
//!
//! An edit must change only what it names, and repeating it must change nothing. An undo must restore the text. If the text
//! was changed since, the undo may fail, but if it succeeds, the entry must be gone.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use toolcrib_client_files::{Change, Format, Undone, diff, get, replace_entries, undo};

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let Ok(rest) = std::str::from_utf8(rest) else { return };
    let (text, later) = rest.split_once('\0').unwrap_or((rest, ""));
    let format = [Format::Json, Format::Toml, Format::Yaml, Format::Dotenv][usize::from(first % 4)];
    let (container, entry): (Vec<String>, Value) = match format {
        Format::Dotenv => (vec![], json!("http://127.0.0.1:4180")),
        _ => (vec!["a".into()], json!({"command": "t"})),
    };
    let path = |name: &str| [&container[..], &[name.to_owned()]].concat();
    let edits = replace_entries(&container, "toolcrib", entry.clone(), &["x".to_owned()]);
    let edited = match format.edit(text, &edits) {
        Ok(edited) => edited,
        Err(problem) => return assert!(!problem.hint.is_empty()),
    };
    let parsed = format.parse(&edited).expect("what is written can be read");
    assert_eq!(get(&parsed, &path("toolcrib")), Some(&entry));
    assert_eq!(get(&parsed, &path("x")), None);
    assert_eq!(format.edit(&edited, &edits).as_ref(), Ok(&edited));
    let _ = diff(text, &edited, 1);
    let paths = [path("toolcrib"), path("x")];
    let change = Change { original: Some(text), edited: &edited, paths: &paths };
    assert_eq!(undo(format, change, &edited), Ok(Undone::Original(Some(text.to_owned()))));
    let had_entry = format.parse(text).is_ok_and(|value| get(&value, &path("toolcrib")).is_some());
    if let Ok(Undone::Merged(undone)) = undo(format, change, later) {
        let undone = format.parse(&undone).expect("what is written can be read");
        assert!(had_entry || get(&undone, &path("toolcrib")).is_none());
    }
});
