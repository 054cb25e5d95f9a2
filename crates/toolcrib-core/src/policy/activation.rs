//! Whether a conversation defers tools, and why.

use serde::{Deserialize, Deserializer, Serialize};

use super::activation_reason::{ActivationReason, ThresholdSource};

/// Whether tools are deferred.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ActivationMode {
    /// Tools are deferred if a threshold is reached.
    #[default]
    Auto,
    /// Every tool that may be deferred is deferred.
    On,
    /// Nothing is deferred.
    Off,
}

impl<'de> Deserialize<'de> for ActivationMode {
    /// Accepts `auto`, `on`, `off`, or the shorthands `true` (for `auto`) and `false` (for `off`).
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum ModeValue {
            Flag(bool),
            Word(String),
        }
        match ModeValue::deserialize(deserializer)? {
            ModeValue::Flag(true) => Ok(Self::Auto),
            ModeValue::Flag(false) => Ok(Self::Off),
            ModeValue::Word(word) => match word.to_ascii_lowercase().as_str() {
                "auto" => Ok(Self::Auto),
                "on" => Ok(Self::On),
                "off" => Ok(Self::Off),
                _ => Err(serde::de::Error::custom(format!(
                    "`{word}` is not one of `auto`, `on`, `off`, `true`, `false`"
                ))),
            },
        }
    }
}

/// The schema of what [`ActivationMode::deserialize`] accepts.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for ActivationMode {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ActivationMode".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "enum": ["auto", "on", "off", true, false] })
    }
}

/// The settings that decide when a conversation defers tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent key in the file")]
#[non_exhaustive]
pub struct Activation {
    /// Whether tools are deferred always, never, or depending on the thresholds below.
    pub mode: ActivationMode,
    /// Threshold for the number of tools, including those that are never deferred. 0 disables the threshold.
    pub tools: usize,
    /// Threshold for the tokens of the tools that may be deferred. 0 disables the threshold.
    pub tokens: usize,
    /// Threshold for the tokens of the tools that may be deferred, as a percentage of the context window. 0 disables
    /// the threshold. If `tokens` is also set, the smaller of the two applies, because even a small percentage of a
    /// very large window is a long prompt.
    pub context_percent: f64,
    /// Whether the threshold `tokens` applies only if the context window is unknown.
    pub tokens_if_unknown: bool,
    /// Whether tools with the policy `always` are deferred even if no threshold is reached.
    pub always_below: bool,
    /// Whether deferral is skipped if it would cost more tokens than it saves.
    pub only_if_saving: bool,
    /// Whether a conversation that has begun to defer keeps deferring. If not, each turn decides again: all tools may
    /// be shown in full again after servers are removed, but that change invalidates the cached prompt.
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

/// The inputs of [`Activation::decide`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct ActivationInputs {
    /// Number of tools in scope.
    pub(crate) tools: usize,
    /// Number of tools that may be deferred.
    pub(crate) deferrable: usize,
    /// Number of tools with the policy `always`.
    pub(crate) always: usize,
    /// Tokens of the tools that may be deferred.
    pub(crate) deferrable_tokens: usize,
    /// Tokens of what would replace the deferred tools: search tool, listing, instruction, stubs.
    pub(crate) replacement_tokens: usize,
    /// The model's context window in tokens, if known.
    pub(crate) context_window: Option<usize>,
    /// Whether servers are still connecting.
    pub(crate) connecting: bool,
    /// Whether the catalog is not complete yet and the caller wants tools to be deferred until the catalog is complete.
    pub(crate) incomplete: bool,
    /// Whether the model may call the search tool.
    pub(crate) search_allowed: bool,
    /// Whether this conversation has deferred tools in an earlier turn.
    pub(crate) deferred_before: bool,
}

/// Which tools a conversation defers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deferral {
    /// No tool is deferred: all tools are passed through unchanged.
    Nothing,
    /// Only tools with the policy `always` are deferred.
    OnlyAlways,
    /// Every tool that may be deferred is deferred.
    Everything,
}

/// Which tools are deferred, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// Which tools are deferred.
    pub deferral: Deferral,
    /// The reason for the decision.
    pub reason: ActivationReason,
}

