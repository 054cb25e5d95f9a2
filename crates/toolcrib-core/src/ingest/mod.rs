//! Reads lists of tool definitions.
//!
//! The format is detected automatically. It may be an MCP `tools/list` result, a `tools` array of any of the four LLM
//! APIs, a complete request that contains such an array, or lines in our own format. A problem with one tool becomes a
//! [`Finding`] and does not affect the other tools.

mod finding;
mod read;
mod schema;

pub use finding::{Finding, Problem};
pub(crate) use read::group;
pub(crate) use schema::{NAMED, Part, walk};

use std::borrow::Cow;

use crate::error::Error;
use crate::limits::Limits;
use crate::own_names::OwnNames;
use crate::tool::Tool;
use crate::wire_name;
use toolcrib_text::clean::one_line;
use toolcrib_text::json::{self, Fields};
use toolcrib_text::shorten;

/// The tools of one document, and the findings about them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IngestedTools {
    /// The usable tools, in their original order.
    pub tools: Vec<Tool>,
    /// Which tools were withheld or changed, and other remarks.
    pub findings: Vec<Finding>,
    /// The servers' instructions, by server name.
    pub instructions: Vec<(String, String)>,
}

impl IngestedTools {
    /// The same tools with this prefix in their names, so that they do not conflict with the tools of other servers.
    /// The names depend only on the prefix and the tool, so they do not change when other servers connect.
    #[must_use]
    pub fn prefixed(mut self, prefix: &str) -> Self {
        for tool in &mut self.tools {
            tool.name = wire_name::for_tool(prefix, &tool.name).into();
            tool.shown_differs = true;
        }
        self
    }

    /// The same tools, renamed by a function.
    #[must_use]
    pub fn renamed(mut self, name: impl Fn(&str) -> Cow<'_, str>) -> Self {
        for tool in &mut self.tools {
            if let Cow::Owned(name) = name(&tool.name) {
                tool.name = name.into();
                tool.shown_differs = true;
            }
        }
        self
    }
}

/// Where a list of tools comes from. This determines to which server the tools belong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListSource<'a> {
    /// The source is unknown. The server is taken from a field of the tool, or else from the prefix of its name.
    #[default]
    Unknown,
    /// A default server name, such as the name of a file, for tools that do not name their server.
    Label(&'a str),
    /// This MCP server sent the list. All tools belong to it, even if they name another server, because a server must not
    /// be able to add tools to another one. Only MCP's format is read.
    Server(&'a str),
}

impl<'a> From<Option<&'a str>> for ListSource<'a> {
    fn from(label: Option<&'a str>) -> Self {
        label.map_or(Self::Unknown, Self::Label)
    }
}

/// Reads a list of tools in any supported format.
///
/// ```
/// use toolcrib_core::{Limits, ingest};
/// let list = br#"{"tools":[{"name":"add","description":"Adds.","inputSchema":{"type":"object"}}]}"#;
/// let ingested = ingest(list, Some("math"), &Limits::default())?;
/// assert_eq!(ingested.tools[0].name(), "add");
/// assert_eq!(ingested.tools[0].server(), Some("math"));
/// # Ok::<(), toolcrib_core::Error>(())
/// ```
pub fn ingest<'a>(
    bytes: &[u8],
    source: impl Into<ListSource<'a>>,
    limits: &Limits,
) -> Result<IngestedTools, Error> {
    ingest_with_own_names(OwnNames::default(), bytes, source, limits)
}

/// Like [`ingest`], but for callers whose settings give our own tools the names in `names` instead of the default ones.
/// Tools with a [reserved](OwnNames::is_reserved) name are withheld.
pub fn ingest_with_own_names<'a>(
    names: OwnNames,
    bytes: &[u8],
    source: impl Into<ListSource<'a>>,
    limits: &Limits,
) -> Result<IngestedTools, Error> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Error::NotText { offset: error.valid_up_to() })?;
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = read::Reader::new(names, source.into(), limits);
    match serde_json::from_str::<&serde_json::value::RawValue>(text) {
        Ok(document) => read_document(document.get(), &mut reader)?,
        Err(error) => read_lines(text, &error, &mut reader)?,
    }
    Ok(reader.finish())
}

fn read_document(text: &str, reader: &mut read::Reader<'_>) -> Result<(), Error> {
    if let Some(items) = json::items(text) {
        reader.list("tools", &items);
        return Ok(());
    }
    let none = |found: &str| Error::NoTools { found: found.to_owned() };
    let Some(fields) = Fields::read(text) else {
        return Err(none(&format!("`{}`", shorten(&one_line(text), 40))));
    };
    // If this is a JSON-RPC response, the list is inside `result`.
    let result = fields.get("result").and_then(Fields::read);
    let fields = result.unwrap_or(fields);
    if let Some(list) = fields.get("tools") {
        let items = json::items(list).ok_or_else(|| none("`tools` that is not an array"))?;
        reader.envelope(&fields);
        reader.list("tools", &items);
        return Ok(());
    }
    if read::Reader::is_item(&fields) {
        reader.item("document", text);
        return Ok(());
    }
    let shown = |key: &str| format!("`{}`", shorten(&one_line(key), 40));
    let keys: Vec<_> = fields.iter().take(8).map(|(key, _)| shown(key)).collect();
    Err(none(&format!("an object with the keys {}", keys.join(", "))))
}

fn read_lines(
    text: &str,
    whole: &serde_json::Error,
    reader: &mut read::Reader<'_>,
) -> Result<(), Error> {
    let lines = || {
        text.lines()
            .enumerate()
            .map(|(i, line)| (i + 1, line.trim()))
            .filter(|(_, l)| !l.is_empty())
    };
    // If at least one line is an object, the text is read as JSON lines. Otherwise the parser's error about the whole
    // document is reported, because it is more helpful.
    if !lines().any(|(_, line)| Fields::read(line).is_some()) {
        let problem = whole.to_string();
        let problem = problem.split(" at line ").next().unwrap_or_default().to_owned();
        return Err(Error::NotJson { problem, line: whole.line(), column: whole.column() });
    }
    for (number, line) in lines() {
        reader.item(&format!("line {number}"), line);
    }
    Ok(())
}
