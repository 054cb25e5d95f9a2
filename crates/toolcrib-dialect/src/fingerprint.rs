//! Fingerprints, by which a turn of the model is recognised in the client's next request.
//!
//! Clients change white space, cache markers and the formatting of arguments between requests, so none of that is part
//! of a fingerprint.
//!
//! Some clients change ids as well, so a fingerprint has two hashes. The strict hash includes the ids of calls. It also
//! includes the arguments of calls that have no unique id, in canonical form. The loose hash includes names and
//! arguments but no ids. It is for clients that invent or rewrite ids.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

/// Minimum length of an id that counts as unique. Shorter ids, such as `call_0`, may only number the calls of one
/// response.
const MIN_UNIQUE_ID_LENGTH: usize = 12;

/// The fingerprint of a segment of the history. It does not depend on the segment's formatting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentFingerprint {
    /// The hash with ids.
    pub(crate) strict: [u8; 32],
    /// The hash without ids. Equal to the strict hash if there are no ids.
    pub(crate) loose: [u8; 32],
    pub(crate) has_unique_id: bool,
}

/// Builds a fingerprint. A builder takes several kilobytes, so each segment stores only its finished fingerprint.
#[derive(Debug, Clone, Default)]
pub(crate) struct FingerprintBuilder {
    text: blake3::Hasher,
    calls: blake3::Hasher,
    calls_without_ids: blake3::Hasher,
    has_unique_id: bool,
}

impl FingerprintBuilder {
    /// Adds text. White space is ignored, and so is how the text is divided into parts.
    pub(crate) fn text(&mut self, text: &str) {
        for word in text.split_whitespace() {
            self.text.update(word.as_bytes());
        }
    }

    /// Adds a call, or the result of one. The strict hash includes the arguments only if the id is not unique.
    pub(crate) fn call(&mut self, id: Option<&str>, name: &str, arguments: &str) {
        let id = id.unwrap_or_default();
        let is_unique = is_unique(id, name);
        self.has_unique_id |= is_unique;
        // Tool results are added without arguments.
        let arguments = if arguments.is_empty() { [0; 32] } else { hash_canonical(arguments) };
        add(&mut self.calls, &[id, name]);
        if !is_unique {
            self.calls.update(&arguments);
        }
        add(&mut self.calls_without_ids, &["", name]);
        self.calls_without_ids.update(&arguments);
    }

    /// Returns the fingerprint of what was added so far.
    pub(crate) fn finish(&self) -> SegmentFingerprint {
        SegmentFingerprint {
            strict: self.with_calls(&self.calls),
            loose: self.with_calls(&self.calls_without_ids),
            has_unique_id: self.has_unique_id,
        }
    }

    fn with_calls(&self, calls: &blake3::Hasher) -> [u8; 32] {
        let mut both = blake3::Hasher::new();
        both.update(self.text.finalize().as_bytes());
        both.update(calls.finalize().as_bytes());
        *both.finalize().as_bytes()
    }
}

fn add(hasher: &mut blake3::Hasher, parts: &[&str]) {
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
}

/// Whether an id is probably unique, judging by its length. If an id ends with a running number, neither the number nor
/// the tool's name counts towards the length. So `functions.bash:0` is not unique.
fn is_unique(id: &str, name: &str) -> bool {
    let bare = id.trim_end_matches(|c: char| c.is_ascii_digit());
    if bare.len() == id.len() || !bare.ends_with([':', '_', '-', '.', '#']) {
        return id.len() >= MIN_UNIQUE_ID_LENGTH;
    }
    let name = if name.is_empty() { 0 } else { bare.matches(name).count() * name.len() };
    bare.len() - name >= MIN_UNIQUE_ID_LENGTH
}

/// Hashes JSON in a canonical form: white space, the order of keys and the notation of strings and numbers make no
/// difference. Numbers are parsed as floats, as in JavaScript. Text that is not JSON is hashed unchanged.
///
/// This is done for every call in the history of every request. To be fast, it does not build a tree of owned values.
fn hash_canonical(text: &str) -> [u8; 32] {
    // Hashing one buffer is faster than hashing many small pieces.
    let mut out = Vec::with_capacity(text.len() + text.len() / 2);
    match serde_json::from_str::<JsonNode<'_>>(text) {
        Ok(mut node) => node.write(&mut out),
        Err(_) => put(&mut out, b'?', text.as_bytes()),
    }
    *blake3::hash(&out).as_bytes()
}

/// Writes the kind of a value, its length, and its bytes.
fn put(out: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    begin(out, kind, bytes.len());
    out.extend_from_slice(bytes);
}

fn begin(out: &mut Vec<u8>, kind: u8, length: usize) {
    out.push(kind);
    out.extend_from_slice(&(length as u64).to_le_bytes());
}

