//! The reply to a search, as one type.
//!
//! The text for the model is written from this type in one of five formats, and `transcript` reads such texts back.
//! Catalog text in a reply is quoted, so that it cannot close the structure around it.

mod other_systems;
mod text_formats;
mod transcript;

pub(crate) use transcript::names_in;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use crate::rank::Correction;
use crate::rank::Fit;
use crate::tool::ToolAnnotations;

/// The format of a reply's text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ReplyFormat {
    /// One JSON object.
    #[default]
    Json,
    /// A `<functions>` block, the encoding in which some models see the tools of the prompt.
    Functions,
    /// Markdown.
    Markdown,
    /// A JSON object as everruns writes it: `tools`, `loaded`, `message`.
    Tools,
    /// A JSON object as Hermes writes it: `total_available`, `matches`.
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
    /// The query.
    pub query: String,
    /// How well the tools fit; `None` if nothing was ranked or requested by name, or if the ranker gives no confidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
    /// The tools, best first.
    pub hits: Vec<FoundTool>,
    /// The names of the tools that this reply loads. Their schemas are in the reply, or among the tools from the next turn
    /// on.
    pub loaded: Vec<String>,
    /// Requested names that do not exist.
    pub missing: Vec<MissingTool>,
    /// Names of tools that matched but did not fit into the reply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<String>,
    /// All available tools, after an empty query or one that found nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available: Option<AvailableTools>,
    /// Corrected spellings: `isue` to `issue`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub did_you_mean: Vec<Correction>,
    /// Servers that are still connecting and may have what is missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connecting: Vec<String>,
    /// Servers that do not answer. Their tools are known but cannot be called at the moment.
    #[serde(rename = "down", skip_serializing_if = "Vec::is_empty")]
    pub unavailable_servers: Vec<UnavailableServer>,
    /// Further notes for the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The format of its text, from the settings.
    #[serde(skip)]
    pub format: ReplyFormat,
    /// Whether every hit was requested by its name.
    #[serde(skip)]
    pub(crate) named: bool,
    /// The number of tools that were searched.
    #[serde(skip)]
    pub(crate) searched: usize,
    /// Whether it describes one tool rather than answering a search.
    #[serde(skip)]
    pub(crate) described: bool,
}

/// A tool in a reply.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct FoundTool {
    /// Its name.
    pub name: String,
    /// Its server.
    pub server: Option<String>,
    /// Its description.
    pub description: String,
    /// Its score. Higher is better; only comparable within one reply.
    pub score: f32,
    /// How likely it is to serve the query, from 0 to 1, rounded to hundredths (see docs/ranking.md). `None` if a pattern
    /// or a ranker without confidence found it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f32>,
    /// Its complete input schema, as its owner wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Box<RawValue>>,
    /// Its schema in one line, if the complete one did not fit or was shown before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Its MCP annotations, for approving calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Why it cannot be called at the moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// A server that does not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnavailableServer {
    /// Its name.
    pub server: String,
    /// Why it does not answer.
    #[serde(rename = "why")]
    pub reason: String,
}

/// A requested name that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingTool {
    /// The name as requested.
    pub name: String,
    /// Similar names.
    pub nearest: Vec<String>,
}

/// All available tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AvailableTools {
    /// Every name.
    Names(Vec<String>),
    /// The servers and how many tools each has, if there are too many names.
    Servers(Vec<ServerSize>),
}

/// A server and its number of tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ServerSize {
    /// The server; empty for tools without one.
    pub server: String,
    /// Its number of tools in scope.
    pub tools: usize,
}

/// The parts of a reply that are not tools.
#[derive(Serialize)]
struct ReplyMetadata<'a> {
    /// The loaded tools in order; empty if they are exactly the hits that have a schema.
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

    /// Whether it is not worth waiting for servers that are still connecting, because the hits fit well. If the ranker
    /// has no confidence, only tools that were requested by name are known to fit.
    pub fn is_strong(&self) -> bool {
        let found = !self.hits.is_empty() && self.missing.is_empty();
        found && self.fit.map_or(self.named, |fit| fit == Fit::Strong)
    }

    /// The text in a format of your choice.
    pub fn text(&self, format: ReplyFormat) -> String {
        match format {
            ReplyFormat::Json => serde_json::to_string(self).unwrap_or_default(),
            ReplyFormat::Functions => self.functions(),
            ReplyFormat::Markdown => self.markdown(),
            ReplyFormat::Tools => self.tools(),
            ReplyFormat::Matches => self.matches(),
        }
    }

    /// The parts that are not tools, except for the available tools, which each format writes in its own way.
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
