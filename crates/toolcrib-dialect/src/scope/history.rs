//! Entries of a history that load tools.
//!
//! A conversation may add tools on its way: items of the Responses API that carry definitions, and blocks
//! of Messages that refer to tools or define them. What the caller may not know of is left out, and an
//! entry that has nothing left goes with it. Calls and results are the caller's own text and stay.
//!
//! Such entries and blocks are refused in any place or form other than those of the API's reference.

use toolcrib_text::json::Fields;

use super::entries::{Kept, Narrow, filter, items, list, text};
use super::loaders::Loaders;
use super::words::fold;
use super::{Refused, keys};
use crate::api::Api;

/// What stands where every tool that a result refers to is left out.
const GONE: &str = r#"{"type":"text","text":"The tools that were found are not available."}"#;

/// Beginnings of the types of blocks that load tools, folded.
const LOADERS: [&str; 7] = [
    "tooladdition",
    "toolremoval",
    "toolreference",
    "tooldefinition",
    "toolsearch",
    "mcptoolreference",
    "mcptoolset",
];

/// Types of items that load tools, folded, and their spelling.
const ITEMS: [(&str, &str); 3] = [
    ("toolsearchoutput", "tool_search_output"),
    ("additionaltools", "additional_tools"),
    ("mcplisttools", "mcp_list_tools"),
];

pub(super) fn is_loader(kind: &str) -> bool {
    let kind = fold(kind);
    LOADERS.iter().any(|loader| kind.starts_with(loader))
}

/// Refuses a value that has a block in it which loads tools, at any depth.
pub(super) fn loads_nothing(of: &'static str, raw: &str) -> Result<(), Refused> {
    if !raw.starts_with(['{', '[']) {
        return Ok(());
    }
    let Loaders(found) = serde_json::from_str(raw).map_err(|_| Refused::Form(of))?;
    if found { Err(Refused::Form(of)) } else { Ok(()) }
}

/// The same for the fields of an object, except for those in `known`.
fn rest(of: &'static str, fields: &Fields<'_>, known: &[&str]) -> Result<(), Refused> {
    let mut others = fields.iter().filter(|(key, _)| !known.contains(key) && *key != "input");
    others.try_for_each(|(_, raw)| loads_nothing(of, raw))
}

/// The blocks of a content, or the entries of a history; `None` for a text alone.
fn blocks<'a>(key: &'static str, raw: &'a str) -> Result<Option<Vec<&'a str>>, Refused> {
    if raw.starts_with('"') || raw == "null" { Ok(None) } else { items(key, raw).map(Some) }
}

