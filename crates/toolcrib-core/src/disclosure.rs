//! What the model sees in one turn, as a value, and the ways to show deferred tools.
//!
//! The settings choose how deferred tools are shown, and [`Crib::disclose`](crate::Crib::disclose) computes the
//! [`Disclosure`] (in `compute_disclosure`). A conversation keeps its last disclosure and repeats it while nothing
//! changes.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::catalog::ToolId;
use crate::listing::Listing;
pub use crate::own_names::{
    CALL, DESCRIBE, OwnNames, OwnToolKind, READ, SEARCH, SEARCH_REGEX, WRITE,
};
use crate::policy::{Decision, Deferral, Verdict, VerdictReason};
use crate::tool::{DefinitionFormat, Tool};
use toolcrib_text::json::quote;

/// The value of the setting `disclosure`: how deferred tools are shown and become callable.
///
/// The setting means the same in every interface. The engine itself implements four of the values, its
/// [`DisclosureKind`]s. `reference` and `hosted` need a provider's API. An interface without such an API uses the
/// nearest kind and reports that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DisclosureSetting {
    /// The provider's tool references if it supports them, else the bridge.
    #[default]
    Auto,
    /// [`DisclosureKind::Bridge`].
    #[cfg_attr(
        feature = "schema",
        schemars(
            description = "The model gets three tools that never change: search, describe and call. Deferred tools are only listed."
        )
    )]
    Bridge,
    /// [`DisclosureKind::Reveal`].
    #[cfg_attr(
        feature = "schema",
        schemars(
            description = "A deferred tool has its name, its description and a stub schema, which the real schema replaces once the tool is loaded."
        )
    )]
    Reveal,
    /// [`DisclosureKind::Terse`].
    #[cfg_attr(
        feature = "schema",
        schemars(description = "A deferred tool has its name and parameters, but no description.")
    )]
    Terse,
    /// [`DisclosureKind::Append`].
    #[cfg_attr(
        feature = "schema",
        schemars(
            description = "Deferred tools are only listed. When a tool is found, its definition is appended to the array of tools."
        )
    )]
    Append,
    /// The provider's tool references if it supports them, else [`DisclosureKind::Append`]. In both cases, the model
    /// calls a tool directly once it has found it.
    #[cfg_attr(
        feature = "schema",
        schemars(
            description = "The provider's tool references if it supports them, else `append`."
        )
    )]
    Reference,
    /// The provider's own tool search if it has one, else the bridge.
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

    /// The value's name in configuration files.
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

    /// The kind that the engine uses if no provider feature is used.
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
/// This enum is not `#[non_exhaustive]`. A program that writes requests must decide what to do with each kind, so it
/// should fail to compile when a kind is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DisclosureKind {
    /// The model gets three tools that never change: search, describe and call. Deferred tools are only listed.
    Bridge,
    /// A deferred tool has its name, its description and a stub schema. The real schema replaces the stub once the tool
    /// is loaded.
    Reveal,
    /// A deferred tool has its name and parameters, but no description.
    Terse,
    /// Deferred tools are only listed. When a tool is found, its definition is appended to the array of tools.
    Append,
}

/// The schema that is shown in place of a tool's real schema.
///
/// It always has `properties`, even if they are empty, because the grammar converters of local servers reject an object
/// schema without them. It always allows additional properties, because capable models often guess the arguments
/// correctly, and valid arguments are accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Stub {
    /// An empty schema without a hint. In a large catalog, a sentence in every stub would cost most of the tokens that
    /// the stubs save.
    #[default]
    Open,
    /// A schema whose description contains the query that loads the tool, for models that need the reminder.
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

/// How strongly the model is told to search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Guidance {
    /// Depends on the model's name. The guidance is strong, unless models of that family are known to search without
    /// strong guidance.
    #[default]
    Auto,
    /// The instruction only says how to find and call tools, and to search before giving up.
    Short,
    /// The instruction also has an example and a prohibition, for models that were not trained on deferred tools.
    Strong,
    /// Short for Anthropic's models, and strong for the models of all other providers.
    Provider,
}

impl Guidance {
    pub(crate) fn is_strong(self, model: Option<&str>) -> bool {
        match self {
            Self::Short => false,
            Self::Strong => true,
            // Anthropic and OpenAI offer tool search in their APIs and train their models for it.
            Self::Auto => !is_of(model, &["claude", "gpt-5", "gpt-6"]),
            Self::Provider => !is_of(model, &["claude"]),
        }
    }
}

fn is_of(model: Option<&str>, families: &[&str]) -> bool {
    let model = model.unwrap_or_default().to_ascii_lowercase();
    families.iter().any(|family| model.contains(family))
}

/// One of our own tools. Its definition can be written in any provider's format.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnTool {
    /// The tool's name.
    pub name: &'static str,
    /// The tool's description, including the listing if there is one.
    pub description: String,
    /// The tool's input schema, as JSON text.
    pub schema: &'static str,
}

impl OwnTool {
    /// The tool's definition in a provider's format.
    pub fn definition(&self, format: DefinitionFormat) -> String {
        format.write(self.name, &self.description, self.schema)
    }
}

/// How one tool is shown in a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DisclosedTool {
    /// The tool.
    pub id: ToolId,
    /// The tool's definition in its own format; `None` for a tool that is only listed.
    pub definition: Option<String>,
    /// The verdict and its reason.
    pub verdict: Verdict,
}

/// What the model sees in one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Disclosure {
    /// Which tools are deferred, if any, and why.
    pub decision: Decision,
    /// How deferred tools are shown.
    pub kind: DisclosureKind,
    /// The tools in scope, in the order in which their definitions are sent.
    pub tools: Vec<DisclosedTool>,
    /// Our own tools.
    pub own_tools: Vec<OwnTool>,
    /// The instruction to add to the system prompt.
    pub instruction: Option<String>,
    /// The listing of deferred tools. It is part of the search tool's description, unless the settings place it in a
    /// message.
    pub listing: Option<Listing>,
    /// A message to send before the model's turn. It contains the listing, names the tools that were added since the
    /// listing was frozen, or withdraws the listing.
    pub announcement: Option<String>,
    /// The number of tokens that the tools would take if all of them were shown in full.
    pub tokens_before: usize,
    /// The number of tokens of everything that this disclosure shows, including the instruction.
    pub tokens_after: usize,
}

impl Disclosure {
    /// Whether the tools are passed through unchanged.
    pub fn passes_through(&self) -> bool {
        self.decision.deferral == Deferral::Nothing
    }

    /// The definitions to send, for callers that build the array of tools themselves. The caller's tools
    /// keep their format, our own tools are in `format`, and appended tools come last. To edit an existing array instead, use
    /// [`Crib::tools_json`](crate::Crib::tools_json).
    pub fn definitions(&self, format: DefinitionFormat) -> Vec<Cow<'_, str>> {
        let appended = |shown: &&DisclosedTool| {
            self.kind == DisclosureKind::Append
                && shown.verdict == Verdict::Full(VerdictReason::Revealed)
        };
        let definition = |shown: &'_ DisclosedTool| shown.definition.clone().map(Cow::Owned);
        let first = self.tools.iter().filter(|shown| !appended(shown)).filter_map(definition);
        let own = self.own_tools.iter().map(|own| Cow::Owned(own.definition(format)));
        let last = self.tools.iter().filter(appended).filter_map(definition);
        first.chain(own).chain(last).collect()
    }
}