impl Activation {
    /// Decides whether a turn defers tools. No other function decides this.
    ///
    /// While servers are still connecting, the number of tools can only grow. So if a threshold is reached, it will
    /// stay reached. If none is reached, the next turn decides again. By default, a conversation that has begun to
    /// defer keeps deferring.
    pub(crate) fn decide(&self, inputs: &ActivationInputs) -> Decision {
        let nothing = |reason| Decision { deferral: Deferral::Nothing, reason };
        let everything = |reason| Decision { deferral: Deferral::Everything, reason };
        if self.mode == ActivationMode::Off {
            return nothing(ActivationReason::Off);
        }
        if !inputs.search_allowed {
            return nothing(ActivationReason::NoSearch);
        }
        if inputs.deferrable == 0 {
            return nothing(ActivationReason::NothingToDefer);
        }
        if self.mode == ActivationMode::On {
            return everything(ActivationReason::On);
        }
        if inputs.incomplete {
            return everything(ActivationReason::Incomplete);
        }
        if self.sticky && inputs.deferred_before {
            return everything(ActivationReason::Sticky);
        }
        let reason = match self.reached_threshold(inputs) {
            Some(reached)
                if !self.only_if_saving || inputs.replacement_tokens < inputs.deferrable_tokens =>
            {
                return everything(reached);
            }
            Some(_) => ActivationReason::NoSaving {
                before: inputs.deferrable_tokens,
                after: inputs.replacement_tokens,
            },
            None if inputs.connecting => ActivationReason::StillConnecting,
            None => ActivationReason::Below { threshold: self.tokens_threshold(inputs) },
        };
        // Even if the thresholds do not lead to deferral, tools with the policy `always` are deferred if `always_below`
        // is set.
        let always = self.always_below && inputs.always > 0;
        let deferral = if always { Deferral::OnlyAlways } else { Deferral::Nothing };
        Decision { deferral, reason }
    }

    fn reached_threshold(&self, inputs: &ActivationInputs) -> Option<ActivationReason> {
        if self.tools > 0 && inputs.tools >= self.tools {
            return Some(ActivationReason::Count { tools: inputs.tools, threshold: self.tools });
        }
        let (source, threshold) = self.tokens_threshold(inputs)?;
        let tokens = inputs.deferrable_tokens;
        (tokens >= threshold).then_some(ActivationReason::Tokens { tokens, threshold, source })
    }

    /// Returns where the token threshold comes from, and the threshold itself. If both a fixed number and a share of
    /// the context window apply, the smaller of the two is the threshold. Returns `None` if neither applies.
    fn tokens_threshold(&self, inputs: &ActivationInputs) -> Option<(ThresholdSource, usize)> {
        let has_share = self.context_percent > 0.0;
        let share = inputs.context_window.filter(|_| has_share).map(|window| {
            let tokens = (window as f64 * self.context_percent / 100.0) as usize;
            (ThresholdSource::Share { window }, tokens)
        });
        let counts =
            self.tokens > 0 && !(self.tokens_if_unknown && inputs.context_window.is_some());
        let is_unknown = has_share && inputs.context_window.is_none();
        let source =
            if is_unknown { ThresholdSource::UnknownWindow } else { ThresholdSource::Fixed };
        let fixed = counts.then_some((source, self.tokens));
        share.into_iter().chain(fixed).min_by_key(|(_, tokens)| *tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs() -> ActivationInputs {
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
        let (mut activation, mut inputs) = (Activation::default(), inputs());
        change(&mut activation, &mut inputs);
        let Decision { deferral, reason } = activation.decide(&inputs);
        (deferral, reason)
    }

    #[test]
    fn an_incomplete_catalog_defers_unless_it_is_configured_otherwise() {
        let few = |mode| {
            decide(|activation, inputs| {
                activation.mode = mode;
                (inputs.tools, inputs.deferrable_tokens, inputs.incomplete) = (2, 20, true);
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
    fn few_large_tools_are_deferred_at_the_smaller_token_threshold() {
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
    fn nothing_is_deferred_without_a_saving_or_without_a_search_tool() {
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
    fn a_conversation_that_defers_keeps_deferring_unless_configured_otherwise() {
        let shrunk = |f: &mut ActivationInputs| (f.tools, f.deferred_before) = (3, true);
        assert_eq!(decide(|_, f| shrunk(f)), (Deferral::Everything, ActivationReason::Sticky));
        let again = decide(|a, f| {
            a.sticky = false;
            shrunk(f);
        });
        assert!(matches!(again, (Deferral::Nothing, ActivationReason::Below { .. })));
    }

    #[test]
    fn a_catalog_whose_servers_are_connecting_is_not_decided_to_be_small() {
        assert_eq!(
            decide(|_, f| (f.tools, f.connecting) = (0, true)).1,
            ActivationReason::StillConnecting,
        );
        assert_eq!(decide(|_, f| f.connecting = true).0, Deferral::Everything);
    }
}
