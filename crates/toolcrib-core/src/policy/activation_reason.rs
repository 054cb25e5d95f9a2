//! Why a conversation defers or does not, as a value and as text.
//!
//! [`Activation::decide`](super::Activation::decide) returns it; `explain`, headers, logs and tests print it.

use std::fmt;

/// Why a conversation defers or does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ActivationReason {
    /// Configured off.
    Off,
    /// The search tool is not allowed, so nothing could be loaded.
    NoSearch,
    /// No tool may be deferred.
    NothingToDefer,
    /// Configured on.
    On,
    /// Not every server has answered yet, and the caller defers until they have.
    Incomplete,
    /// It has deferred before.
    Sticky,
    /// Enough tools.
    Count {
        /// How many there are.
        tools: usize,
        /// How many are enough.
        threshold: usize,
    },
    /// Enough tokens.
    Tokens {
        /// How many there are.
        tokens: usize,
        /// How many are enough.
        threshold: usize,
        /// What the threshold is.
        source: ThresholdSource,
    },
    /// Neither enough tools nor enough tokens.
    Below {
        /// The token threshold and where it comes from; `None` if tokens do not count.
        threshold: Option<(ThresholdSource, usize)>,
    },
    /// Servers are still connecting, and what is there is not enough: ask again next turn.
    StillConnecting,
    /// What would stand in the tools' place costs more than they do.
    NoSaving {
        /// Tokens as they are.
        before: usize,
        /// Tokens deferred.
        after: usize,
    },
}

/// What a threshold of tokens is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThresholdSource {
    /// A number in the settings.
    Fixed,
    /// A share of the context window.
    Share {
        /// The window, in tokens.
        window: usize,
    },
    /// A number in the settings, because a share is set and the window is unknown.
    UnknownWindow,
}

impl ThresholdSource {
    /// Why the threshold is this many tokens, to be put after the number.
    fn reason(self, threshold: usize) -> String {
        match self {
            Self::Fixed => String::new(),
            Self::Share { window } => {
                // The threshold is rounded down to whole tokens, so this is the configured share again.
                let percent = (threshold as f64 * 1_000.0 / window as f64).round() / 10.0;
                format!(" ({percent} % of the {window}-token context window)")
            }
            Self::UnknownWindow => " because the context window is unknown".to_owned(),
        }
    }
}

impl fmt::Display for ActivationReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("tool search is off"),
            Self::NoSearch => f.write_str("the search tool is not allowed, so every tool is shown"),
            Self::NothingToDefer => f.write_str("no tool may be deferred"),
            Self::On => f.write_str("tool search is on"),
            Self::Incomplete => f.write_str("not every server has answered yet"),
            Self::Sticky => f.write_str("this conversation already defers"),
            Self::Count { tools, threshold } => {
                write!(f, "{tools} tools, the threshold is {threshold}")
            }
            Self::Tokens { tokens, threshold, source } => {
                let reason = source.reason(*threshold);
                write!(f, "{tokens} tokens of tools, the threshold is {threshold}{reason}")
            }
            Self::Below { threshold: Some((source @ ThresholdSource::UnknownWindow, tokens)) } => {
                let reason = source.reason(*tokens);
                write!(f, "below the thresholds; the token threshold is {tokens}{reason}")
            }
            Self::Below { .. } => f.write_str("below the thresholds"),
            Self::StillConnecting => f.write_str("servers are still connecting: not decided yet"),
            Self::NoSaving { before, after } => {
                write!(f, "no saving: {before} tokens as they are, {after} deferred")
            }
        }
    }
}
