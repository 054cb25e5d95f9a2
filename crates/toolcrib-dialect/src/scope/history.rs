//! Entries of a history that load tools.
//!
//! A conversation may add tools on its way: items of the Responses API that carry definitions, and blocks
//! of Messages that refer to tools or define them. What the caller may not know of is left out, and an
//! entry that has nothing left goes with it. Calls and results are the caller's own text and stay.
//!
//! Such entries and blocks are refused in any place or form other than those of the API's reference.

use toolcrib_text::json::Fields;

use super::known_keys::fold_key;
use super::loading_blocks::Loaders;
use super::tool_entries::{NarrowedEntry, Narrowing, filter, items, list, text};
use super::{ScopeViolation, key_check};
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
    let kind = fold_key(kind);
    LOADERS.iter().any(|loader| kind.starts_with(loader))
}

/// Refuses a value that has a block in it which loads tools, at any depth.
pub(super) fn loads_nothing(of: &'static str, raw: &str) -> Result<(), ScopeViolation> {
    if !raw.starts_with(['{', '[']) {
        return Ok(());
    }
    let Loaders(found) = serde_json::from_str(raw).map_err(|_| ScopeViolation::UnknownForm(of))?;
    if found { Err(ScopeViolation::UnknownForm(of)) } else { Ok(()) }
}

/// The same for the fields of an object, except for those in `known`.
fn rest(of: &'static str, fields: &Fields<'_>, known: &[&str]) -> Result<(), ScopeViolation> {
    let mut others = fields.iter().filter(|(key, _)| !known.contains(key) && *key != "input");
    others.try_for_each(|(_, raw)| loads_nothing(of, raw))
}

/// The blocks of a content, or the entries of a history; `None` for a text alone.
fn blocks<'a>(key: &'static str, raw: &'a str) -> Result<Option<Vec<&'a str>>, ScopeViolation> {
    if raw.starts_with('"') || raw == "null" { Ok(None) } else { items(key, raw).map(Some) }
}

