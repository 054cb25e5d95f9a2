//! What the engine is told about one turn.
//!
//! A crib is the same for every caller. What differs comes in here with each call: the tools that the
//! caller may know of, the model, and which servers are not connected yet.

use crate::scope::Scope;

/// What is true this turn, from outside the engine.
#[derive(Debug, Clone)]
pub struct TurnContext<'a> {
    /// The tools this caller may know of.
    pub scope: &'a Scope,
    /// The model's context window in tokens, where it is known.
    pub context_window: Option<usize>,
    /// The model's name, where it is known.
    pub model: Option<&'a str>,
    /// Servers that are still connecting.
    pub connecting: &'a [String],
    /// Servers of the caller whose tools are not known yet. A loose spelling that begins with the name of one
    /// means no tool of another.
    pub unlisted: &'a [String],
    /// Whether some servers have not listed their tools yet and everything that may be deferred is deferred
    /// until they have. For a caller whose list must not begin long and become short: each change of the
    /// list costs the whole prompt.
    pub incomplete: bool,
    /// Whether the caller lets the model use our search tool.
    pub search_allowed: bool,
}

impl<'a> TurnContext<'a> {
    /// A turn of which nothing is known but the scope.
    pub fn new(scope: &'a Scope) -> Self {
        Self {
            scope,
            context_window: None,
            model: None,
            connecting: &[],
            unlisted: &[],
            incomplete: false,
            search_allowed: true,
        }
    }
}
