//! What the model sees in one turn, as a value, and the ways to show deferred tools.
//!
//! The settings choose the way, [`Crib::disclose`](crate::Crib::disclose) computes the [`Disclosure`], and a
//! conversation keeps the last one, to repeat it while nothing changes.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::catalog::ToolId;
use crate::listing::Listing;
pub use crate::own_names::{CALL, DESCRIBE, OwnNames, OwnToolKind, SEARCH, SEARCH_REGEX};
use crate::policy::{Decision, Deferral, Verdict, VerdictReason};
use crate::tool::{DefinitionFormat, Tool};
use toolcrib_text::json::quote;

/// The value of the setting `disclosure`: how deferred tools are shown and become callable.
///
/// It means the same in every interface. The engine implements four values itself: its [`DisclosureKind`]s. `reference`
/// and `hosted` need a provider's API; an interface without one uses the nearest kind and reports that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DisclosureSetting {
    /// The provider's references where they work, the bridge everywhere else.
    #[default]
    Auto,
    /// [`DisclosureKind::Bridge`].
    Bridge,
    /// [`DisclosureKind::Reveal`].
    Reveal,
    /// [`DisclosureKind::Terse`].
    Terse,
    /// [`DisclosureKind::Append`].
    Append,
    /// The provider's references where they work, and [`DisclosureKind::Append`] everywhere else: in both, a found
    /// tool is called by its own name.
    Reference,
    /// The provider's own search where it has one, and the bridge everywhere else.
    Hosted,
}

impl DisclosureSetting {
    /// Every value.
    pub const ALL: [Self; 7] = [
        Self::Auto,
        Self::Bridge,
        Self::Reveal,
        Self::Terse,
        Self::Append,
        Self::Reference,
        Self::Hosted,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Bridge => "bridge",
            Self::Reveal => "reveal",
            Self::Terse => "terse",
            Self::Append => "append",
            Self::Reference => "reference",
            Self::Hosted => "hosted",
        }
    }

    /// What the engine does without a provider's help.
    pub fn kind(self) -> DisclosureKind {
        match self {
            Self::Auto | Self::Bridge | Self::Hosted => DisclosureKind::Bridge,
            Self::Reveal => DisclosureKind::Reveal,
            Self::Terse => DisclosureKind::Terse,
            Self::Append | Self::Reference => DisclosureKind::Append,
        }
    }
}

impl From<DisclosureKind> for DisclosureSetting {
    fn from(kind: DisclosureKind) -> Self {
        match kind {
            DisclosureKind::Bridge => Self::Bridge,
            DisclosureKind::Reveal => Self::Reveal,
            DisclosureKind::Terse => Self::Terse,
            DisclosureKind::Append => Self::Append,
        }
    }
}

/// How the engine shows deferred tools.
///
/// Not `#[non_exhaustive]`: a program that writes requests must decide what to do with each kind, so a new kind
/// should not compile unnoticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DisclosureKind {
    /// Three stable tools, search, describe and call; the rest is a listing.
    Bridge,
    /// Name, description and a stub schema, replaced by the real one once revealed.
    Reveal,
    /// Name and parameters, the description withheld.
    Terse,
    /// A listing; a definition is appended once found, in order of discovery.
    Append,
}

/// What stands for a schema that is not shown.
///
/// Always an object with `properties`, even if empty: grammar converters of local servers refuse a
/// bare object. Always open: capable models often guess right, and a valid guess is run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Stub {
    /// Nothing more: a sentence per tool would grow with the catalog and eat the saving.
    #[default]
    Open,
    /// Naming the query that loads the tool, for models that need to be told each time.
    Hint,
}

impl Stub {
    pub(crate) fn schema(self, tool: &Tool, names: OwnNames) -> String {
        let open = r#"{"type":"object","properties":{},"additionalProperties":true"#;
        match self {
            Self::Open => format!("{open}}}"),
            Self::Hint => {
                let (search, name) = (names.search, tool.name());
                let hint = format!("Not loaded: call {search} with the query {name} first.");
                format!("{open},\"description\":{}}}", quote(&hint))
            }
        }
    }
}

/// How hard the model is told to search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Guidance {
    /// By the model's name: strong unless its family is known to search without being told.
    #[default]
    Auto,
    /// Two sentences.
    Short,
    /// With an example and a prohibition, for models that were not trained on deferred tools.
    Strong,
    /// Short for Anthropic's models and strong for every other provider's.
    Provider,
}

impl Guidance {
    pub(crate) fn is_strong(self, model: Option<&str>) -> bool {
        match self {
            Self::Short => false,
            Self::Strong => true,
            // Both vendors ship tool search themselves and train for it.
            Self::Auto => !is_of(model, &["claude", "gpt-5", "gpt-6"]),
            Self::Provider => !is_of(model, &["claude"]),
        }
    }
}

fn is_of(model: Option<&str>, families: &[&str]) -> bool {
    let model = model.unwrap_or_default().to_ascii_lowercase();
    families.iter().any(|family| model.contains(family))
}

/// A tool of ours, ready to be written in any shape.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnTool {
    /// Its name.
    pub name: &'static str,
    /// Its description, the listing included where there is one.
    pub description: String,
    /// Its input schema, as JSON text.
    pub schema: &'static str,
}

impl OwnTool {
    /// The definition in a provider's shape.
    pub fn definition(&self, format: DefinitionFormat) -> String {
        format.write(self.name, &self.description, self.schema)
    }
}

/// One tool as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DisclosedTool {
    /// Which tool.
    pub id: ToolId,
    /// Its definition in its own shape; `None` for a tool that is only listed.
    pub definition: Option<String>,
    /// What was decided about it, and why.
    pub verdict: Verdict,
}

/// What the model sees this turn.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Disclosure {
    /// Whether anything is deferred, and why.
    pub decision: Decision,
    /// How, if so.
    pub kind: DisclosureKind,
    /// The tools in scope, in the order their definitions are to stand in.
    pub tools: Vec<DisclosedTool>,
    /// Our own tools.
    pub own_tools: Vec<OwnTool>,
    /// For the system prompt, once.
    pub instruction: Option<String>,
    /// The table of contents, part of the search tool's description.
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
        self.decision.deferral == Deferral::Nothing
    }

    /// The definitions to send, for who puts an array together: each tool in its own shape, ours in
    /// `shape`, and appended ones last. [`Crib::tools_json`](crate::Crib::tools_json) edits an array
    /// that came in.
    pub fn definitions(&self, shape: DefinitionFormat) -> Vec<Cow<'_, str>> {
        let appended = |shown: &&DisclosedTool| {
            self.kind == DisclosureKind::Append
                && shown.verdict == Verdict::Full(VerdictReason::Revealed)
        };
        let definition = |shown: &'_ DisclosedTool| shown.definition.clone().map(Cow::Owned);
        let first = self.tools.iter().filter(|shown| !appended(shown)).filter_map(definition);
        let own = self.own_tools.iter().map(|own| Cow::Owned(own.definition(shape)));
        let last = self.tools.iter().filter(appended).filter_map(definition);
        first.chain(own).chain(last).collect()
    }
}