/// A JSON value that borrows from the text where possible.
enum JsonNode<'a> {
    Null,
    Bool(bool),
    Number(f64),
    Text(Cow<'a, str>),
    List(Vec<Self>),
    Object(Vec<(Cow<'a, str>, Self)>),
}

impl JsonNode<'_> {
    /// Writes the kind of the value, then its length if values of this kind have one, then the value. So different
    /// values never give the same bytes.
    fn write(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.push(b'n'),
            Self::Bool(value) => out.push(if *value { b't' } else { b'f' }),
            Self::Number(number) => {
                // JavaScript clients write `-0` as `0`, so the two must give the same hash.
                let number = if *number == 0.0 { 0.0 } else { *number };
                put(out, b'0', &number.to_le_bytes());
            }
            Self::Text(text) => put(out, b'"', text.as_bytes()),
            Self::List(items) => {
                begin(out, b'[', items.len());
                for item in items {
                    item.write(out);
                }
            }
            Self::Object(fields) => {
                // If a key occurs twice, the last occurrence counts, as in JavaScript.
                fields.reverse();
                fields.sort_by(|(one, _), (other, _)| one.cmp(other));
                fields.dedup_by(|(later, _), (kept, _)| later == kept);
                begin(out, b'{', fields.len());
                for (key, value) in fields {
                    put(out, b'"', key.as_bytes());
                    value.write(out);
                }
            }
        }
    }
}

impl<'de> Deserialize<'de> for JsonNode<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NodeVisitor;
        impl<'de> Visitor<'de> for NodeVisitor {
            type Value = JsonNode<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(JsonNode::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
                Ok(JsonNode::Bool(value))
            }

            #[expect(clippy::cast_precision_loss, reason = "as JavaScript clients read it")]
            fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
                Ok(JsonNode::Number(value as f64))
            }

            #[expect(clippy::cast_precision_loss, reason = "as JavaScript clients read it")]
            fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
                Ok(JsonNode::Number(value as f64))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
                Ok(JsonNode::Number(value))
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(JsonNode::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(JsonNode::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(JsonNode::List(items))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((JsonKey(key), value)) = map.next_entry()? {
                    fields.push((key, value));
                }
                Ok(JsonNode::Object(fields))
            }
        }
        deserializer.deserialize_any(NodeVisitor)
    }
}

/// An object key, borrowed if it has no escapes.
#[derive(Deserialize)]
struct JsonKey<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loose_hash_ignores_ids_and_the_notation_of_numbers() {
        let hashes = |id, arguments| {
            let mut builder = FingerprintBuilder::default();
            builder.text("Let me look.");
            builder.call(id, "find", arguments);
            let print = builder.finish();
            (print.strict, print.loose)
        };
        let (strict, loose) = hashes(Some("call_hQ3xP0aZk71"), r#"{"a":1.0,"b":[2]}"#);
        let (other, same) = hashes(Some("find__call_hQ3xP0aZk71"), r#"{"b": [2.0], "a": 1}"#);
        assert_eq!((loose, strict == other), (same, false));
        assert_eq!(hashes(None, r#"{"a":1,"b":[2]}"#), (loose, loose));
        assert_ne!(hashes(None, r#"{"a":2,"b":[2]}"#).1, loose);
    }

    #[test]
    fn arguments_are_compared_by_value() {
        let same = [
            (r#"{"a":-0.0,"b":"\u00e9\/"}"#, "{\"b\": \"é/\", \"a\": 0}"),
            ("[-0, 1e2, 9007199254740993]", "[0,100.0,9007199254740992]"),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
            (r#"{"a":{"c":null,"b":true}}"#, r#"{"a":{"b":true,"c":null}}"#),
        ];
        for (one, other) in same {
            assert_eq!(hash_canonical(one), hash_canonical(other), "{one} {other}");
        }
        let different = [
            (r#"{"a":"b"}"#, r#"{"b":"a"}"#),
            (r#"["a","b"]"#, r#"["b","a"]"#),
            (r#"["a",["b"]]"#, r#"["a","b"]"#),
            (r#"["ab"]"#, r#"["a","b"]"#),
            ("[0]", r#"["0"]"#),
            ("[null]", "[false]"),
            ("{", "{}"),
        ];
        for (one, other) in different {
            assert_ne!(hash_canonical(one), hash_canonical(other), "{one} {other}");
        }
    }

    #[test]
    fn running_numbers_are_not_unique_ids() {
        for (id, name) in [
            ("call_0", "bash"),
            ("functions.bash:0", "bash"),
            ("functions.read_file:12", "read_file"),
            ("", "bash"),
        ] {
            assert!(!is_unique(id, name), "{id}");
        }
        for id in [
            "call_hQ3xP0aZk71",
            "toolu_01A09q90qw90lq917835",
            "toolu_bash0001",
            "3f2504e0-4f89-41d3",
        ] {
            assert!(is_unique(id, "bash"), "{id}");
        }
    }
}
