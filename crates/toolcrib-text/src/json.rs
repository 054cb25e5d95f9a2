//! Edits JSON from untrusted sources as text.
//!
//! Schemas and definitions are kept as text, so that the order of keys, the spelling of numbers and unknown keys are
//! preserved. This module has the operations on such text. All of them are iterative, so deep nesting cannot exhaust
//! the stack.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A JSON object as an ordered list of keys and the unchanged texts of their values.
///
/// ```
/// use toolcrib_text::json::Fields;
/// let body = Fields::read(r#"{"model": "m", "seed": 1.00, "tools": []}"#).unwrap();
/// let edited = body.with(&[("tools", Some("[1]".into())), ("model", None)]);
/// assert_eq!(edited, r#"{"seed":1.00,"tools":[1]}"#);
/// ```
#[derive(Debug)]
pub struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Reads an object. Returns `None` if the text is not a JSON object.
    pub fn read(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns the text of the value of `key`. If the key is repeated, the last value is used, as in JSON parsers that
    /// build a map.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.0.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v.get())
    }

    /// Returns the value of `key`, if that value is a string.
    pub fn string(&self, key: &str) -> Option<String> {
        self.get(key).and_then(|raw| serde_json::from_str(raw).ok())
    }

    /// Returns all keys with the texts of their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.get()))
    }

    /// Returns the object with some values replaced. A value of `None` removes the key. Everything else is unchanged,
    /// and new keys are added at the end.
    pub fn with(&self, edits: &[(&str, Option<String>)]) -> String {
        let mut out = String::from("{");
        let mut put = |key: &str, value: &str| {
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(&quote(key));
            out.push(':');
            out.push_str(value);
        };
        for (key, value) in self.iter() {
            match edits.iter().find(|(edited, _)| *edited == key) {
                None => put(key, value),
                Some((_, Some(new))) => put(key, new),
                Some((_, None)) => {}
            }
        }
        for (key, value) in edits {
            if let (Some(value), None) = (value, self.get(key)) {
                put(key, value);
            }
        }
        out.push('}');
        out
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Vec<(String, &'de RawValue)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    fields.push(entry);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Object).map(Fields)
    }
}

/// Reads an array as the unchanged texts of its items. Returns `None` if the text is not a JSON array.
pub fn items(text: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str(text).ok()
}

/// Whether an array is empty; `None` for any other JSON. Only the first bytes are read, so the text must be valid JSON.
pub fn is_empty_list(text: &str) -> Option<bool> {
    let inside = text.trim_ascii_start().strip_prefix('[')?;
    Some(inside.trim_ascii_start().starts_with(']'))
}

/// Returns the approximate number of values in JSON text, including nested values but not keys. The number is at most
/// one too low, and each empty list or object counts twice. It is used to estimate the memory of the parsed text
/// without parsing it.
pub fn count_values(text: &str) -> usize {
    let mut count = 0;
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => skip_string(&mut rest),
            b'{' | b'[' | b',' => count += 1,
            _ => {}
        }
    }
    count
}

/// Returns JSON text without white space between tokens.
pub fn compact(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => skip_string(&mut rest),
            b' ' | b'\t' | b'\n' | b'\r' => {
                let next = text.len() - rest.len();
                out.push_str(&text[copied..next - 1]);
                copied = next;
            }
            _ => {}
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Returns `text` as a JSON string literal.
pub fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Quotes untrusted text as a string that cannot close a tag or a string around it.
pub fn data(text: &str) -> String {
    quote(text).replace('<', "\\u003c")
}

/// The depth and size of a JSON text.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    /// Nesting depth of objects and arrays.
    pub depth: usize,
    /// Number of values of any kind. Each empty object or array counts twice.
    pub nodes: usize,
}

/// Measures valid JSON without parsing it.
pub fn measure(text: &str) -> Measure {
    let mut measure = Measure { depth: 0, nodes: 1 };
    let mut depth = 0usize;
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => skip_string(&mut rest),
            b'{' | b'[' => {
                depth += 1;
                measure.nodes += 1;
                measure.depth = measure.depth.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => measure.nodes += 1,
            _ => {}
        }
    }
    measure
}

fn skip_string(rest: &mut std::str::Bytes<'_>) {
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' => {
                rest.next();
            }
            b'"' => return,
            _ => {}
        }
    }
}

/// Calls `change` with every string in a JSON text, and with whether that string is a key. Returns the text in which
/// each string is replaced by what `change` returned for it. Strings for which `change` returns `None` keep their
/// bytes. A string that is not valid Unicode, such as one with half a surrogate pair, is an error: a raw value may
/// contain such a string, and a later parser would reject it.
pub fn map_strings(
    text: &str,
    mut change: impl FnMut(&str, bool) -> Option<String>,
) -> Result<Cow<'_, str>, serde_json::Error> {
    let mut out: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some(open) = text[at..].find('"').map(|i| at + i) {
        let mut inner = text[open + 1..].bytes();
        skip_string(&mut inner);
        let close = text.len() - inner.len();
        at = close;
        let literal = &text[open..close];
        let value: String = serde_json::from_str(literal)?;
        let is_key = text[close..].trim_start().starts_with(':');
        if let Some(new) = change(&value, is_key) {
            let out = out.get_or_insert_with(String::new);
            out.push_str(&text[copied..open]);
            out.push_str(&quote(&new));
            copied = close;
        }
    }
    Ok(match out {
        None => Cow::Borrowed(text),
        Some(mut out) => {
            out.push_str(&text[copied..]);
            Cow::Owned(out)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_leave_every_other_byte_of_every_value_alone() {
        let text = r#"{"a": 1.00, "b": {"z":1, "a":2}, "c": "x"}"#;
        let fields = Fields::read(text).unwrap();
        assert_eq!(
            fields.with(&[("a", None), ("c", Some("[]".into())), ("d", Some("null".into()))]),
            r#"{"b":{"z":1, "a":2},"c":[],"d":null}"#
        );
    }

    #[test]
    fn compact_text_is_the_same_json() {
        let text = "{ \"a b\" : [ 1.00 ,\t\"x \\\" \\\\\" ] ,\n \"c\":{ } }";
        assert_eq!(compact(text), r#"{"a b":[1.00,"x \" \\"],"c":{}}"#);
        assert!(matches!(compact(r#"{"a":"b c"}"#), Cow::Borrowed(_)));
        assert_eq!(compact(" [1]\n"), "[1]");
    }

    #[test]
    fn an_empty_list_is_recognised_by_its_first_bytes() {
        assert_eq!(is_empty_list(" [ ]"), Some(true));
        assert_eq!(is_empty_list("[[]]"), Some(false));
        assert_eq!(is_empty_list("{}"), None);
    }

    #[test]
    fn measuring_ignores_brackets_inside_strings() {
        assert_eq!(measure(r#"{"a":"[[[\"{","b":[1,2]}"#), Measure { depth: 2, nodes: 5 });
    }

    #[test]
    fn extreme_depth_is_measured_without_recursion() {
        let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        assert_eq!(measure(&deep).depth, 1_000_000);
    }

    #[test]
    fn only_changed_strings_are_rewritten() {
        let text = r#"{ "k" : "a\u0062", "n": 1e2 }"#;
        let drop_b = |s: &str, _| s.contains('b').then(|| s.replace('b', ""));
        assert_eq!(map_strings(text, drop_b).unwrap(), r#"{ "k" : "a", "n": 1e2 }"#);
        assert!(matches!(map_strings(text, |_, _| None), Ok(Cow::Borrowed(_))));
        assert!(map_strings(r#"{"k":"\udc01"}"#, |_, _| None).is_err());
    }
}
