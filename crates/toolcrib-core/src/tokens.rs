//! Sizes in tokens.
//!
//! Everything that enters the model's context has a budget in tokens. How tokens are counted is the
//! caller's affair: exact counters live in `toolcrib-tokens`, and without one the usual estimate
//! stands in, labelled as such wherever it is shown.

use std::fmt;

/// Counts the tokens of a text.
pub trait TokenCounter: fmt::Debug + Send + Sync {
    /// How many tokens `text` is.
    fn count(&self, text: &str) -> usize;

    /// What to call the number: the vocabulary, or the rule of an estimate.
    fn label(&self) -> &str;

    /// Whether the count is exact for its vocabulary.
    fn is_exact(&self) -> bool;
}

/// Four characters a token, rounded up: the rule of thumb that needs no vocabulary.
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
