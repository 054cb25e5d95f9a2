//! Removes tools outside the caller's scope from entries of the history.
//!
//! A conversation may load tools, with items of the Responses API that contain definitions, and with blocks of Messages
//! that refer to tools or define them. Tools outside the scope are removed from these, and so is an entry that has no
//! tools left. Calls and results are the caller's own text and are kept.
//!
//! Entries and blocks that load tools are accepted only in the positions and forms that the API documents.

use toolcrib_text::json::Fields;

use super::known_keys::fold_key;
use super::loading_blocks::HasLoadingBlock;
use super::tool_entries::{NarrowedEntry, Narrowing, filter, items, list, text};
use super::{ScopeViolation, key_check};
use crate::api::Api;

/// The content of a result if all tools that it refers to were removed.
const NO_TOOLS_LEFT: &str =
    r#"{"type":"text","text":"The tools that were found are not available."}"#;

/// Prefixes of the types of blocks that load tools. They are compared with the type after `fold_key`.
const LOADING_BLOCK_PREFIXES: [&str; 7] = [
    "tooladdition",
    "toolremoval",
    "toolreference",
    "tooldefinition",
    "toolsearch",
    "mcptoolreference",
    "mcptoolset",
];

/// Types of items that load tools: in the form that `fold_key` returns, and in the API's spelling.
const LOADING_ITEMS: [(&str, &str); 3] = [
    ("toolsearchoutput", "tool_search_output"),
    ("additionaltools", "additional_tools"),
    ("mcplisttools", "mcp_list_tools"),
];

pub(super) fn is_loading_block(kind: &str) -> bool {
    let kind = fold_key(kind);
    LOADING_BLOCK_PREFIXES.iter().any(|prefix| kind.starts_with(prefix))
}

/// Returns an error if a value contains a block that loads tools, at any depth.
pub(super) fn require_no_loading_blocks(of: &'static str, raw: &str) -> Result<(), ScopeViolation> {
    if !raw.starts_with(['{', '[']) {
        return Ok(());
    }
    let HasLoadingBlock(found) =
        serde_json::from_str(raw).map_err(|_| ScopeViolation::UnknownForm(of))?;
    if found { Err(ScopeViolation::UnknownForm(of)) } else { Ok(()) }
}

/// Returns an error if any field of an object, other than `input` and those in `known`, contains a block that loads
/// tools.
fn require_no_loading_blocks_except(
    of: &'static str,
    fields: &Fields<'_>,
    known: &[&str],
) -> Result<(), ScopeViolation> {
    let mut others = fields.iter().filter(|(key, _)| !known.contains(key) && *key != "input");
    others.try_for_each(|(_, raw)| require_no_loading_blocks(of, raw))
}

/// Returns the blocks of an entry or the entries of a history. Returns `None` if the value is a string or `null`.
fn blocks<'a>(key: &'static str, raw: &'a str) -> Result<Option<Vec<&'a str>>, ScopeViolation> {
    if raw.starts_with('"') || raw == "null" { Ok(None) } else { items(key, raw).map(Some) }
}

