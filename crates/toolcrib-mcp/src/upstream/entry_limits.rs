//! Maximum sizes of the prompts, resources and templates that a server lists.
//!
//! As with tools, an entry whose name or URI is too long is withheld, because its server would not recognise a
//! shortened name or URI. A description that is too long is truncated.

use serde_json::Value;

use super::message_budget::memory_of;

/// Maximum length of a name, in bytes.
const NAME_BYTES: usize = 1 << 10;
/// Maximum length of a URI or a URI template, in bytes.
pub(crate) const URI_BYTES: usize = 8 << 10;
/// Maximum length of a description, in bytes. Longer descriptions are truncated.
const DESCRIPTION_BYTES: usize = 16 << 10;
/// Maximum size of an entry in memory, in bytes.
const ENTRY_BYTES: usize = 128 << 10;

/// Truncates the description of an entry to the maximum length.
pub(super) fn cut_description(entry: &mut Value) {
    if let Some(Value::String(text)) = entry.get_mut("description")
        && text.len() > DESCRIPTION_BYTES
    {
        text.truncate(text.floor_char_boundary(DESCRIPTION_BYTES));
        text.push('…');
    }
}

/// Returns why an entry is withheld, or `None` if it is within the limits.
pub(super) fn withhold_reason(entry: &Value) -> Option<String> {
    let bytes = |key: &str| entry.get(key).and_then(Value::as_str).map_or(0, str::len);
    let is_long = |keys: &[&str], limit: usize| keys.iter().any(|key| bytes(key) > limit);
    if is_long(&["name", "title"], NAME_BYTES) {
        return Some(format!("the name has more than {NAME_BYTES} bytes"));
    }
    if is_long(&["uri", "uriTemplate"], URI_BYTES) {
        return Some(format!("the address has more than {URI_BYTES} bytes"));
    }
    (memory_of(entry) > ENTRY_BYTES)
        .then(|| format!("the definition takes more than {ENTRY_BYTES} bytes"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_with_long_names_are_withheld_and_long_descriptions_are_cut() {
        let x = |bytes| "x".repeat(bytes);
        assert_eq!(withhold_reason(&json!({"name": x(NAME_BYTES), "uri": x(URI_BYTES)})), None);
        for (entry, reason) in [
            (json!({"name": x(NAME_BYTES + 1)}), "the name has more than 1024 bytes"),
            (json!({"uriTemplate": x(URI_BYTES + 1)}), "the address has more than 8192 bytes"),
            (json!({"arguments": [x(ENTRY_BYTES)]}), "the definition takes more than 131072 bytes"),
        ] {
            assert_eq!(withhold_reason(&entry).as_deref(), Some(reason));
        }
        let mut entry = json!({"description": x(1 << 20)});
        cut_description(&mut entry);
        let text = entry["description"].as_str().unwrap();
        assert!(text.len() == DESCRIPTION_BYTES + 3 && text.ends_with("x…"), "{}", text.len());
    }
}
