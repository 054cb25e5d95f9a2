//! Tools come in.
//!
//! One function takes bytes and finds out what they are: an MCP `tools/list` result, a `tools` array
//! of any of the four LLM APIs (or the whole request around it), or our own lines. Whatever is wrong
//! with one tool becomes a [`Finding`] about that tool; its siblings come in all the same.

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

/// What came in, and what is to be said about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IngestedTools {
    /// The usable tools, in the order they stood in.
    pub tools: Vec<Tool>,
    /// What was held, changed or noticed.
    pub findings: Vec<Finding>,
    /// What a server says about itself as a whole, by server name.
    pub instructions: Vec<(String, String)>,
}

impl IngestedTools {
    /// The same tools under names that no other server's can have: each with this prefix before it.
    /// They depend on the prefix and the tool alone, and so stay as they are whoever else connects.
    #[must_use]
    pub fn prefixed(mut self, prefix: &str) -> Self {
        for tool in &mut self.tools {
            tool.name = wire_name::of(prefix, &tool.name).into();
            tool.differs = true;
        }
        self
    }

    /// The same tools, each under the name that a function gives it.
    #[must_use]
    pub fn renamed(mut self, name: impl Fn(&str) -> Cow<'_, str>) -> Self {
        for tool in &mut self.tools {
            if let Cow::Owned(name) = name(&tool.name) {
                tool.name = name.into();
                tool.differs = true;
            }
        }
        self
    }
}

/// Where a list comes from, and what that says about its tools' server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin<'a> {
    /// Nothing is known: a tool's own word or the prefix of its name tells.
    #[default]
    Unknown,
    /// A label for tools that do not say theirs, such as a file's name.
    Label(&'a str),
    /// This server sent the list. Whatever its tools claim, they are its own: a stranger cannot put
    /// a tool on another's shelf.
    Server(&'a str),
}

impl<'a> From<Option<&'a str>> for Origin<'a> {
    fn from(label: Option<&'a str>) -> Self {
        label.map_or(Self::Unknown, Self::Label)
    }
}

/// Reads a catalog in any form.
///
/// ```
/// use toolcrib_core::{Limits, ingest};
/// let list = br#"{"tools":[{"name":"add","description":"Adds.","inputSchema":{"type":"object"}}]}"#;
/// let came = ingest(list, Some("math"), &Limits::default())?;
/// assert_eq!(came.tools[0].name(), "add");
/// assert_eq!(came.tools[0].server(), Some("math"));
/// # Ok::<(), toolcrib_core::Error>(())
/// ```
pub fn ingest<'a>(
    bytes: &[u8],
    origin: impl Into<Origin<'a>>,
    limits: &Limits,
) -> Result<IngestedTools, Error> {
    ingest_with_own_names(OwnNames::default(), bytes, origin, limits)
}

/// The same, for tools that will stand beside ours under these names: whatever they do not
/// [reserve](OwnNames::is_reserved) is a name like any other.
pub fn ingest_with_own_names<'a>(
    names: OwnNames,
    bytes: &[u8],
    origin: impl Into<Origin<'a>>,
    limits: &Limits,
) -> Result<IngestedTools, Error> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Error::NotText { offset: error.valid_up_to() })?;
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = read::Reader::new(names, origin.into(), limits);
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
    // A JSON-RPC answer has its list one level down.
    let result = fields.get("result").and_then(Fields::read);
    let fields = result.unwrap_or(fields);
    if let Some(list) = fields.get("tools") {
        let items = json::items(list).ok_or_else(|| none("`tools` that is not an array"))?;
        reader.about(&fields);
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
    // One readable line is enough to call it lines; otherwise the document's own error says more.
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
