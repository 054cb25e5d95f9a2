//! Counting tokens.
//!
//! Everything that enters the model's context has a budget in tokens. The caller chooses how tokens are counted. The
//! crate `toolcrib-tokens` has exact counters. Without a counter, tokens are estimated, and the number is labelled as
//! an estimate wherever it is shown.

use std::fmt;

/// Counts the tokens of a text.
pub trait TokenCounter: fmt::Debug + Send + Sync {
    /// The number of tokens in `text`.
    fn count(&self, text: &str) -> usize;

    /// A label to show with the number: the name of the vocabulary, or how the number was estimated.
    fn label(&self) -> &str;

    /// Whether the count is exact for its vocabulary.
    fn is_exact(&self) -> bool;
}

/// Estimates one token per four characters, rounded up.
#[derive(Debug, Clone, Copy, Default)]
pub struct FourCharsPerToken;

impl TokenCounter for FourCharsPerToken {
    fn count(&self, text: &str) -> usize {
        text.chars().count().div_ceil(4)
    }

    fn label(&self) -> &'static str {
        "chars/4 estimate"
    }

    fn is_exact(&self) -> bool {
        false
    }
}
