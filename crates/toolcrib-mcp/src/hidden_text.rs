//! Finds or removes hidden characters in texts that servers control, before a model or a person reads them.
//!
//! [`toolcrib_text::clean`] defines which characters are hidden. Here it is applied to JSON: to servers' descriptions,
//! questions, log messages and errors. Results of calls are only checked, because a gateway must not change what a tool
//! returned unless it is configured to.

use parking_lot::Mutex;
use std::collections::HashSet;

use rmcp::model::ErrorData;
use serde_json::Value;
use toolcrib_text::clean::{Hidden, clean, has_hidden, is_clean, one_line};
use toolcrib_text::shorten;

/// Maximum length of a name in a log line, in characters.
const MAX_NAME_CHARS: usize = 80;
/// Maximum number of sources for which hidden characters are logged.
const MAX_SOURCES: usize = 4_096;

/// Removes hidden characters from every string of a value, including keys. Returns the classes of the characters that
/// were removed.
pub(crate) fn clean_value(value: &mut Value) -> Vec<Hidden> {
    let mut removed = Vec::new();
    clean_into(value, &mut removed);
    removed.sort_unstable();
    removed.dedup();
    removed
}

fn clean_into(value: &mut Value, removed: &mut Vec<Hidden>) {
    match value {
        Value::String(text) => {
            let (cleaned, classes) = clean(text);
            // Cleaning also changes line endings. If no hidden characters were found, the original text is kept.
            if !classes.is_empty() {
                removed.extend(classes);
                *text = cleaned.into_owned();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| clean_into(item, removed)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| clean_into(field, removed));
            if fields.keys().all(|key| is_clean(key)) {
                return;
            }
            let renamed = std::mem::take(fields).into_iter().map(|(key, field)| {
                let (cleaned, classes) = clean(&key);
                removed.extend(classes);
                (cleaned.into_owned(), field)
            });
            *fields = renamed.collect();
        }
        _ => {}
    }
}

/// Returns the classes of hidden characters in the strings of a value.
pub(crate) fn find_hidden(value: &Value) -> Vec<Hidden> {
    let mut found = Vec::new();
    find_into(value, &mut found);
    found.sort_unstable();
    found.dedup();
    found
}

fn find_into(value: &Value, found: &mut Vec<Hidden>) {
    match value {
        Value::String(text) => found.extend(clean(text).1),
        Value::Array(items) => items.iter().for_each(|item| find_into(item, found)),
        Value::Object(fields) => fields.iter().for_each(|(key, field)| {
            found.extend(clean(key).1);
            find_into(field, found);
        }),
        _ => {}
    }
}

/// Whether a key of a value has hidden characters. A key cannot be cleaned, because the server would not recognise the
/// changed key.
pub(crate) fn has_hidden_key(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_hidden_key),
        Value::Object(fields) => {
            fields.iter().any(|(key, field)| has_invisible_chars(key) || has_hidden_key(field))
        }
        _ => false,
    }
}

/// Whether a name, a key or a URI has invisible characters, including line breaks and tabs.
pub(crate) fn has_invisible_chars(name: &str) -> bool {
    has_hidden(name) || name.contains(['\n', '\t'])
}

/// Removes hidden characters from a server's error.
pub(crate) fn clean_error(mut error: ErrorData) -> ErrorData {
    let (message, removed) = clean(&error.message);
    if !removed.is_empty() {
        error.message = message.into_owned().into();
    }
    if let Some(data) = &mut error.data {
        clean_value(data);
    }
    error
}

/// Reduces a name to one line of limited length, for the log.
pub(crate) fn loggable_name(name: &str) -> String {
    shorten(&one_line(name), MAX_NAME_CHARS).into_owned()
}

/// Joins the names of classes of hidden characters into a text for people.
pub(crate) fn class_names(found: &[Hidden]) -> String {
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The sources of hidden text that were already logged. Each source is logged once, so that a server cannot fill the
/// log.
#[derive(Debug, Default)]
pub(crate) struct LoggedOnce(Mutex<HashSet<String>>);

impl LoggedOnce {
    /// Records a source. Returns whether it is new and should be logged. Once the maximum is reached, no new source is
    /// recorded or logged.
    pub(crate) fn is_first(&self, server: &str, source: &str) -> bool {
        let key = format!("{server}\n{source}");
        let mut logged = self.0.lock();
        logged.len() < MAX_SOURCES && logged.insert(key)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_string_of_a_value_is_cleaned() {
        let mut value = json!({
            "plain": 1.50,
            "te\u{200b}xt": ["a\u{e0041}b", {"deep": "x\u{1b}[31my\u{202e}"}],
            "lines": "one\r\ntwo",
        });
        let found = find_hidden(&value);
        assert!(has_hidden_key(&value));
        let removed = clean_value(&mut value);
        assert_eq!(removed, found);
        assert_eq!(removed, [Hidden::Ansi, Hidden::Bidi, Hidden::ZeroWidth, Hidden::Tag]);
        let expected =
            json!({"plain": 1.50, "text": ["ab", {"deep": "xy"}], "lines": "one\r\ntwo"});
        assert_eq!(value.to_string(), expected.to_string(), "in order, and nothing else changed");
        assert!(clean_value(&mut value).is_empty() && find_hidden(&value).is_empty());
    }

    #[test]
    fn a_source_is_logged_once_and_sources_are_limited() {
        let logged = LoggedOnce::default();
        assert!(logged.is_first("a", "tool") && !logged.is_first("a", "tool"));
        assert!(logged.is_first("b", "tool"));
        let more = (2..=MAX_SOURCES).filter(|i| logged.is_first("a", &i.to_string())).count();
        assert_eq!(more, MAX_SOURCES - 2);
    }
}
