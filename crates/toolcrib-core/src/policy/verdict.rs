//! Whether a tool is shown in full, deferred or hidden, and why.

use std::fmt;

use super::{Decision, Deferral, Rules};
use crate::tool::{DeferPolicy, Tool};

/// How a tool is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The tool is shown with its complete definition.
    Full(VerdictReason),
    /// The tool is shown in part or only in the listing. The model loads it on demand.
    Deferred(VerdictReason),
    /// The tool is not shown at all, because it is outside the caller's scope.
    Hidden,
}

/// The reason for a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerdictReason {
    /// Nothing is deferred in this conversation.
    NotActive,
    /// Deferral is active, and no rule or policy exempts the tool.
    Active,
    /// The tool's owner decided.
    Owner(DeferPolicy),
    /// This rule decided. It comes from the configuration or from the program that uses the library.
    Rule(String),
    /// The tool is on the hot list.
    Hot,
    /// The model loaded the tool earlier in the conversation.
    Revealed,
}

impl fmt::Display for VerdictReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotActive => f.write_str("deferral is not active"),
            Self::Active => f.write_str("deferral is active"),
            Self::Owner(DeferPolicy::Never) => f.write_str("its owner never defers it"),
            Self::Owner(DeferPolicy::Always) => f.write_str("its owner always defers it"),
            Self::Owner(DeferPolicy::Automatic) => f.write_str("its owner has no preference"),
            Self::Rule(rule) => write!(f, "the rule `{rule}`"),
            Self::Hot => f.write_str("it is on the list of frequently used tools"),
            Self::Revealed => f.write_str("it was revealed in this conversation"),
        }
    }
}

/// The inputs of [`verdict`], other than the tool and the rules.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VerdictInputs {
    /// Whether the caller may know of the tool.
    pub(crate) in_scope: bool,
    /// Whether this conversation defers tools, and which ones.
    pub(crate) decision: Decision,
    /// Whether the model has loaded the tool and the disclosure shows loaded tools in full.
    pub(crate) revealed: bool,
}

/// Decides how a tool is shown. No other function decides this.
///
/// `never` takes precedence over `always`: showing one tool too many costs tokens, but hiding a tool that is needed can
/// make the task fail.
pub(crate) fn verdict(tool: &Tool, rules: &Rules, inputs: VerdictInputs) -> Verdict {
    if !inputs.in_scope {
        return Verdict::Hidden;
    }
    if inputs.decision.deferral == Deferral::Nothing {
        return Verdict::Full(VerdictReason::NotActive);
    }
    let (policy, reason) = rules.policy(tool);
    match policy {
        DeferPolicy::Never => Verdict::Full(reason),
        DeferPolicy::Automatic if inputs.decision.deferral == Deferral::OnlyAlways => {
            Verdict::Full(VerdictReason::NotActive)
        }
        _ if inputs.revealed => Verdict::Full(VerdictReason::Revealed),
        DeferPolicy::Always => Verdict::Deferred(reason),
        DeferPolicy::Automatic => Verdict::Deferred(VerdictReason::Active),
    }
}
