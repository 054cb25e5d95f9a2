//! What the model sees this turn.
//!
//! [`Crib::disclose`](crate::Crib::disclose) puts together the catalog, the policy, what was revealed
//! and the budget. Below activation the answer is "as it came", and whoever writes the request then
//! forwards its own bytes. Above it, each tool has a verdict, and the disclosure says what stands for
//! the deferred ones. When nothing has changed since the last turn, nothing is computed.

mod own;
mod plan;
mod write;

pub use own::{Guidance, OwnTool};
pub(crate) use plan::{Frozen, Said};

pub use crate::own_names::{CALL, DESCRIBE, Own, OwnNames, SEARCH, SEARCH_REGEX};

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::catalog::ToolId;
use crate::listing::Listing;
use crate::policy::{Decision, Defers, Verdict};
use crate::scope::Scope;
use crate::settings::Settings;
use crate::tool::{Shape, Tool};

/// How deferred tools are shown and become callable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Three stable tools, search, describe and call; the rest is a listing.
    #[default]
    Bridge,
    /// Name, description and a stub schema, replaced by the real one once revealed.
    Reveal,
    /// Name and parameters, the description withheld.
    Terse,
    /// A listing; a definition is appended once found, in order of discovery.
    Append,
}

impl Settings {
    /// Whether a loaded tool is shown in full from the next turn on.
    pub(crate) fn shows_revealed(&self) -> bool {
        self.reveals && matches!(self.disclosure, Kind::Reveal | Kind::Append)
    }

    /// Whether hits carry their schemas. Without the bridge there is no `tool_describe` to get one.
    pub(crate) fn shows_schemas(&self) -> bool {
        self.search.schemas || self.disclosure != Kind::Bridge
    }
}

/// What stands for a schema that is not shown.
///
/// Always an object with `properties`, even if empty: grammar converters of local servers refuse a
/// bare object. Always open: capable models often guess right, and a valid guess is run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stub {
    /// Nothing more: a sentence per tool would grow with the catalog and eat the saving.
    #[default]
    Open,
    /// Naming the query that loads the tool, for models that need to be told each time.
    Hint,
}

impl Stub {
    fn schema(self, tool: &Tool, names: OwnNames) -> String {
        let open = r#"{"type":"object","properties":{},"additionalProperties":true"#;
        match self {
            Self::Open => format!("{open}}}"),
            Self::Hint => {
                let (search, name) = (names.search, tool.name());
                let hint = format!("Not loaded: call {search} with the query {name} first.");
                format!("{open},\"description\":{}}}", crate::json::quote(&hint))
            }
        }
    }
}

/// What is true this turn, from outside the engine.
#[derive(Debug, Clone)]
pub struct Turn<'a> {
    /// The tools this caller may know of.
    pub scope: &'a Scope,
    /// The model's context window in tokens, where it is known.
    pub context: Option<usize>,
    /// The model's name, where it is known.
    pub model: Option<&'a str>,
    /// Servers that are still connecting.
    pub connecting: &'a [String],
    /// Whether the caller lets the model use our search tool.
    pub search_allowed: bool,
}

impl<'a> Turn<'a> {
    /// A turn of which nothing is known but the scope.
    pub fn new(scope: &'a Scope) -> Self {
        Self { scope, context: None, model: None, connecting: &[], search_allowed: true }
    }
}

/// One tool as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Which tool.
    pub id: ToolId,
    /// Its definition in its own shape; `None` for a tool that is only listed.
    pub definition: Option<String>,
    /// What was decided about it, and why.
    pub verdict: Verdict,
}

/// What the model sees this turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disclosure {
    /// Whether anything is deferred, and why.
    pub decision: Decision,
    /// How, if so.
    pub kind: Kind,
    /// The tools in scope, in the order their definitions are to stand in.
    pub shown: Vec<Shown>,
    /// Our own tools.
    pub own: Vec<OwnTool>,
    /// For the system prompt, once.
    pub instruction: Option<String>,
    /// The table of contents that stands in the search tool's description.
    pub listing: Option<Listing>,
    /// Tools that came or went since the listing was frozen: for a message, not for the prompt.
    pub announcement: Option<String>,
    /// Tokens of the tools as they came.
    pub tokens_before: usize,
    /// Tokens of what is shown instead, the instruction included.
    pub tokens_after: usize,
}

impl Disclosure {
    /// Whether the tools pass as they came.
    pub fn passes_through(&self) -> bool {
        self.decision.defers == Defers::Nothing
    }

    /// The definitions to send, for who puts an array together: each tool in its own shape, ours in
    /// `shape`, and appended ones last. [`Crib::tools_json`](crate::Crib::tools_json) edits an array
    /// that came in.
    pub fn definitions(&self, shape: Shape) -> Vec<Cow<'_, str>> {
        let appended = |shown: &&Shown| {
            self.kind == Kind::Append
                && shown.verdict == Verdict::Full(crate::policy::Because::Revealed)
        };
        let definition = |shown: &'_ Shown| shown.definition.clone().map(Cow::Owned);
        let first = self.shown.iter().filter(|shown| !appended(shown)).filter_map(definition);
        let own = self.own.iter().map(|own| Cow::Owned(own.definition(shape)));
        let last = self.shown.iter().filter(appended).filter_map(definition);
        first.chain(own).chain(last).collect()
    }
}