impl Narrow<'_> {
    /// A history without tools that the caller may not know of; `None` if there are none in it.
    pub(super) fn history(self, raw: &str, toolsets: &[String]) -> Result<Option<String>, Refused> {
        let key = keys::history_key(self.api);
        if matches!(self.api, Api::Chat | Api::Gemini) {
            let entries = if raw.starts_with('[') { items(key, raw)? } else { Vec::new() };
            let is_known = entries.iter().all(|entry| entry.starts_with('{'));
            return if is_known { Ok(None) } else { Err(Refused::Form(key)) };
        }
        let Some(entries) = blocks(key, raw)? else { return Ok(None) };
        let left = filter(&entries, |entry| match self.api {
            Api::Responses => self.item(entry),
            _ => self.message(entry, toolsets),
        })?;
        Ok(left.map(|left| list(&left)))
    }

    /// An item of the Responses API.
    fn item(self, raw: &str) -> Result<Kept, Refused> {
        let of = "input";
        let item = Fields::read(raw).ok_or(Refused::Form(of))?;
        let kind = text(&item, "type", of)?;
        let is_short = kind.is_none() && item.get("role").is_none();
        if is_short || kind.as_deref() == Some("item_reference") {
            return Err(Refused::Stored("item_reference"));
        }
        let folded = kind.as_deref().map(fold).unwrap_or_default();
        if let Some((_, known)) = ITEMS.iter().find(|(word, _)| *word == folded) {
            let is_plain = |(key, raw): (&str, &str)| match key {
                "tools" | "error" => true,
                "output" | "definition" => false,
                _ => !raw.starts_with(['{', '[']),
            };
            if kind.as_deref() != Some(*known) || !item.iter().all(is_plain) {
                return Err(Refused::Form(of));
            }
        }
        let Some(raw) = item.get("tools") else { return Ok(Kept::AsIs) };
        let label = item.string("server_label");
        Ok(match self.tools("tools", raw, label.as_deref())? {
            None => Kept::AsIs,
            // An output must answer its call, whether it found something or not.
            Some(left) if left.is_empty() && kind.as_deref() != Some("tool_search_output") => {
                Kept::Nothing
            }
            Some(left) => Kept::As(item.with(&[("tools", Some(list(&left)))])),
        })
    }

    /// A message of Messages.
    fn message(self, raw: &str, toolsets: &[String]) -> Result<Kept, Refused> {
        let message = Fields::read(raw).ok_or(Refused::Form("messages"))?;
        rest("messages", &message, &["content"])?;
        let content = message.get("content").unwrap_or("null");
        let Some(content) = blocks("content", content)? else { return Ok(Kept::AsIs) };
        let left = filter(&content, |raw| self.block(raw, toolsets))?;
        Ok(match left {
            None => Kept::AsIs,
            Some(left) if left.is_empty() => Kept::Nothing,
            Some(left) => Kept::As(message.with(&[("content", Some(list(&left)))])),
        })
    }

    fn block(self, raw: &str, toolsets: &[String]) -> Result<Kept, Refused> {
        let of = "content";
        let block = Fields::read(raw).ok_or(Refused::Form(of))?;
        match text(&block, "type", of)?.as_deref() {
            Some("tool_reference") => self.reference(&block),
            Some("tool_addition" | "tool_removal") => self.change(&block, toolsets),
            Some("tool_search_tool_result") => self.search_result(&block),
            // Results of calls, whatever the tool: blocks inside of blocks.
            Some(kind) if kind.ends_with("tool_result") => {
                rest(of, &block, &["content"])?;
                let content = block.get("content").unwrap_or("null");
                // What a server tool returns may be an object, which has no references in it.
                if content.starts_with('{') && kind != "tool_result" {
                    loads_nothing(of, content)?;
                    return Ok(Kept::AsIs);
                }
                let Some(inner) = blocks(of, content)? else { return Ok(Kept::AsIs) };
                Ok(match filter(&inner, |raw| self.inner(raw))? {
                    None => Kept::AsIs,
                    Some(mut left) => {
                        if left.is_empty() {
                            left.push(GONE.to_owned());
                        }
                        Kept::As(block.with(&[("content", Some(list(&left)))]))
                    }
                })
            }
            Some(kind) if is_loader(kind) => Err(Refused::Form(of)),
            _ => rest(of, &block, &[]).map(|()| Kept::AsIs),
        }
    }

    /// What a search of Anthropic's has found.
    fn search_result(self, block: &Fields<'_>) -> Result<Kept, Refused> {
        let of = "tool_references";
        rest(of, block, &["content"])?;
        let Some(raw) = block.get("content").filter(|raw| *raw != "null") else {
            return Ok(Kept::AsIs);
        };
        let content = Fields::read(raw).ok_or(Refused::Form(of))?;
        rest(of, &content, &[of])?;
        let Some(found) = content.get(of) else { return Ok(Kept::AsIs) };
        let left = filter(&items(of, found)?, |raw| {
            let found = Fields::read(raw).ok_or(Refused::Unnamed(of))?;
            self.reference(&found)
        })?;
        Ok(left.map_or(Kept::AsIs, |left| {
            let content = content.with(&[(of, Some(list(&left)))]);
            Kept::As(block.with(&[("content", Some(content))]))
        }))
    }

    /// A block inside a result.
    fn inner(self, raw: &str) -> Result<Kept, Refused> {
        match Fields::read(raw) {
            Some(block) if block.string("type").as_deref() == Some("tool_reference") => {
                self.reference(&block)
            }
            _ => loads_nothing("content", raw).map(|()| Kept::AsIs),
        }
    }

    /// A reference to a tool: `tool_name` in results, `name` in changes of the tools.
    fn reference(self, block: &Fields<'_>) -> Result<Kept, Refused> {
        let of = "tool_reference";
        rest(of, block, &[])?;
        // Which of two names counts is up to the upstream.
        let names = (text(block, "tool_name", of)?, text(block, "name", of)?);
        let ((Some(name), None) | (None, Some(name))) = names else {
            return Err(Refused::Unnamed(of));
        };
        let is_visible = match text(block, "server_name", of)? {
            Some(group) => self.sees_member(&group, &name),
            None => self.sees(&[&name]),
        };
        Ok(if is_visible { Kept::AsIs } else { Kept::Nothing })
    }

    /// A block that adds a tool or removes one.
    fn change(self, block: &Fields<'_>, toolsets: &[String]) -> Result<Kept, Refused> {
        let of = "tool_addition";
        rest(of, block, &["tool"])?;
        let tool = block.get("tool").and_then(Fields::read).ok_or(Refused::Unnamed(of))?;
        let kind = tool.string("type");
        rest(of, &tool, &["definition"])?;
        if kind.as_deref() != Some("tool_definition") && tool.get("definition").is_some() {
            return Err(Refused::Form(of));
        }
        match kind.as_deref() {
            Some("tool_reference" | "mcp_tool_reference") => self.reference(&tool),
            Some("mcp_toolset_reference") => {
                let server = tool.string("server_name").or_else(|| tool.string("mcp_server_name"));
                let is_declared = server.is_some_and(|server| toolsets.contains(&server));
                Ok(if is_declared { Kept::AsIs } else { Kept::Nothing })
            }
            Some("tool_definition") => {
                let definition = tool.get("definition").ok_or(Refused::Unnamed(of))?;
                Ok(match self.entry(of, definition, None)? {
                    Kept::As(new) => {
                        let tool = tool.with(&[("definition", Some(new))]);
                        Kept::As(block.with(&[("tool", Some(tool))]))
                    }
                    kept => kept,
                })
            }
            _ => Err(Refused::Unnamed(of)),
        }
    }
}
