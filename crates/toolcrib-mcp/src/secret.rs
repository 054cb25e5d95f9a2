//! Text that must not be printed: tokens, headers, values of environment variables.
//!
//! Whatever is written about a server, in a log, an error or a table, a secret in it shows as `***`.
//! Reading one takes a call that is easy to look for.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;

/// Text that must not be printed.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct Secret(Arc<str>);

impl Secret {
    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
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
