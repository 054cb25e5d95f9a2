//! Reading what clients and backends send, forgivingly.
//!
//! A translator that refuses a whole conversation over one odd value helps nobody: what cannot be
//! read counts as absent, and what is known but has no counterpart is noted.

use serde::de::{Deserializer, Error, Visitor};
use toolcrib_text::json::Fields;

/// What was left out of a request, each thing once, in the order it was met.
#[derive(Debug, Default)]
pub(super) struct DroppedContent(Vec<String>);

impl DroppedContent {
    /// Notes one thing: `tool`, `content`, `item`, `field`, and its own name.
    pub(super) fn note(&mut self, what: &str, name: &str) {
        let name = format!("{what} `{name}`");
        if !self.0.contains(&name) {
            self.0.push(name);
        }
    }

    pub(super) fn into_names(self) -> Vec<String> {
        self.0
    }
}

/// A value that is there and is not `null`.
pub(super) fn value<'a>(fields: &Fields<'a>, key: &str) -> Option<&'a str> {
    fields.get(key).filter(|raw| *raw != "null")
}

/// An object under `key`.
pub(super) fn object<'a>(fields: &Fields<'a>, key: &str) -> Option<Fields<'a>> {
    fields.get(key).and_then(Fields::read)
}

/// A truth value under `key`.
pub(super) fn flag(fields: &Fields<'_>, key: &str) -> Option<bool> {
    match fields.get(key)? {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// The text under `key`.
pub(super) fn text(fields: &Fields<'_>, key: &str) -> Option<String> {
    fields.get(key).and_then(string)
}

/// A JSON string as text. Half a surrogate pair, which JavaScript leaves behind when it cuts a string
/// inside an emoji, becomes a replacement character instead of costing the whole text.
pub(super) fn string(raw: &str) -> Option<String> {
    if !raw.starts_with('"') {
        return None;
    }
    let bytes = serde_json::Deserializer::from_str(raw).deserialize_byte_buf(Bytes).ok()?;
    Some(String::from_utf8(bytes).unwrap_or_else(|odd| {
        // Each half is three bytes that are no UTF-8, and would be three replacement characters.
        String::from_utf8_lossy(odd.as_bytes()).replace("\u{fffd}\u{fffd}\u{fffd}", "\u{fffd}")
    }))
}

/// A string as the bytes it stands for.
struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON string")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_surrogate_pair_costs_one_character() {
        assert_eq!(string(r#""a\u00e9\ud83d\ude00""#).as_deref(), Some("aé😀"));
        assert_eq!(string(r#""cut \ud83d here""#).as_deref(), Some("cut \u{fffd} here"));
        assert_eq!(string("[1]"), None);
    }

    #[test]
    fn what_was_left_out_is_named_once() {
        let mut dropped = DroppedContent::default();
        for name in ["a", "b", "a"] {
            dropped.note("tool", name);
        }
        assert_eq!(dropped.into_names(), ["tool `a`", "tool `b`"]);
    }
}
