//! Text that must not be printed: tokens, header values, values of environment variables.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use subtle::ConstantTimeEq as _;

/// Minimum length of a secret that is searched for in other text, in bytes. Shorter secrets could occur in ordinary
/// words.
const MIN_SEARCHED_BYTES: usize = 8;

/// A secret text. It is printed as `***` and never serialised. Clones share the same bytes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Returns the text itself. Every call of this function deserves a review.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether `given` is this secret, compared in constant time.
    ///
    /// Both texts are hashed first, because comparing slices of different lengths would reveal the length. An empty
    /// secret matches nothing.
    pub fn matches(&self, given: &str) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let (ours, theirs) = (blake3::hash(self.0.as_bytes()), blake3::hash(given.as_bytes()));
        ours.as_bytes().ct_eq(theirs.as_bytes()).into()
    }

    /// Whether a text contains this secret. Returns `false` for a secret of fewer than 8 bytes.
    ///
    /// The search does not take constant time, but the differences are too small to be measured over a network.
    pub fn is_in(&self, text: &str) -> bool {
        self.is_searchable() && text.contains(&*self.0)
    }

    /// Whether the secret is long enough to be searched for in other text.
    pub fn is_searchable(&self) -> bool {
        self.0.len() >= MIN_SEARCHED_BYTES
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(Self::from)
    }
}

/// The schema of a text. References such as `${NAME}` are allowed in it.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for Secret {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_printed_as_stars_and_keeps_its_text() {
        let secret = Secret::from("canary");
        assert_eq!(
            format!("{secret} {secret:?} {:#?}", Some(&secret)),
            "*** *** Some(\n    ***,\n)"
        );
        assert_eq!(secret.clone().expose(), "canary");
        assert!(secret.matches("canary"));
        for other in ["", "canar", "canary ", "Canary"] {
            assert!(!secret.matches(other), "{other:?}");
        }
        assert!(!Secret::default().matches(""));
        assert!(!secret.is_in("canary"), "too short to be searched for");
        let long = Secret::from("canary-bird");
        assert!(long.is_in("a canary-bird.") && !long.is_in("a canary-bir") && !long.is_in(""));
    }
}
