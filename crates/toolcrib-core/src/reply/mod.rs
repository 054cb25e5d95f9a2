//! What a search answers, as one type.
//!
//! The text the model gets is made from it once, at the edge, in one of five forms, and a
//! transcript is read back by the same module. Catalog text in a reply is data: it cannot close
//! the wrapper it stands in, whatever it says.

mod other_systems;
mod text_formats;
mod transcript;

pub(crate) use transcript::names_in;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use crate::rank::Correction;
use crate::rank::Fit;
use crate::tool::ToolAnnotations;

/// How replies are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ReplyFormat {
    /// One JSON object.
    #[default]
    Json,
    /// A `<functions>` block, the encoding some models see their first tools in.
    Functions,
    /// Markdown.
    Markdown,
    /// A JSON object as everruns writes it: `tools`, `loaded`, `message`.
    Tools,
    /// A JSON object as Hermes writes it: `total_available`, `matches`.
    Matches,
}

impl ReplyFormat {
    /// Whether a reply in this form is a JSON object.
    pub fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::Tools | Self::Matches)
    }
}

/// The answer to one search or description.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Reply {
    /// What was asked.
    pub query: String,
    /// Whether the tools serve; `None` where nothing was ranked or asked for by name, or another system's
    /// ranker ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
    /// The tools, best first.
    pub hits: Vec<FoundTool>,
    /// Those of them that this reply loads: their schemas are here, or in the tools from the next
    /// turn on.
    pub loaded: Vec<String>,
    /// Names that were asked for and are not there.
    pub missing: Vec<MissingTool>,
    /// Tools that matched but found no room: by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<String>,
    /// What there is, after a browse or a miss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available: Option<AvailableTools>,
    /// Words that were read as others: `isue` as `issue`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub did_you_mean: Vec<Correction>,
    /// Servers that are still connecting: what is missing may be theirs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connecting: Vec<String>,
    /// Servers that do not answer: their tools are known, and cannot be called now.
    #[serde(rename = "down", skip_serializing_if = "Vec::is_empty")]
    pub unavailable_servers: Vec<UnavailableServer>,
    /// What else the model should know, in sentences of ours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// How it is to be written, by the settings.
    #[serde(skip)]
    pub format: ReplyFormat,
    /// Whether every hit was asked for by its name.
    #[serde(skip)]
    pub(crate) named: bool,
    /// How many tools were searched.
    #[serde(skip)]
    pub(crate) searched: usize,
    /// Whether it is the description of one tool, and not the answer to a search.
    #[serde(skip)]
    pub(crate) described: bool,
}

/// One tool of a reply.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct FoundTool {
    /// Its name.
    pub name: String,
    /// Its server.
    pub server: Option<String>,
    /// Its description.
    pub description: String,
    /// Its score; higher is better, comparable within one reply only.
    pub score: f32,
    /// How likely it is to serve, from 0 to 1 in hundredths; docs/ranking.md says where that holds. `None`
    /// where a pattern or another system's ranker found it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f32>,
    /// Its whole input schema, as its owner wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Box<RawValue>>,
    /// Its schema in one line, where the whole one found no room or was shown before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// What its owner says it does to the world, for who must approve of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Why it cannot be called now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// A server that does not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnavailableServer {
    /// Which.
    pub server: String,
    /// Why.
    #[serde(rename = "why")]
    pub reason: String,
}

/// A name that is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingTool {
    /// As it was asked for.
    pub name: String,
    /// Names like it.
    pub nearest: Vec<String>,
}

/// What there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AvailableTools {
    /// Every name.
    Names(Vec<String>),
    /// Too many to name: the servers and how many tools each has.
    Servers(Vec<ServerSize>),
}

/// A server and its size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ServerSize {
    /// The server; empty for tools without one.
    pub server: String,
    /// How many tools it has in scope.
    pub tools: usize,
}

/// What is no tool.
#[derive(Serialize)]
struct Rest<'a> {
    /// All that is loaded, in order, where the schemas that are here do not tell it.
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
    /// The answer as the model gets it, in the form that is set.
    pub fn for_model(&self) -> String {
        self.text(self.format)
    }

    /// Whether a server that has yet to connect is unlikely to have something better. Rankers without a fit
    /// cannot tell, so there only tools that were asked for by name count.
    pub fn is_strong(&self) -> bool {
        let found = !self.hits.is_empty() && self.missing.is_empty();
        found && self.fit.map_or(self.named, |fit| fit == Fit::Strong)
    }

    /// The answer in a form of one's own choosing.
    pub fn text(&self, format: ReplyFormat) -> String {
        match format {
            ReplyFormat::Json => serde_json::to_string(self).unwrap_or_default(),
            ReplyFormat::Functions => self.functions(),
            ReplyFormat::Markdown => self.markdown(),
            ReplyFormat::Tools => self.tools(),
            ReplyFormat::Matches => self.matches(),
        }
    }

    /// All that is no tool, but for what is available: each form has its own words for that.
    fn rest(&self) -> Rest<'_> {
        let here = self.hits.iter().filter(|hit| hit.input_schema.is_some());
        let told = here.map(|hit| &hit.name).eq(&self.loaded);
        Rest {
            loaded: if told { &[] } else { &self.loaded },
            missing: &self.missing,
            omitted: &self.omitted,
            available: None,
            did_you_mean: &self.did_you_mean,
            connecting: &self.connecting,
            unavailable_servers: &self.unavailable_servers,
        }
    }
}
