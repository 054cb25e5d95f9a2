//! The reason why a conversation defers tools or not, as a value and as text.
//!
//! `Activation::decide` returns the reason; `explain`, headers, logs and tests print it.

use std::fmt;

/// The reason why a conversation defers tools or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ActivationReason {
    /// The configuration turns deferral off.
    Off,
    /// The model may not call the search tool, so it could not load deferred tools.
    NoSearch,
    /// No tool may be deferred.
    NothingToDefer,
    /// The configuration turns deferral on.
    On,
    /// Not every server has listed its tools yet, and the caller wants tools to be deferred until then.
    Incomplete,
    /// The conversation has deferred tools before and keeps doing so.
    Sticky,
    /// The number of tools reached its threshold.
    Count {
        /// Number of tools.
        tools: usize,
        /// The threshold.
        threshold: usize,
    },
    /// The tokens of the tools that may be deferred reached their threshold.
    Tokens {
        /// Number of tokens.
        tokens: usize,
        /// The threshold.
        threshold: usize,
        /// Where the threshold comes from.
        source: ThresholdSource,
    },
    /// No threshold is reached.
    Below {
        /// The token threshold and where it comes from; `None` if no token threshold applies.
        threshold: Option<(ThresholdSource, usize)>,
    },
    /// Servers are still connecting, and the known tools do not reach a threshold. The next turn decides again.
    StillConnecting,
    /// A turn with one search would take at least as many tokens as a turn without deferral.
    SearchCostsMore {
        /// Tokens of all tools without deferral.
        before: usize,
        /// Tokens with deferral, in a turn with one search.
        after: usize,
    },
    /// The text that would replace the deferred tools costs at least as many tokens as the tools themselves.
    NoSaving {
        /// Tokens of the tools that may be deferred.
        before: usize,
        /// Tokens of what would replace these tools.
        after: usize,
    },
}

/// Where a token threshold comes from.
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
    /// A number in the settings. It is used because the window is unknown and the configured share therefore cannot be
    /// computed.
    UnknownWindow,
}

impl ThresholdSource {
    /// Returns an explanation of the threshold, to be appended to its number. It is empty for a fixed threshold.
    fn reason(self, threshold: usize) -> String {
        match self {
            Self::Fixed => String::new(),
            Self::Share { window } => {
                // The threshold was rounded down to whole tokens. Rounding the percentage here restores the configured
                // value.
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
            Self::SearchCostsMore { before, after } => {
                write!(
                    f,
                    "no saving: {before} tokens in full, {after} if deferred and searched once"
                )
            }
            Self::NoSaving { before, after } => {
                write!(f, "no saving: {before} tokens in full, {after} if deferred")
            }
        }
    }
}
