//! What somebody said, hashed so that it can be found again in a client's next request.
//!
//! Clients change white space, markers and the spelling of arguments between requests, so none of that is
//! part of a hash. There are two hashes, since some clients change ids as well. The strict one has the ids
//! of calls, and arguments, in canonical form, only if a call has no unique id. The loose one has names and
//! arguments, and no ids: it finds what a client that invents or rewrites ids echoes.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

/// Characters from which on an id can be taken for unique. Some servers count their calls: `call_0`.
const UNIQUE_ID: usize = 12;

/// What somebody said, however it is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    /// The hash with ids.
    pub(crate) strict: [u8; 32],
    /// The hash without ids. Equal to the strict one if there are no ids.
    pub(crate) loose: [u8; 32],
    pub(crate) has_unique_id: bool,
}

/// Makes a fingerprint. A builder takes several kilobytes, so a conversation keeps only the finished fingerprints.
#[derive(Debug, Clone, Default)]
pub(crate) struct FingerprintBuilder {
    text: blake3::Hasher,
    calls: blake3::Hasher,
    /// The calls without their ids.
    bare: blake3::Hasher,
    has_unique_id: bool,
}

impl FingerprintBuilder {
    /// Adds text; how it is cut into pieces and its white space do not count.
    pub(crate) fn text(&mut self, text: &str) {
        for word in text.split_whitespace() {
            self.text.update(word.as_bytes());
        }
    }

    /// Adds a call, or the answer to one. To the strict hash its arguments count only if there is no id to
    /// know it by.
    pub(crate) fn call(&mut self, id: Option<&str>, name: &str, arguments: &str) {
        let id = id.unwrap_or_default();
        let unique = is_unique(id, name);
        self.has_unique_id |= unique;
        // The answer to a call has none.
        let canonical = if arguments.is_empty() { [0; 32] } else { canonical(arguments) };
        add(&mut self.calls, &[id, name]);
        if !unique {
            self.calls.update(&canonical);
        }
        add(&mut self.bare, &["", name]);
        self.bare.update(&canonical);
    }

    /// The fingerprint of what was added so far.
    pub(crate) fn finish(&self) -> Fingerprint {
        Fingerprint {
            strict: self.with_calls(&self.calls),
            loose: self.with_calls(&self.bare),
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

/// Whether an id can be taken for unique: one that ends in a number that only counts must have enough
/// before it that is not the tool's name. `functions.bash:0` has not.
fn is_unique(id: &str, name: &str) -> bool {
    let bare = id.trim_end_matches(|c: char| c.is_ascii_digit());
    if bare.len() == id.len() || !bare.ends_with([':', '_', '-', '.', '#']) {
        return id.len() >= UNIQUE_ID;
    }
    let name = if name.is_empty() { 0 } else { bare.matches(name).count() * name.len() };
    bare.len() - name >= UNIQUE_ID
}

/// Hashes JSON so that white space, the order of keys and the spelling of strings and numbers do not count. Numbers are
/// floats, since a client in JavaScript knows no others. Any other text is hashed as it is.
///
/// This is done for every call in the history of every request, so no tree of owned values is made.
fn canonical(text: &str) -> [u8; 32] {
    // Hashing many small pieces costs more than putting them together first.
    let mut out = Vec::with_capacity(text.len() + text.len() / 2);
    match serde_json::from_str::<Node<'_>>(text) {
        Ok(mut node) => node.write(&mut out),
        Err(_) => put(&mut out, b'?', text.as_bytes()),
    }
    *blake3::hash(&out).as_bytes()
}

/// Writes a kind, a length and some bytes.
fn put(out: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    begin(out, kind, bytes.len());
    out.extend_from_slice(bytes);
}

fn begin(out: &mut Vec<u8>, kind: u8, length: usize) {
    out.push(kind);
    out.extend_from_slice(&(length as u64).to_le_bytes());
}

/// A JSON value that borrows what it can from the text.
enum Node<'a> {
    Null,
    Bool(bool),
    Number(f64),
    Text(Cow<'a, str>),
    List(Vec<Self>),
    Object(Vec<(Cow<'a, str>, Self)>),
}

impl Node<'_> {
    /// Writes the value. Each begins with its kind, and what has a length with that, so that no two values look the
    /// same.
    fn write(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.push(b'n'),
            Self::Bool(value) => out.push(if *value { b't' } else { b'f' }),
            Self::Number(number) => {
                // `-0` is `0` to a client in JavaScript.
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
                // If a key occurs twice, the last one counts, as in JavaScript.
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

impl<'de> Deserialize<'de> for Node<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Node<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Node::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
                Ok(Node::Bool(value))
            }

            #[expect(clippy::cast_precision_loss, reason = "as a client in JavaScript reads it")]
            fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
                Ok(Node::Number(value as f64))
            }

            #[expect(clippy::cast_precision_loss, reason = "as a client in JavaScript reads it")]
            fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
                Ok(Node::Number(value as f64))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
                Ok(Node::Number(value))
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Node::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Node::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Node::List(items))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((Key(key), value)) = map.next_entry()? {
                    fields.push((key, value));
                }
                Ok(Node::Object(fields))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// A key, borrowed if its text has no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loose_hash_ignores_ids_and_the_spelling_of_numbers() {
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
    fn arguments_count_by_their_value() {
        let same = [
            (r#"{"a":-0.0,"b":"\u00e9\/"}"#, "{\"b\": \"é/\", \"a\": 0}"),
            ("[-0, 1e2, 9007199254740993]", "[0,100.0,9007199254740992]"),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
            (r#"{"a":{"c":null,"b":true}}"#, r#"{"a":{"b":true,"c":null}}"#),
        ];
        for (one, other) in same {
            assert_eq!(canonical(one), canonical(other), "{one} {other}");
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
            assert_ne!(canonical(one), canonical(other), "{one} {other}");
        }
    }

    #[test]
    fn ids_that_count_are_not_unique() {
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
