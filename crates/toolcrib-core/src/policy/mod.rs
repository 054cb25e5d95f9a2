//! Which tools the model sees in full, and why.
//!
//! Two decisions, one function each: [`Activation::decide`] says whether a conversation defers at
//! all, [`verdict`] says what becomes of one tool. Both return their reason, and `explain`, logs and
//! tests print that same reason.

mod activation;
mod globs;
mod hot;
mod reason;
mod rules;

pub use activation::{Activation, Decision, Facts, Mode};
pub use globs::Globs;
pub use hot::hot;
pub use reason::{Basis, Reason};
pub use rules::{Glob, Rules};

use std::fmt;

use crate::tool::{Defer, Tool};

/// What becomes of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Shown with its whole definition.
    Full(Because),
    /// Shown in part, or only listed, and loaded on demand.
    Deferred(Because),
    /// Not there for this caller.
    Hidden,
}

/// Why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Because {
    /// Nothing is deferred in this conversation.
    NotActive,
    /// Deferral is on and nothing speaks against it.
    Active,
    /// The owner's policy.
    Owner(Defer),
    /// A rule of the configuration or the embedder.
    Rule(String),
    /// It is on the hot list.
    Hot,
    /// The model has asked for it before.
    Revealed,
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotActive => f.write_str("deferral is not active"),
            Self::Active => f.write_str("deferral is active"),
            Self::Owner(Defer::Never) => f.write_str("its owner says never"),
            Self::Owner(Defer::Always) => f.write_str("its owner says always"),
            Self::Owner(Defer::Automatic) => f.write_str("its owner leaves it open"),
            Self::Rule(rule) => write!(f, "the rule `{rule}`"),
            Self::Hot => f.write_str("an agent needs it all the time"),
            Self::Revealed => f.write_str("it was revealed in this conversation"),
        }
    }
}

/// What a verdict rests on, beside the tool.
#[derive(Debug, Clone, Copy)]
pub struct Grounds {
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
pub fn verdict(tool: &Tool, rules: &Rules, grounds: Grounds) -> Verdict {
    if !grounds.in_scope {
        return Verdict::Hidden;
    }
    if grounds.decision.defers == Defers::Nothing {
        return Verdict::Full(Because::NotActive);
    }
    let (defer, because) = rules.policy(tool);
    match defer {
        Defer::Never => Verdict::Full(because),
        Defer::Automatic if grounds.decision.defers == Defers::OnlyAlways => {
            Verdict::Full(Because::NotActive)
        }
        _ if grounds.revealed => Verdict::Full(Because::Revealed),
        Defer::Always => Verdict::Deferred(because),
        Defer::Automatic => Verdict::Deferred(Because::Active),
    }
}

/// How much a conversation defers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defers {
    /// Nothing: the tools pass through as they came.
    Nothing,
    /// Only what must always be deferred.
    OnlyAlways,
    /// Whatever may be deferred.
    Everything,
}