impl Narrowing<'_> {
    /// A history without tools that the caller may not know of; `None` if there are none in it.
    pub(super) fn history(
        self,
        raw: &str,
        toolsets: &[String],
    ) -> Result<Option<String>, ScopeViolation> {
        let key = key_check::history_key(self.api);
        if matches!(self.api, Api::Chat | Api::Gemini) {
            let entries = if raw.starts_with('[') { items(key, raw)? } else { Vec::new() };
            let is_known = entries.iter().all(|entry| entry.starts_with('{'));
            return if is_known { Ok(None) } else { Err(ScopeViolation::UnknownForm(key)) };
        }
        let Some(entries) = blocks(key, raw)? else { return Ok(None) };
        let left = filter(&entries, |entry| match self.api {
            Api::Responses => self.item(entry),
            _ => self.message(entry, toolsets),
        })?;
        Ok(left.map(|left| list(&left)))
    }

    /// An item of the Responses API.
    fn item(self, raw: &str) -> Result<NarrowedEntry, ScopeViolation> {
        let of = "input";
        let item = Fields::read(raw).ok_or(ScopeViolation::UnknownForm(of))?;
        let kind = text(&item, "type", of)?;
        let is_short = kind.is_none() && item.get("role").is_none();
        if is_short || kind.as_deref() == Some("item_reference") {
            return Err(ScopeViolation::StoredReference("item_reference"));
        }
        let folded = kind.as_deref().map(fold_key).unwrap_or_default();
        if let Some((_, known)) = ITEMS.iter().find(|(word, _)| *word == folded) {
            let is_plain = |(key, raw): (&str, &str)| match key {
                "tools" | "error" => true,
                "output" | "definition" => false,
                _ => !raw.starts_with(['{', '[']),
            };
            if kind.as_deref() != Some(*known) || !item.iter().all(is_plain) {
                return Err(ScopeViolation::UnknownForm(of));
            }
        }
        let Some(raw) = item.get("tools") else { return Ok(NarrowedEntry::Unchanged) };
        let label = item.string("server_label");
        Ok(match self.tools("tools", raw, label.as_deref())? {
            None => NarrowedEntry::Unchanged,
            // An output must answer its call, whether it found something or not.
            Some(left) if left.is_empty() && kind.as_deref() != Some("tool_search_output") => {
                NarrowedEntry::Removed
            }
            Some(left) => NarrowedEntry::Changed(item.with(&[("tools", Some(list(&left)))])),
        })
    }

    /// A message of Messages.
    fn message(self, raw: &str, toolsets: &[String]) -> Result<NarrowedEntry, ScopeViolation> {
        let message = Fields::read(raw).ok_or(ScopeViolation::UnknownForm("messages"))?;
        rest("messages", &message, &["content"])?;
        let content = message.get("content").unwrap_or("null");
        let Some(content) = blocks("content", content)? else {
            return Ok(NarrowedEntry::Unchanged);
        };
        let left = filter(&content, |raw| self.block(raw, toolsets))?;
        Ok(match left {
            None => NarrowedEntry::Unchanged,
            Some(left) if left.is_empty() => NarrowedEntry::Removed,
            Some(left) => NarrowedEntry::Changed(message.with(&[("content", Some(list(&left)))])),
        })
    }

    fn block(self, raw: &str, toolsets: &[String]) -> Result<NarrowedEntry, ScopeViolation> {
        let of = "content";
        let block = Fields::read(raw).ok_or(ScopeViolation::UnknownForm(of))?;
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
                    return Ok(NarrowedEntry::Unchanged);
                }
                let Some(inner) = blocks(of, content)? else { return Ok(NarrowedEntry::Unchanged) };
                Ok(match filter(&inner, |raw| self.inner(raw))? {
                    None => NarrowedEntry::Unchanged,
                    Some(mut left) => {
                        if left.is_empty() {
                            left.push(GONE.to_owned());
                        }
                        NarrowedEntry::Changed(block.with(&[("content", Some(list(&left)))]))
                    }
                })
            }
            Some(kind) if is_loader(kind) => Err(ScopeViolation::UnknownForm(of)),
            _ => rest(of, &block, &[]).map(|()| NarrowedEntry::Unchanged),
        }
    }

    /// What a search of Anthropic's has found.
    fn search_result(self, block: &Fields<'_>) -> Result<NarrowedEntry, ScopeViolation> {
        let of = "tool_references";
        rest(of, block, &["content"])?;
        let Some(raw) = block.get("content").filter(|raw| *raw != "null") else {
            return Ok(NarrowedEntry::Unchanged);
        };
        let content = Fields::read(raw).ok_or(ScopeViolation::UnknownForm(of))?;
        rest(of, &content, &[of])?;
        let Some(found) = content.get(of) else { return Ok(NarrowedEntry::Unchanged) };
        let left = filter(&items(of, found)?, |raw| {
            let found = Fields::read(raw).ok_or(ScopeViolation::UnnamedTool(of))?;
            self.reference(&found)
        })?;
        Ok(left.map_or(NarrowedEntry::Unchanged, |left| {
            let content = content.with(&[(of, Some(list(&left)))]);
            NarrowedEntry::Changed(block.with(&[("content", Some(content))]))
        }))
    }

    /// A block inside a result.
    fn inner(self, raw: &str) -> Result<NarrowedEntry, ScopeViolation> {
        match Fields::read(raw) {
            Some(block) if block.string("type").as_deref() == Some("tool_reference") => {
                self.reference(&block)
            }
            _ => loads_nothing("content", raw).map(|()| NarrowedEntry::Unchanged),
        }
    }

    /// A reference to a tool: `tool_name` in results, `name` in changes of the tools.
    fn reference(self, block: &Fields<'_>) -> Result<NarrowedEntry, ScopeViolation> {
        let of = "tool_reference";
        rest(of, block, &[])?;
        // Which of two names counts is up to the upstream.
        let names = (text(block, "tool_name", of)?, text(block, "name", of)?);
        let ((Some(name), None) | (None, Some(name))) = names else {
            return Err(ScopeViolation::UnnamedTool(of));
        };
        let is_visible = match text(block, "server_name", of)? {
            Some(group) => self.sees_member(&group, &name),
            None => self.sees(&[&name]),
        };
        Ok(if is_visible { NarrowedEntry::Unchanged } else { NarrowedEntry::Removed })
    }

    /// A block that adds a tool or removes one.
    fn change(
        self,
        block: &Fields<'_>,
        toolsets: &[String],
    ) -> Result<NarrowedEntry, ScopeViolation> {
        let of = "tool_addition";
        rest(of, block, &["tool"])?;
        let tool =
            block.get("tool").and_then(Fields::read).ok_or(ScopeViolation::UnnamedTool(of))?;
        let kind = tool.string("type");
        rest(of, &tool, &["definition"])?;
        if kind.as_deref() != Some("tool_definition") && tool.get("definition").is_some() {
            return Err(ScopeViolation::UnknownForm(of));
        }
        match kind.as_deref() {
            Some("tool_reference" | "mcp_tool_reference") => self.reference(&tool),
            Some("mcp_toolset_reference") => {
                let server = tool.string("server_name").or_else(|| tool.string("mcp_server_name"));
                let is_declared = server.is_some_and(|server| toolsets.contains(&server));
                Ok(if is_declared { NarrowedEntry::Unchanged } else { NarrowedEntry::Removed })
            }
            Some("tool_definition") => {
                let definition = tool.get("definition").ok_or(ScopeViolation::UnnamedTool(of))?;
                Ok(match self.entry(of, definition, None)? {
                    NarrowedEntry::Changed(new) => {
                        let tool = tool.with(&[("definition", Some(new))]);
                        NarrowedEntry::Changed(block.with(&[("tool", Some(tool))]))
                    }
                    kept => kept,
                })
            }
            _ => Err(ScopeViolation::UnnamedTool(of)),
        }
    }
}
