//! Reads any bytes as a catalog from an untrusted source.
//!
//! The resulting catalog must keep these guarantees: every name belongs to one tool, no name is reserved for Toolcrib,
//! no text contains hidden characters, and every definition and schema is valid JSON. Errors and findings are printed
//! to a terminal, so they must not contain hidden characters either.

#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolcrib_core::{Catalog, Limits, Tool, ingest, wire_name};
use toolcrib_text::clean;

fuzz_target!(|data: &[u8]| {
    let came = match ingest(data, Some("label"), &Limits::default()) {
        Ok(came) => came,
        Err(error) => {
            assert!(!error.hint().is_empty());
            return check_clean("an error", &error.to_string());
        }
    };
    let mut builder = Catalog::builder();
    builder.add(came);
    let catalog = builder.build();
    let mut names = HashSet::new();
    for id in catalog.ids() {
        let tool = catalog.tool(id);
        assert!(names.insert(tool.name()), "{:?} stands for two tools", tool.name());
        assert_eq!(catalog.find(tool.name()), Some(id));
        check_tool(tool);
    }
    for finding in catalog.findings() {
        check_clean("a finding", &finding.to_string());
    }
});

fn check_tool(tool: &Tool) {
    let name = tool.name();
    assert!(!wire_name::is_reserved(name), "{name:?} is reserved");
    assert!(
        wire_name::is_valid(&wire_name::for_full_name(name)),
        "{name:?} has no valid wire name"
    );
    check_clean("a name", name);
    check_clean("a description", tool.description());
    for text in tool.server().into_iter().chain(tool.title()) {
        assert!(!text.is_empty(), "{name:?} has an empty server or title");
        check_clean("a server or title", text);
    }
    tool.keywords().for_each(|word| check_clean("a keyword", word));
    let schema = serde_json::from_str(tool.schema());
    assert!(matches!(schema, Ok(Value::Object(_))), "{name:?}: {schema:?}: {}", tool.schema());
    let definition = serde_json::from_str(tool.definition());
    let definition = definition.unwrap_or_else(|error| panic!("{error}: {}", tool.definition()));
    check_strings(&definition);
    tool.fingerprint();
}

/// Checks every string of a definition after decoding, because an escape in the JSON text could hide a character that
/// the model sees.
fn check_strings(value: &Value) {
    match value {
        Value::String(text) => check_clean("a definition", text),
        Value::Array(items) => items.iter().for_each(check_strings),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            check_clean("a key of a definition", key);
            check_strings(value);
        }),
        _ => {}
    }
}

fn check_clean(what: &str, text: &str) {
    assert!(clean::is_clean(text), "{what} has hidden characters: {text:?}");
}
