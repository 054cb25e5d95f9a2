//! Whether a conversation defers, and why.

use serde::{Deserialize, Deserializer, Serialize};

use super::activation_reason::{ActivationReason, ThresholdSource};

/// Whether deferral is up to the numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ActivationMode {
    /// The numbers decide.
    #[default]
    Auto,
    /// Defer whatever may be deferred.
    On,
    /// Defer nothing.
    Off,
}

impl<'de> Deserialize<'de> for ActivationMode {
    /// `auto`, `on`, `off`, or the shorthand `true` (auto) and `false` (off).
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Flag(bool),
            Word(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Flag(true) => Ok(Self::Auto),
            Written::Flag(false) => Ok(Self::Off),
            Written::Word(word) => match word.to_ascii_lowercase().as_str() {
                "auto" => Ok(Self::Auto),
                "on" => Ok(Self::On),
                "off" => Ok(Self::Off),
                _ => Err(serde::de::Error::custom(format!(
                    "`{word}` is none of `auto`, `on`, `off`, `true`, `false`"
                ))),
            },
        }
    }
}

/// When deferral sets in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the file")]
#[non_exhaustive]
pub struct Activation {
    /// On, off, or by the numbers.
    pub mode: ActivationMode,
    /// At this many tools, counted over all of them; 0 for never by count.
    pub tools: usize,
    /// At this many tokens of tools that could be deferred; 0 for never by tokens.
    pub tokens: usize,
    /// At this share of the context window, in percent; 0 for never by share. Where both are set
    /// the smaller number counts: ten percent of a million tokens is not a small prompt.
    pub context_percent: f64,
    /// Whether `tokens` counts only where the window is not known.
    pub tokens_if_unknown: bool,
    /// Whether what must always be deferred is deferred below the thresholds too.
    pub always_below: bool,
    /// Whether nothing is deferred that would cost more deferred than as it is.
    pub only_if_saving: bool,
    /// Keep deferring once a conversation has begun to. Off, each turn decides anew, so that
    /// removing servers returns to direct exposure, at the price of a changed prompt.
    pub sticky: bool,
}

impl Default for Activation {
    fn default() -> Self {
        Self {
            mode: ActivationMode::Auto,
            tools: 15,
            tokens: 20_000,
            context_percent: 10.0,
            tokens_if_unknown: false,
            always_below: true,
            only_if_saving: true,
            sticky: true,
        }
    }
}

/// What the decision rests on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ActivationInputs {
    /// All tools in scope.
    pub tools: usize,
    /// Those that may be deferred.
    pub deferrable: usize,
    /// Those that must be deferred below the threshold too.
    pub always: usize,
    /// Tokens of the deferrable ones.
    pub deferrable_tokens: usize,
    /// Tokens that would stand in their place: search tool, listing, instruction, stubs.
    pub replacement_tokens: usize,
    /// The model's context window, where it is known.
    pub context_window: Option<usize>,
    /// Whether servers are still connecting.
    pub connecting: bool,
    /// Whether tools are deferred until the catalog is complete.
    pub incomplete: bool,
    /// Whether the model may call the search tool.
    pub search_allowed: bool,
    /// Whether this conversation has deferred before.
    pub deferred_before: bool,
}

/// How much a conversation defers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deferral {
    /// Nothing: the tools pass through as they came.
    Nothing,
    /// Only what must always be deferred.
    OnlyAlways,
    /// Whatever may be deferred.
    Everything,
}

/// How much is deferred, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// How much.
    pub deferral: Deferral,
    /// Why.
    pub reason: ActivationReason,
}

impl Activation {
    /// Decides for one turn.
    ///
    /// While servers are still connecting, a catalog can only grow: enough is enough already, and
    /// "not enough" is no decision. A conversation that has begun to defer goes on doing so.
    pub fn decide(&self, facts: &ActivationInputs) -> Decision {
        let nothing = |reason| Decision { deferral: Deferral::Nothing, reason };
        let everything = |reason| Decision { deferral: Deferral::Everything, reason };
        if self.mode == ActivationMode::Off {
            return nothing(ActivationReason::Off);
        }
        if !facts.search_allowed {
            return nothing(ActivationReason::NoSearch);
        }
        if facts.deferrable == 0 {
            return nothing(ActivationReason::NothingToDefer);
        }
        if self.mode == ActivationMode::On {
            return everything(ActivationReason::On);
        }
        if facts.incomplete {
            return everything(ActivationReason::Incomplete);
        }
        if self.sticky && facts.deferred_before {
            return everything(ActivationReason::Sticky);
        }
        let reason = match self.enough(facts) {
            Some(enough)
                if !self.only_if_saving || facts.replacement_tokens < facts.deferrable_tokens =>
            {
                return everything(enough);
            }
            Some(_) => ActivationReason::NoSaving {
                before: facts.deferrable_tokens,
                after: facts.replacement_tokens,
            },
            None if facts.connecting => ActivationReason::StillConnecting,
            None => ActivationReason::Below { threshold: self.tokens_threshold(facts) },
        };
        // What its owner wants deferred always is not the numbers' to expose.
        let always = self.always_below && facts.always > 0;
        let deferral = if always { Deferral::OnlyAlways } else { Deferral::Nothing };
        Decision { deferral, reason }
    }

    fn enough(&self, facts: &ActivationInputs) -> Option<ActivationReason> {
        if self.tools > 0 && facts.tools >= self.tools {
            return Some(ActivationReason::Count { tools: facts.tools, threshold: self.tools });
        }
        let (source, threshold) = self.tokens_threshold(facts)?;
        let tokens = facts.deferrable_tokens;
        (tokens >= threshold).then_some(ActivationReason::Tokens { tokens, threshold, source })
    }

