//! Reads JSON of clients and backends leniently.
//!
//! One unexpected value must not make a conversation fail. Values that cannot be read are treated as absent. Known
//! content without a counterpart in the other API is recorded as dropped.

use serde::de::{Deserializer, Error, Visitor};
use toolcrib_text::json::Fields;

/// The content that was left out of a request. Each name is listed once, in the order of its first occurrence.
#[derive(Debug, Default)]
pub(super) struct DroppedContent(Vec<String>);

impl DroppedContent {
    /// Records that something was left out. `what` is its kind (`tool`, `content`, `item`, `field`).
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

/// Returns the value under `key`, unless it is absent or `null`.
pub(super) fn value<'a>(fields: &Fields<'a>, key: &str) -> Option<&'a str> {
    fields.get(key).filter(|raw| *raw != "null")
}

/// Returns the object under `key`. Any other value is treated as absent.
pub(super) fn object<'a>(fields: &Fields<'a>, key: &str) -> Option<Fields<'a>> {
    fields.get(key).and_then(Fields::read)
}

/// Returns the boolean under `key`. Any other value is treated as absent.
pub(super) fn flag(fields: &Fields<'_>, key: &str) -> Option<bool> {
    match fields.get(key)? {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Returns the string under `key`. Any other value is treated as absent.
pub(super) fn text(fields: &Fields<'_>, key: &str) -> Option<String> {
    fields.get(key).and_then(string)
}

/// Decodes a JSON string. JavaScript produces half a surrogate pair when it cuts a string inside an emoji. Here it
/// becomes a replacement character instead of an error.
pub(super) fn string(raw: &str) -> Option<String> {
    if !raw.starts_with('"') {
        return None;
    }
    let bytes = serde_json::Deserializer::from_str(raw).deserialize_byte_buf(BytesVisitor).ok()?;
    Some(String::from_utf8(bytes).unwrap_or_else(|odd| {
        // Half a surrogate pair is decoded to three invalid bytes, and each of them would become a replacement
        // character. One is enough.
        String::from_utf8_lossy(odd.as_bytes()).replace("\u{fffd}\u{fffd}\u{fffd}", "\u{fffd}")
    }))
}

/// Decodes a JSON string to bytes, which may be invalid UTF-8.
struct BytesVisitor;

impl Visitor<'_> for BytesVisitor {
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
    fn half_a_surrogate_pair_becomes_one_replacement_character() {
        assert_eq!(string(r#""a\u00e9\ud83d\ude00""#).as_deref(), Some("aé😀"));
        assert_eq!(string(r#""cut \ud83d here""#).as_deref(), Some("cut \u{fffd} here"));
        assert_eq!(string("[1]"), None);
    }

    #[test]
    fn dropped_content_is_listed_once() {
        let mut dropped = DroppedContent::default();
        for name in ["a", "b", "a"] {
            dropped.note("tool", name);
        }
        assert_eq!(dropped.into_names(), ["tool `a`", "tool `b`"]);
    }
}
