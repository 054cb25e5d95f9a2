//! Writes a value as YAML in block style.

use serde_json::Value;

use crate::yaml;

/// Returns the lines of a key and its value.
pub(super) fn block(name: &str, value: &Value, indent: usize) -> String {
    let spaces = " ".repeat(indent);
    let name = key(name);
    match value {
        Value::Object(map) if !map.is_empty() => {
            let inner: String =
                map.iter().map(|(key, value)| block(key, value, indent + 2)).collect();
            format!("{spaces}{name}:\n{inner}")
        }
        Value::Array(list) if !list.is_empty() => {
            let items: Vec<String> = list.iter().map(scalar).collect();
            let separator = format!("\n{spaces}  - ");
            format!("{spaces}{name}:{separator}{}\n", items.join(&separator))
        }
        _ => format!("{spaces}{name}: {}\n", scalar(value)),
    }
}

/// Returns a key, in quotes if it needs them.
pub(super) fn key(name: &str) -> String {
    scalar(&Value::from(name))
}

/// Returns a value in one line. A text is quoted, unless YAML reads it as the same text without quotes.
fn scalar(value: &Value) -> String {
    let is_plain = |text: &str| {
        let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-');
        text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '/'))
            && text.chars().all(safe)
            && yaml::parse(text) == Ok(Value::from(text))
    };
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        // JSON is a subset of YAML.
        _ => value.to_string(),
    }
}