    /// The token threshold: the smaller of the fixed number and the share of the window, if both apply.
    fn tokens_threshold(&self, facts: &ActivationInputs) -> Option<(ThresholdSource, usize)> {
        let takes_share = self.context_percent > 0.0;
        let share = facts.context_window.filter(|_| takes_share).map(|window| {
            let tokens = (window as f64 * self.context_percent / 100.0) as usize;
            (ThresholdSource::Share { window }, tokens)
        });
        let counts = self.tokens > 0 && !(self.tokens_if_unknown && facts.context_window.is_some());
        let is_unknown = takes_share && facts.context_window.is_none();
        let source =
            if is_unknown { ThresholdSource::UnknownWindow } else { ThresholdSource::Fixed };
        let fixed = counts.then_some((source, self.tokens));
        share.into_iter().chain(fixed).min_by_key(|(_, tokens)| *tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> ActivationInputs {
        ActivationInputs {
            tools: 20,
            deferrable: 18,
            deferrable_tokens: 5_000,
            replacement_tokens: 600,
            search_allowed: true,
            ..ActivationInputs::default()
        }
    }

    fn decide(
        change: impl FnOnce(&mut Activation, &mut ActivationInputs),
    ) -> (Deferral, ActivationReason) {
        let (mut activation, mut facts) = (Activation::default(), facts());
        change(&mut activation, &mut facts);
        let Decision { deferral, reason } = activation.decide(&facts);
        (deferral, reason)
    }

    #[test]
    fn an_incomplete_catalog_defers_unless_it_is_configured_otherwise() {
        let few = |mode| {
            decide(|activation, facts| {
                activation.mode = mode;
                (facts.tools, facts.deferrable_tokens, facts.incomplete) = (2, 20, true);
            })
        };
        assert_eq!(few(ActivationMode::Auto), (Deferral::Everything, ActivationReason::Incomplete));
        assert_eq!(few(ActivationMode::On), (Deferral::Everything, ActivationReason::On));
        assert_eq!(few(ActivationMode::Off), (Deferral::Nothing, ActivationReason::Off));
    }

    #[test]
    fn the_count_decides_at_the_threshold_and_not_below() {
        for (tools, defers) in
            [(14, Deferral::Nothing), (15, Deferral::Everything), (16, Deferral::Everything)]
        {
            assert_eq!(decide(|_, f| f.tools = tools).0, defers, "{tools}");
        }
    }

    #[test]
    fn few_large_tools_count_by_their_tokens_against_the_smaller_bound() {
        let few = |tokens, context| {
            decide(|_, f| {
                (f.tools, f.deferrable, f.deferrable_tokens, f.context_window) =
                    (5, 5, tokens, context);
            })
            .1
        };
        assert_eq!(
            few(12_800, Some(128_000)),
            ActivationReason::Tokens {
                tokens: 12_800,
                threshold: 12_800,
                source: ThresholdSource::Share { window: 128_000 }
            }
        );
        assert_eq!(
            few(12_799, Some(128_000)),
            ActivationReason::Below {
                threshold: Some((ThresholdSource::Share { window: 128_000 }, 12_800))
            }
        );
        assert_eq!(
            few(20_000, Some(1_000_000)),
            ActivationReason::Tokens {
                tokens: 20_000,
                threshold: 20_000,
                source: ThresholdSource::Fixed
            }
        );
        assert_eq!(
            few(19_999, None).to_string(),
            "below the thresholds; the token threshold is 20000 because the context window is unknown"
        );
    }

    #[test]
    fn nothing_is_deferred_at_a_loss_and_nothing_without_a_search_tool() {
        assert_eq!(
            decide(|_, f| f.replacement_tokens = 5_000),
            (Deferral::Nothing, ActivationReason::NoSaving { before: 5_000, after: 5_000 })
        );
        assert_eq!(
            decide(|_, f| f.search_allowed = false),
            (Deferral::Nothing, ActivationReason::NoSearch)
        );
        assert_eq!(
            decide(|a, _| a.mode = ActivationMode::Off),
            (Deferral::Nothing, ActivationReason::Off)
        );
        assert_eq!(
            decide(|_, f| f.deferrable = 0),
            (Deferral::Nothing, ActivationReason::NothingToDefer)
        );
    }

    #[test]
    fn always_is_honoured_below_the_threshold() {
        assert_eq!(
            decide(|_, f| (f.tools, f.always) = (3, 1)),
            (
                Deferral::OnlyAlways,
                ActivationReason::Below {
                    threshold: Some((ThresholdSource::UnknownWindow, 20_000))
                }
            )
        );
    }

    #[test]
    fn a_conversation_that_defers_keeps_deferring_unless_told_otherwise() {
        let shrunk = |f: &mut ActivationInputs| (f.tools, f.deferred_before) = (3, true);
        assert_eq!(decide(|_, f| shrunk(f)), (Deferral::Everything, ActivationReason::Sticky));
        let anew = decide(|a, f| {
            a.sticky = false;
            shrunk(f);
        });
        assert!(matches!(anew, (Deferral::Nothing, ActivationReason::Below { .. })));
    }

    #[test]
    fn a_filling_catalog_is_never_decided_to_be_small() {
        assert_eq!(
            decide(|_, f| (f.tools, f.connecting) = (0, true)).1,
            ActivationReason::StillConnecting,
        );
        assert_eq!(decide(|_, f| f.connecting = true).0, Deferral::Everything);
    }
}
