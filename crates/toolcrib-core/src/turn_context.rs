//! What the caller tells the engine about one turn.
//!
//! A crib is the same for every caller. What differs between callers and turns is passed in a [`TurnContext`]: the
//! tools that the caller may know of, the model, and which servers are not connected yet.

use crate::scope::Scope;

/// The circumstances of one turn.
///
/// ```
/// use toolcrib_core::{Catalog, Scope, TurnContext};
/// let catalog = Catalog::from_json(br#"[{"name": "a", "input_schema": {}}]"#)?;
/// let scope = Scope::all(&catalog);
/// let turn = TurnContext::new(&scope).with_model("gpt-5").with_context_window(128_000);
/// assert_eq!(turn.context_window, Some(128_000));
/// # Ok::<(), toolcrib_core::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TurnContext<'a> {
    /// The tools that this caller may know of.
    pub scope: &'a Scope,
    /// The model's context window in tokens, if known.
    pub context_window: Option<usize>,
    /// The model's name, if known.
    pub model: Option<&'a str>,
    /// Servers that are still connecting.
    pub connecting: &'a [String],
    /// The caller's servers whose tools are not known yet. If the model writes an inexact name that begins with the
    /// name of one of these servers, it never resolves to a tool of another server.
    pub unlisted: &'a [String],
    /// Whether some servers have not listed their tools yet, and everything that may be deferred is to be deferred
    /// until they have. This is for callers whose array of tools must not first be long and then become short, because
    /// each change of the array invalidates the whole cached prompt.
    pub incomplete: bool,
    /// Whether the caller lets the model use our search tool.
    pub search_allowed: bool,
}

impl<'a> TurnContext<'a> {
    /// A turn for which only the scope is known.
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

    /// Sets the model's context window in tokens.
    #[must_use]
    pub fn with_context_window(self, tokens: impl Into<Option<usize>>) -> Self {
        Self { context_window: tokens.into(), ..self }
    }

    /// Sets the model's name.
    #[must_use]
    pub fn with_model(self, model: impl Into<Option<&'a str>>) -> Self {
        Self { model: model.into(), ..self }
    }

    /// Sets the servers that are still connecting.
    #[must_use]
    pub fn with_connecting(self, connecting: &'a [String]) -> Self {
        Self { connecting, ..self }
    }

    /// Sets the servers whose tools are not known yet.
    #[must_use]
    pub fn with_unlisted(self, unlisted: &'a [String]) -> Self {
        Self { unlisted, ..self }
    }

    /// Sets whether everything that may be deferred is deferred because some servers have not listed their tools yet.
    #[must_use]
    pub fn with_incomplete(self, incomplete: bool) -> Self {
        Self { incomplete, ..self }
    }

    /// Sets whether the model may use our search tool.
    #[must_use]
    pub fn with_search_allowed(self, search_allowed: bool) -> Self {
        Self { search_allowed, ..self }
    }
}
