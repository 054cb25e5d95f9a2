//! A key that no log shows.

use std::fmt;

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

/// A credential. It is compared in constant time and never printed.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Takes a credential.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The credential itself: to be sent, and for nothing else.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether somebody has it.
    pub fn matches(&self, given: &str) -> bool {
        !self.0.is_empty() && bool::from(self.0.as_bytes().ct_eq(given.as_bytes()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
