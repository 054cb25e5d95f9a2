//! Properties that hold for every file: an edit changes only the values that it names, and an undo restores only these.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolcrib_client_files::{
    Change, Edit, Format, KeyPath, Place, Undone, diff, get, replace_entries, undo,
};

use crate::generated::{Sample, sample};

const FORMATS: [Format; 3] = [Format::Json, Format::Toml, Format::Yaml];

fn entry() -> Value {
    json!({"command": "/usr/bin/toolcrib", "args": ["mcp"]})
}

fn paths(sample: &Sample) -> Vec<KeyPath> {
    let names = sample.removed.iter().map(String::as_str).chain(["toolcrib"]);
    names.map(|name| sample.container.iter().cloned().chain([name.to_owned()]).collect()).collect()
}

fn connect(sample: &Sample, text: &str) -> Option<String> {
    let edits = replace_entries(&sample.container, "toolcrib", entry(), &sample.removed);
    match sample.format.edit(text, &edits) {
        Ok(edited) => Some(edited),
        // Inline values on the way to the servers are an error in YAML, and nothing is changed.
        Err(problem) if sample.format == Format::Yaml => {
            assert!(!problem.hint.is_empty());
            None
        }
        Err(problem) => panic!("{problem}: {text}"),
    }
}

fn undo_to_text(sample: &Sample, connected: &str, current: &str) -> String {
    let paths = paths(sample);
    let change = Change { original: Some(&sample.text), edited: connected, paths: &paths };
    match undo(sample.format, change, current) {
        Ok(Undone::Original(Some(text)) | Undone::Merged(text)) => text,
        other => panic!(
            "{other:?}\noriginal:\n{}\nconnected:\n{connected}\ncurrent:\n{current}",
            sample.text
        ),
    }
}

/// Removes the given keys of the document's top level.
fn without(mut value: Value, key: &str) -> Value {
    value.as_object_mut().unwrap().shift_remove(key);
    value
}

fn comment(format: Format) -> &'static str {
    if format == Format::Json { "// added by the user" } else { "# added by the user" }
}

