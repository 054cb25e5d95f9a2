//! The reply to a search, as one type.
//!
//! The text for the model is written from this type in one of five formats, and `transcript` reads such texts back.
//! Text from the catalog is quoted in a reply, so that it cannot break out of the structure around it.

mod other_systems;
mod text_formats;
mod transcript;

pub(crate) use transcript::{NO_FIT, names_in};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use crate::rank::Correction;
use crate::rank::Fit;
use crate::tool::ToolAnnotations;

/// The format of a reply's text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ReplyFormat {
    /// One JSON object.
    #[default]
    Json,
    /// A `<functions>` block, which is the form in which some models see the tools of the prompt.
    Functions,
    /// Markdown text.
    Markdown,
    /// A JSON object in the format of everruns, with `tools`, `loaded` and `message`.
    Tools,
    /// A JSON object in the format of Hermes, with `total_available` and `matches`.
    Matches,
}

impl ReplyFormat {
    /// Whether a reply in this format is a JSON object.
    pub fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::Tools | Self::Matches)
    }
}

/// The reply to a search or to a request for one tool's description.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Reply {
    /// The query to which this is the reply.
    pub query: String,
    /// How well the tools fit. It is `None` if no tool was ranked and none was requested by name, or if the ranker
    /// provides no confidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
    /// The tools that were found, best first.
    pub hits: Vec<FoundTool>,
    /// Details of some of the hits' servers, such as instructions, by server name. The engine leaves it empty; the
    /// caller may fill it. Only [`ReplyFormat::Json`] contains it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<String, ServerDetails>,
    /// The names of the tools that this reply loads. Their schemas are in the reply itself, or in the tool list from
    /// the next turn on.
    pub loaded: Vec<String>,
    /// Tools that were requested by name and do not exist.
    pub missing: Vec<MissingTool>,
    /// Names of tools that matched but did not fit into the reply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<String>,
    /// A list of what is available. It is set if the query was empty or found nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available: Option<AvailableTools>,
    /// Corrected spellings, such as `isue` to `issue`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub did_you_mean: Vec<Correction>,
    /// Servers that are still connecting and may have the missing tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connecting: Vec<String>,
    /// Servers that do not respond. Their tools are known but cannot be called at the moment.
    #[serde(rename = "down", skip_serializing_if = "Vec::is_empty")]
    pub unavailable_servers: Vec<UnavailableServer>,
    /// Further notes for the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The format of the reply's text, from the settings.
    #[serde(skip)]
    pub format: ReplyFormat,
    /// Whether every hit was requested by its name.
    #[serde(skip)]
    pub(crate) named: bool,
    /// The number of tools that were searched.
    #[serde(skip)]
    pub(crate) searched: usize,
    /// Whether the reply is the description of one tool and not the result of a search.
    #[serde(skip)]
    pub(crate) described: bool,
}

/// A tool in a reply.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct FoundTool {
    /// The tool's name.
    pub name: String,
    /// The tool's server.
    pub server: Option<String>,
    /// The tool's description.
    pub description: String,
    /// The tool's score. Higher is better. Scores are comparable only within one reply.
    pub score: f32,
    /// The probability that the tool serves the query, from 0 to 1, rounded to hundredths (see docs/ranking.md). It is
    /// `None` if the tool was found by a pattern or by a ranker without confidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f32>,
    /// The tool's complete input schema, as its owner wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Box<RawValue>>,
    /// The tool's schema in one line. It is used if the complete schema did not fit or was shown before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The tool's MCP annotations, which help to decide whether to approve a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// What the tool's `_meta` says about its user interface, for hosts that show it.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
    /// Our own tool through which this tool is called, if calls are split by [`Settings::split_calls`](crate::Settings).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<&'static str>,
    /// Why the tool cannot be called at the moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// What a server says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ServerDetails {
    /// The server's instructions for the use of its tools. This is data from the server, like the tools' descriptions.
    pub instructions: String,
}

impl ServerDetails {
    /// Creates the details of a server from its instructions, which must be cleaned and of limited length.
    pub fn new(instructions: String) -> Self {
        Self { instructions }
    }
}

/// A server that does not respond.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnavailableServer {
    /// The server's name.
    pub server: String,
    /// Why the server does not respond.
    #[serde(rename = "why")]
    pub reason: String,
}

/// A tool that was requested by name and does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingTool {
    /// The name as requested.
    pub name: String,
    /// Names of existing tools that are similar to the requested name.
    pub nearest: Vec<String>,
}

/// What is available to the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AvailableTools {
    /// The name of every tool.
    Names(Vec<String>),
    /// The servers and how many tools each has. This is used if there are too many names.
    Servers(Vec<ServerSize>),
}

/// A server and its number of tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ServerSize {
    /// The server's name; empty for tools without a server.
    pub server: String,
    /// The number of the server's tools that are in scope.
    pub tools: usize,
}

/// The fields of a reply other than the tools that were found.
#[derive(Serialize)]
struct ReplyMetadata<'a> {
    /// The names of the loaded tools, in order. The list is left empty if these are exactly the hits with a schema,
    /// because the text shows those anyway.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    loaded: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    missing: &'a [MissingTool],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    omitted: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    available: Option<&'a AvailableTools>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    did_you_mean: &'a [Correction],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    connecting: &'a [String],
    #[serde(rename = "down", skip_serializing_if = "<[_]>::is_empty")]
    unavailable_servers: &'a [UnavailableServer],
}

impl Reply {
    /// The text for the model, in the configured format.
    pub fn for_model(&self) -> String {
        self.text(self.format)
    }

    /// Whether the hits fit so well that it is not worth waiting for servers that are still connecting. If the ranker
    /// has no confidence, only tools that were requested by name are known to fit.
    pub fn is_strong(&self) -> bool {
        let found = !self.hits.is_empty() && self.missing.is_empty();
        found && self.fit.map_or(self.named, |fit| fit == Fit::Strong)
    }

    /// The text for the model, in the given format.
    pub fn text(&self, format: ReplyFormat) -> String {
        match format {
            ReplyFormat::Json => serde_json::to_string(self).unwrap_or_default(),
            ReplyFormat::Functions => self.functions(),
            ReplyFormat::Markdown => self.markdown(),
            ReplyFormat::Tools => self.tools(),
            ReplyFormat::Matches => self.matches(),
        }
    }

    /// The fields of the reply other than the tools that were found. `available` is left out, because each format
    /// writes it in its own way.
    fn metadata(&self) -> ReplyMetadata<'_> {
        let here = self.hits.iter().filter(|hit| hit.input_schema.is_some());
        let is_implied = here.map(|hit| &hit.name).eq(&self.loaded);
        ReplyMetadata {
            loaded: if is_implied { &[] } else { &self.loaded },
            missing: &self.missing,
            omitted: &self.omitted,
            available: None,
            did_you_mean: &self.did_you_mean,
            connecting: &self.connecting,
            unavailable_servers: &self.unavailable_servers,
        }
    }
}