impl Narrowing<'_> {
    /// Removes tools outside the scope from a history. Returns `None` if nothing changes.
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

    /// Removes tools outside the scope from an item of the Responses API.
    fn item(self, raw: &str) -> Result<NarrowedEntry, ScopeViolation> {
        let of = "input";
        let item = Fields::read(raw).ok_or(ScopeViolation::UnknownForm(of))?;
        let kind = text(&item, "type", of)?;
        let is_short = kind.is_none() && item.get("role").is_none();
        if is_short || kind.as_deref() == Some("item_reference") {
            return Err(ScopeViolation::StoredReference("item_reference"));
        }
        let folded = kind.as_deref().map(fold_key).unwrap_or_default();
        if let Some((_, known)) = LOADING_ITEMS.iter().find(|(word, _)| *word == folded) {
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
            // A search output is kept even if no tool is left in it, because every search call must have an output.
            Some(left) if left.is_empty() && kind.as_deref() != Some("tool_search_output") => {
                NarrowedEntry::Removed
            }
            Some(left) => NarrowedEntry::Changed(item.with(&[("tools", Some(list(&left)))])),
        })
    }

    /// Removes tools outside the scope from a message of the Messages API.
    fn message(self, raw: &str, toolsets: &[String]) -> Result<NarrowedEntry, ScopeViolation> {
        let message = Fields::read(raw).ok_or(ScopeViolation::UnknownForm("messages"))?;
        require_no_loading_blocks_except("messages", &message, &["content"])?;
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
            // The result of any call may contain blocks, and these may refer to tools.
            Some(kind) if kind.ends_with("tool_result") => {
                require_no_loading_blocks_except(of, &block, &["content"])?;
                let content = block.get("content").unwrap_or("null");
                // The result of a server tool may be an object. Such an object must not contain references.
                if content.starts_with('{') && kind != "tool_result" {
                    require_no_loading_blocks(of, content)?;
                    return Ok(NarrowedEntry::Unchanged);
                }
                let Some(inner) = blocks(of, content)? else { return Ok(NarrowedEntry::Unchanged) };
                Ok(match filter(&inner, |raw| self.inner(raw))? {
                    None => NarrowedEntry::Unchanged,
                    Some(mut left) => {
                        if left.is_empty() {
                            left.push(NO_TOOLS_LEFT.to_owned());
                        }
                        NarrowedEntry::Changed(block.with(&[("content", Some(list(&left)))]))
                    }
                })
            }
            Some(kind) if is_loading_block(kind) => Err(ScopeViolation::UnknownForm(of)),
            _ => {
                require_no_loading_blocks_except(of, &block, &[]).map(|()| NarrowedEntry::Unchanged)
            }
        }
    }

    /// Removes tools outside the scope from a result of Anthropic's search.
    fn search_result(self, block: &Fields<'_>) -> Result<NarrowedEntry, ScopeViolation> {
        let of = "tool_references";
        require_no_loading_blocks_except(of, block, &["content"])?;
        let Some(raw) = block.get("content").filter(|raw| *raw != "null") else {
            return Ok(NarrowedEntry::Unchanged);
        };
        let content = Fields::read(raw).ok_or(ScopeViolation::UnknownForm(of))?;
        require_no_loading_blocks_except(of, &content, &[of])?;
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

    /// Checks a block inside a result. A reference to a tool outside the scope is removed.
    fn inner(self, raw: &str) -> Result<NarrowedEntry, ScopeViolation> {
        match Fields::read(raw) {
            Some(block) if block.string("type").as_deref() == Some("tool_reference") => {
                self.reference(&block)
            }
            _ => require_no_loading_blocks("content", raw).map(|()| NarrowedEntry::Unchanged),
        }
    }

    /// Removes a reference if its tool is outside the scope. The tool's name is under `tool_name` in results, and under
    /// `name` in blocks that add or remove tools.
    fn reference(self, block: &Fields<'_>) -> Result<NarrowedEntry, ScopeViolation> {
        let of = "tool_reference";
        require_no_loading_blocks_except(of, block, &[])?;
        // A reference with both names is rejected, because upstreams may differ in which name they use.
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

    /// Checks a block that adds or removes a tool. The block is removed if the tool is outside the scope.
    fn change(
        self,
        block: &Fields<'_>,
        toolsets: &[String],
    ) -> Result<NarrowedEntry, ScopeViolation> {
        let of = "tool_addition";
        require_no_loading_blocks_except(of, block, &["tool"])?;
        let tool =
            block.get("tool").and_then(Fields::read).ok_or(ScopeViolation::UnnamedTool(of))?;
        let kind = tool.string("type");
        require_no_loading_blocks_except(of, &tool, &["definition"])?;
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
