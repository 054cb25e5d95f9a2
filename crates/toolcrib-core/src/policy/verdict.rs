//! What becomes of one tool, and why.

use std::fmt;

use super::{Decision, Deferral, Rules};
use crate::tool::{DeferPolicy, Tool};

/// What becomes of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Shown with its whole definition.
    Full(VerdictReason),
    /// Shown in part, or only listed, and loaded on demand.
    Deferred(VerdictReason),
    /// Not there for this caller.
    Hidden,
}

/// Why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerdictReason {
    /// Nothing is deferred in this conversation.
    NotActive,
    /// Deferral is on and nothing speaks against it.
    Active,
    /// The owner's policy.
    Owner(DeferPolicy),
    /// A rule of the configuration or the embedder.
    Rule(String),
    /// It is on the hot list.
    Hot,
    /// The model has asked for it before.
    Revealed,
}

impl fmt::Display for VerdictReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotActive => f.write_str("deferral is not active"),
            Self::Active => f.write_str("deferral is active"),
            Self::Owner(DeferPolicy::Never) => f.write_str("its owner says never"),
            Self::Owner(DeferPolicy::Always) => f.write_str("its owner says always"),
            Self::Owner(DeferPolicy::Automatic) => f.write_str("its owner leaves it open"),
            Self::Rule(rule) => write!(f, "the rule `{rule}`"),
            Self::Hot => f.write_str("an agent needs it all the time"),
            Self::Revealed => f.write_str("it was revealed in this conversation"),
        }
    }
}

/// What a verdict rests on, beside the tool.
#[derive(Debug, Clone, Copy)]
pub struct VerdictInputs {
    /// Whether the caller may know of the tool.
    pub in_scope: bool,
    /// Whether this conversation defers.
    pub decision: Decision,
    /// Whether the model has loaded the tool and the disclosure shows loaded tools in full.
    pub revealed: bool,
}

/// The one function that says how a tool is shown.
///
/// Whoever says never prevails over whoever says always: a tool too many costs tokens, a tool too
/// few costs the task.
pub fn verdict(tool: &Tool, rules: &Rules, grounds: VerdictInputs) -> Verdict {
    if !grounds.in_scope {
        return Verdict::Hidden;
    }
    if grounds.decision.deferral == Deferral::Nothing {
        return Verdict::Full(VerdictReason::NotActive);
    }
    let (defer, because) = rules.policy(tool);
    match defer {
        DeferPolicy::Never => Verdict::Full(because),
        DeferPolicy::Automatic if grounds.decision.deferral == Deferral::OnlyAlways => {
            Verdict::Full(VerdictReason::NotActive)
        }
        _ if grounds.revealed => Verdict::Full(VerdictReason::Revealed),
        DeferPolicy::Always => Verdict::Deferred(because),
        DeferPolicy::Automatic => Verdict::Deferred(VerdictReason::Active),
    }
}