/// Formats a JSON text in the way of programs that write the whole file.
fn rewritten(text: &str) -> String {
    serde_json::to_string_pretty(&Format::Json.parse(text).unwrap()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn connecting_changes_only_the_servers_and_can_be_repeated(bytes in vec(any::<u8>(), 0..300)) {
        for format in FORMATS {
            let sample = sample(format, &bytes);
            let before = format.parse(&sample.text).unwrap();
            let Some(connected) = connect(&sample, &sample.text) else { continue };
            let after = format.parse(&connected).unwrap();
            let kept = |value: &Value| {
                let servers = get(value, &sample.container).and_then(Value::as_object).cloned();
                let mut servers: Map<String, Value> = servers.unwrap_or_default();
                servers.retain(|name, _| name != "toolcrib" && !sample.removed.contains(name));
                servers
            };
            prop_assert_eq!(kept(&before), kept(&after));
            prop_assert_eq!(get(&after, &paths(&sample)[sample.removed.len()]), Some(&entry()));
            let top = sample.container[0].as_str();
            prop_assert_eq!(without(before, top), without(after, top));
            prop_assert_eq!(connect(&sample, &connected), Some(connected));
        }
    }

    #[test]
    fn undoing_restores_the_bytes(bytes in vec(any::<u8>(), 0..300)) {
        for format in FORMATS {
            let sample = sample(format, &bytes);
            let Some(connected) = connect(&sample, &sample.text) else { continue };
            prop_assert_eq!(undo_to_text(&sample, &connected, &connected), sample.text);
        }
    }

    /// The user adds a comment at the beginning, or a line at the end.
    #[test]
    fn undoing_keeps_the_bytes_of_edits_in_other_lines(bytes in vec(any::<u8>(), 0..300)) {
        for format in FORMATS {
            let sample = sample(format, &bytes);
            let Some(connected) = connect(&sample, &sample.text) else { continue };
            let start = |text: &str| {
                let (bom, rest) = match text.strip_prefix('\u{feff}') {
                    Some(rest) => ("\u{feff}", rest),
                    None => ("", text),
                };
                format!("{bom}{}{}{rest}", comment(format), sample.newline)
            };
            let is_first_line_same =
                sample.text.lines().take(2).eq(connected.lines().take(2)) && sample.text.lines().count() > 2;
            let undone = undo_to_text(&sample, &connected, &start(&connected));
            prop_assert!(undone.contains(comment(format)), "{}", undone);
            if is_first_line_same {
                prop_assert_eq!(undone, start(&sample.text));
            } else {
                prop_assert_eq!(format.parse(&undone), format.parse(&sample.text));
            }
        }
    }

    /// The user adds a server and another key, and changes a key.
    #[test]
    fn undoing_keeps_other_edits(bytes in vec(any::<u8>(), 0..300), place in 0..3_u8) {
        for format in FORMATS {
            let sample = sample(format, &bytes);
            let Some(connected) = connect(&sample, &sample.text) else { continue };
            let place = match place {
                0 => Place::First,
                1 => Place::Before("toolcrib".to_owned()),
                _ => Place::Last,
            };
            let server: KeyPath = sample.container.iter().cloned().chain(["new".to_owned()]).collect();
            let set = |path: &KeyPath, value: Value| Edit::Set { path: path.clone(), value, place: place.clone() };
            let edits = [set(&server, json!({"command": "x"})), set(&vec!["other".to_owned()], json!(true))];
            let Ok(current) = format.edit(&connected, &edits) else { continue };
            let Ok(expected) = format.edit(&sample.text, &edits) else { continue };
            let undone = undo_to_text(&sample, &connected, &current);
            prop_assert_eq!(format.parse(&undone).unwrap(), format.parse(&expected).unwrap(), "{}", undone);
        }
    }

    /// The client writes the whole file in another format.
    #[test]
    fn undoing_works_in_a_file_that_was_formatted_again(bytes in vec(any::<u8>(), 0..300)) {
        let sample = sample(Format::Json, &bytes);
        let connected = connect(&sample, &sample.text).unwrap();
        let mut current = Format::Json.parse(&connected).unwrap();
        current["numStartups"] = json!(3);
        let current = serde_json::to_string_pretty(&current).unwrap();
        let undone = undo_to_text(&sample, &connected, &current);
        let mut expected = Format::Json.parse(&sample.text).unwrap();
        expected["numStartups"] = json!(3);
        prop_assert_eq!(Format::Json.parse(&undone).unwrap(), expected);
        // If the original was formatted in the same way, only the added line remains.
        let plain = Sample { text: rewritten(&sample.text), ..sample.clone() };
        let connected = connect(&plain, &plain.text).unwrap();
        let undone = undo_to_text(&plain, &connected, &rewritten(&connected));
        prop_assert_eq!(undone, plain.text);
    }

    #[test]
    fn a_changed_entry_is_a_conflict(bytes in vec(any::<u8>(), 0..300)) {
        for format in FORMATS {
            let sample = sample(format, &bytes);
            let Some(connected) = connect(&sample, &sample.text) else { continue };
            let all = paths(&sample);
            let path = all.last().unwrap().iter().cloned().chain(["command".to_owned()]).collect();
            let edit = Edit::Set { path, value: json!("other"), place: Place::Last };
            let current = format.edit(&connected, &[edit]).unwrap();
            let change = Change { original: Some(&sample.text), edited: &connected, paths: &all };
            let error = undo(format, change, &current).unwrap_err();
            prop_assert!(error.to_string().ends_with("toolcrib` changed since"), "{}", error);
        }
    }

    #[test]
    fn no_text_panics(text in "[\\[\\]{}\",:# a=\\n\\r\\t/*\\-|>&'\u{feff}é]{0,60}", other in ".{0,40}") {
        for format in [Format::Json, Format::Toml, Format::Yaml, Format::Dotenv] {
            let container = vec!["a".to_owned()];
            let edits = replace_entries(&container, "toolcrib", json!({"command": "x"}), &["a".to_owned()]);
            let _ = diff(&text, &other, 1);
            let Ok(edited) = format.edit(&text, &edits) else { continue };
            let paths = vec![vec!["a".to_owned(), "toolcrib".to_owned()], vec!["a".to_owned(), "a".to_owned()]];
            let change = Change { original: Some(&text), edited: &edited, paths: &paths };
            prop_assert_eq!(undo(format, change, &edited), Ok(Undone::Original(Some(text.clone()))));
            let _ = undo(format, change, &other);
        }
    }
}
