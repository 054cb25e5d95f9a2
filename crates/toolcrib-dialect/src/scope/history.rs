//! Entries of a history that load tools.
//!
//! A conversation may add tools on its way: items of the Responses API that carry definitions, and blocks
//! of Messages that refer to tools or define them. What the caller may not know of is left out, and an
//! entry that has nothing left goes with it. Calls and results are the caller's own text and stay.

use toolcrib_core::json::Fields;

use super::entries::{Kept, Narrow, filter, items, list};
use super::{Refused, keys};
use crate::api::Api;

/// What stands where every tool that a result refers to is left out.
const GONE: &str = r#"{"type":"text","text":"The tools that were found are not available."}"#;

/// The blocks of a content, or the entries of a history; `None` for a text alone.
fn blocks<'a>(key: &'static str, raw: &'a str) -> Result<Option<Vec<&'a str>>, Refused> {
    if raw.starts_with('"') || raw == "null" { Ok(None) } else { items(key, raw).map(Some) }
}

impl Narrow<'_> {
    /// A history without tools that the caller may not know of; `None` if there are none in it.
    pub(super) fn history(self, raw: &str, toolsets: &[String]) -> Result<Option<String>, Refused> {
        if matches!(self.api, Api::Chat | Api::Gemini) {
            return Ok(None);
        }
        let Some(entries) = blocks(keys::history_key(self.api), raw)? else { return Ok(None) };
        let left = filter(&entries, |entry| match self.api {
            Api::Responses => self.item(entry),
            _ => self.message(entry, toolsets),
        })?;
        Ok(left.map(|left| list(&left)))
    }

    /// An item of the Responses API.
    fn item(self, raw: &str) -> Result<Kept, Refused> {
        let Some(item) = Fields::read(raw) else { return Ok(Kept::AsIs) };
        let kind = item.string("type");
        let is_short = kind.is_none() && item.get("role").is_none();
        if is_short || kind.as_deref() == Some("item_reference") {
            return Err(Refused::Stored("item_reference"));
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
        let Some(message) = Fields::read(raw) else { return Ok(Kept::AsIs) };
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
        let Some(block) = Fields::read(raw) else { return Ok(Kept::AsIs) };
        match block.string("type").as_deref() {
            Some("tool_reference") => self.reference(&block),
            Some("tool_addition" | "tool_removal") => self.change(&block, toolsets),
            Some("tool_search_tool_result") => {
                let content = block.get("content").and_then(Fields::read);
                let Some(found) = content.as_ref().and_then(|it| it.get("tool_references")) else {
                    return Ok(Kept::AsIs);
                };
                let references = items("tool_references", found)?;
                let left = filter(&references, |raw| self.block(raw, toolsets))?;
                Ok(match (left, content) {
                    (Some(left), Some(content)) => {
                        let content = content.with(&[("tool_references", Some(list(&left)))]);
                        Kept::As(block.with(&[("content", Some(content))]))
                    }
                    _ => Kept::AsIs,
                })
            }
            // Results of calls, whatever the tool: blocks inside of blocks.
            Some(kind) if kind.ends_with("tool_result") => {
                // What a server tool returns may be an object, which has no references in it.
                let content = block.get("content").filter(|raw| !raw.starts_with('{'));
                let Some(inner) = blocks("content", content.unwrap_or("null"))? else {
                    return Ok(Kept::AsIs);
                };
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
            _ => Ok(Kept::AsIs),
        }
    }

    /// A block inside a result.
    fn inner(self, raw: &str) -> Result<Kept, Refused> {
        match Fields::read(raw) {
            Some(block) if block.string("type").as_deref() == Some("tool_reference") => {
                self.reference(&block)
            }
            _ => Ok(Kept::AsIs),
        }
    }

    /// A reference to a tool: `tool_name` in results, `name` in changes of the tools.
    fn reference(self, block: &Fields<'_>) -> Result<Kept, Refused> {
        let of = "tool_reference";
        let names: Vec<String> =
            ["tool_name", "name"].iter().filter_map(|key| block.string(key)).collect();
        if names.is_empty() {
            return Err(Refused::Unnamed(of));
        }
        let group = block.string("server_name");
        let is_visible = names.iter().all(|name| match &group {
            Some(group) => self.sees_member(group, name),
            None => self.sees(&[name]),
        });
        Ok(if is_visible { Kept::AsIs } else { Kept::Nothing })
    }

    /// A block that adds a tool or removes one.
    fn change(self, block: &Fields<'_>, toolsets: &[String]) -> Result<Kept, Refused> {
        let of = "tool_addition";
        let tool = block.get("tool").and_then(Fields::read).ok_or(Refused::Unnamed(of))?;
        match tool.string("type").as_deref() {
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
