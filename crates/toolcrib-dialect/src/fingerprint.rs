//! What somebody said, hashed so that it can be found again in a client's next request.
//!
//! Clients change white space, markers and the spelling of arguments between requests, so none of that is
//! part of the hash. Ids of calls are; arguments, in canonical form, only if a call has no unique id.

/// Characters from which on an id can be taken for unique. Some servers count their calls: `call_0`.
const UNIQUE_ID: usize = 12;

/// What somebody said, however it is written down.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fingerprint {
    text: blake3::Hasher,
    calls: blake3::Hasher,
    pub(crate) has_unique_id: bool,
}

impl Fingerprint {
    /// Adds text; how it is cut into pieces and its white space do not count.
    pub(crate) fn text(&mut self, text: &str) {
        for word in text.split_whitespace() {
            self.text.update(word.as_bytes());
        }
    }

    /// Adds a call, or the answer to one. Its arguments count only where there is no id to know it by.
    pub(crate) fn call(&mut self, id: Option<&str>, name: &str, arguments: &str) {
        let id = id.unwrap_or_default();
        let unique = is_unique(id, name);
        self.has_unique_id |= unique;
        let canonical = if unique { String::new() } else { canonical(arguments) };
        for part in [id, name, &canonical] {
            self.calls.update(&(part.len() as u64).to_le_bytes());
            self.calls.update(part.as_bytes());
        }
    }

    pub(crate) fn hash(&self) -> [u8; 32] {
        let mut both = blake3::Hasher::new();
        both.update(self.text.finalize().as_bytes());
        both.update(self.calls.finalize().as_bytes());
        *both.finalize().as_bytes()
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

/// JSON without white space and with its keys in order; any other text as it is.
fn canonical(text: &str) -> String {
    serde_json::from_str::<serde_json::Value>(text).map_or_else(
        |_| text.to_owned(),
        |mut value| {
            value.sort_all_objects();
            value.to_string()
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
