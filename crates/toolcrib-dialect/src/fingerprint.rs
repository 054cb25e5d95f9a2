//! What somebody said, hashed so that it can be found again in a client's next request.
//!
//! Clients change white space, markers and the spelling of arguments between requests, so none of that is
//! part of a hash. There are two hashes, since some clients change ids as well. The strict one has the ids
//! of calls, and arguments, in canonical form, only if a call has no unique id. The loose one has names and
//! arguments, and no ids: it finds what a client that invents or rewrites ids echoes.

use serde_json::Value;

/// Characters from which on an id can be taken for unique. Some servers count their calls: `call_0`.
const UNIQUE_ID: usize = 12;

/// What somebody said, however it is written down.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fingerprint {
    text: blake3::Hasher,
    calls: blake3::Hasher,
    /// The calls without their ids.
    bare: blake3::Hasher,
    pub(crate) has_unique_id: bool,
}

impl Fingerprint {
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
        let canonical = canonical(arguments);
        add(&mut self.calls, &[id, name, if unique { "" } else { &canonical }]);
        add(&mut self.bare, &["", name, &canonical]);
    }

    /// The strict hash.
    pub(crate) fn hash(&self) -> [u8; 32] {
        self.with_calls(&self.calls)
    }

    /// The hash without ids. The same as [`hash`](Self::hash) if there are none.
    pub(crate) fn loose_hash(&self) -> [u8; 32] {
        self.with_calls(&self.bare)
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

/// JSON without white space, with its keys in order and with numbers as a client in JavaScript writes them,
/// which knows no integers; any other text as it is.
fn canonical(text: &str) -> String {
    serde_json::from_str::<Value>(text).map_or_else(
        |_| text.to_owned(),
        |mut value| {
            value.sort_all_objects();
            round(&mut value);
            value.to_string()
        },
    )
}

/// Makes every number a float: `1`, `1.0` and `1e0` are the same.
fn round(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) = number.as_f64().and_then(serde_json::Number::from_f64) {
                *number = float;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(round),
        Value::Object(map) => map.values_mut().for_each(round),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loose_hash_ignores_ids_and_the_spelling_of_numbers() {
        let hashes = |id, arguments| {
            let mut print = Fingerprint::default();
            print.text("Let me look.");
            print.call(id, "find", arguments);
            (print.hash(), print.loose_hash())
        };
        let (strict, loose) = hashes(Some("call_hQ3xP0aZk71"), r#"{"a":1.0,"b":[2]}"#);
        let (other, same) = hashes(Some("find__call_hQ3xP0aZk71"), r#"{"b": [2.0], "a": 1}"#);
        assert_eq!((loose, strict == other), (same, false));
        assert_eq!(hashes(None, r#"{"a":1,"b":[2]}"#), (loose, loose));
        assert_ne!(hashes(None, r#"{"a":2,"b":[2]}"#).1, loose);
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
