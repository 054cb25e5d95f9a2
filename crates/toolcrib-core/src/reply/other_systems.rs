//! The reply formats of other systems, which their models and harnesses already know.
//!
//! The other system's keys come first and keep their meaning. Information for which that system has no key (missing
//! names, tools that did not fit, servers that are still connecting) follows under our own keys.

use serde::Serialize;
use serde_json::value::RawValue;

use super::{AvailableTools, Reply, ReplyMetadata, ServerSize};

#[derive(Serialize)]
struct ToolsReply<'a> {
    query: &'a str,
    tools: Vec<ToolEntry<'a>>,
    loaded: &'a [String],
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    available_tools: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    available_sources: Option<Vec<Source<'a>>>,
    #[serde(flatten)]
    metadata: ReplyMetadata<'a>,
}

#[derive(Serialize)]
struct ToolEntry<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<&'a str>,
}

#[derive(Serialize)]
struct Source<'a> {
    name: &'a str,
    tools: usize,
}

impl<'a> Source<'a> {
    fn of(size: &'a ServerSize) -> Self {
        // In Hermes' format, tools without a server have the source `plugin`.
        let name = if size.server.is_empty() { "plugin" } else { &size.server };
        Self { name, tools: size.tools }
    }
}

#[derive(Serialize)]
struct MatchesReply<'a> {
    query: &'a str,
    total_available: usize,
    matches: Vec<Match<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    available_tools: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    available_sources: Option<Vec<Source<'a>>>,
    #[serde(skip_serializing_if = "String::is_empty")]
    hint: String,
    #[serde(flatten)]
    metadata: ReplyMetadata<'a>,
}

#[derive(Serialize)]
struct Match<'a> {
    name: &'a str,
    source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_name: Option<&'a str>,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<&'a str>,
}

impl Reply {
    /// The reply in the format of everruns.
    pub(super) fn tools(&self) -> String {
        let mut message = String::from(match (self.hits.len(), self.loaded.len()) {
            (0, _) if self.notes.is_empty() => "These are all available tools.",
            (0, _) => "",
            (_, 0) => "Nothing was loaded.",
            _ => "The tools are loaded: call them with their real parameters.",
        });
        for note in &self.notes {
            if !message.is_empty() {
                message.push(' ');
            }
            message.push_str(note);
        }
        let tools = self.hits.iter().map(|hit| ToolEntry {
            name: &hit.name,
            description: &hit.description,
            parameters: hit.input_schema.as_deref(),
            signature: hit.signature.as_deref(),
        });
        let (available_tools, available_sources) = self.available();
        let reply = ToolsReply {
            query: &self.query,
            tools: tools.collect(),
            loaded: &self.loaded,
            message,
            available_tools,
            available_sources,
            metadata: ReplyMetadata { loaded: &[], ..self.metadata() },
        };
        serde_json::to_string(&reply).unwrap_or_default()
    }

    /// The reply in the format of Hermes: a list of matches for a search, or the tool itself for a description.
    pub(super) fn matches(&self) -> String {
        if let [hit] = &self.hits[..]
            && self.described
        {
            let tool = ToolEntry {
                name: &hit.name,
                description: &hit.description,
                parameters: hit.input_schema.as_deref(),
                signature: None,
            };
            return serde_json::to_string(&tool).unwrap_or_default();
        }
        let matches = self.hits.iter().map(|hit| Match {
            name: &hit.name,
            source: if hit.server.is_some() { "mcp" } else { "plugin" },
            source_name: hit.server.as_deref(),
            description: &hit.description,
            parameters: hit.input_schema.as_deref(),
            signature: hit.signature.as_deref(),
        });
        let (available_tools, available_sources) = self.available();
        let reply = MatchesReply {
            query: &self.query,
            total_available: self.searched,
            matches: matches.collect(),
            available_tools,
            available_sources,
            hint: self.notes.join(" "),
            metadata: self.metadata(),
        };
        serde_json::to_string(&reply).unwrap_or_default()
    }

    fn available(&self) -> (Option<&[String]>, Option<Vec<Source<'_>>>) {
        match &self.available {
            Some(AvailableTools::Names(names)) => (Some(names), None),
            Some(AvailableTools::Servers(servers)) => {
                (None, Some(servers.iter().map(Source::of).collect()))
            }
            None => (None, None),
        }
    }
}
