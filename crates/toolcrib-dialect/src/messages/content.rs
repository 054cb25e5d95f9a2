//! Reads the fields that the proxy needs from a message and its blocks.

use toolcrib_text::json::{self, Fields};

pub(super) struct Message<'a> {
    pub(super) fields: Fields<'a>,
    pub(super) role: String,
}

/// The content of a message.
pub(super) enum MessageContent<'a> {
    /// The content is a string.
    Text(String),
    /// The content is a list of blocks, each as JSON text.
    Blocks(Vec<&'a str>),
}

pub(super) struct ContentBlock<'a> {
    pub(super) fields: Fields<'a>,
    pub(super) kind: String,
}

impl<'a> Message<'a> {
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let fields = Fields::read(text)?;
        let role = fields.string("role")?;
        Some(Self { fields, role })
    }

    /// Returns the message's content, or `None` if it is neither a string nor a list of blocks.
    pub(super) fn content(&self) -> Option<MessageContent<'a>> {
        if let Some(text) = self.fields.string("content") {
            return Some(MessageContent::Text(text));
        }
        Some(MessageContent::Blocks(items(self.fields.get("content")?)?))
    }

    /// Returns the message's parsed blocks, or an empty list if the content is a string.
    pub(super) fn blocks(&self) -> Vec<ContentBlock<'a>> {
        match self.content() {
            Some(MessageContent::Blocks(blocks)) => {
                blocks.into_iter().filter_map(ContentBlock::read).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the message with its blocks replaced.
    pub(super) fn with(&self, blocks: &[String]) -> String {
        self.fields.with(&[("content", Some(json_list(blocks)))])
    }
}

impl<'a> ContentBlock<'a> {
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let fields = Fields::read(text)?;
        let kind = fields.string("type")?;
        Some(Self { fields, kind })
    }

    pub(super) fn is_thinking(&self) -> bool {
        matches!(self.kind.as_str(), "thinking" | "redacted_thinking")
    }

    /// Whether the block is an empty text block. The API returns such blocks, but rejects them in requests.
    pub(super) fn is_blank(&self) -> bool {
        self.kind == "text" && self.fields.string("text").is_none_or(|text| text.trim().is_empty())
    }

    /// Whether the block is a call of the provider's own tool search, or the result of such a call.
    pub(super) fn is_search(&self) -> bool {
        match self.kind.as_str() {
            "server_tool_use" => {
                self.fields.string("name").is_some_and(|name| is_search_name(&name))
            }
            "tool_search_tool_result" => true,
            _ => false,
        }
    }

    /// Returns the id, name and input of a `tool_use` block, or `None` for any other block.
    pub(super) fn call(&self) -> Option<(Option<String>, String, &'a str)> {
        if self.kind != "tool_use" {
            return None;
        }
        let name = self.fields.string("name")?;
        Some((self.fields.string("id"), name, self.fields.get("input").unwrap_or("{}")))
    }

    /// Returns the names of the tools that the provider's search found.
    pub(super) fn found_tools(&self) -> Vec<String> {
        let content = self.fields.get("content").and_then(Fields::read);
        let list = content.as_ref().and_then(|content| content.get("tool_references"));
        let list = list.and_then(items).unwrap_or_default();
        list.into_iter().filter_map(|raw| Fields::read(raw)?.string("tool_name")).collect()
    }
}

/// Returns the name of the tool in a `tool_reference` block, or `None` for any other block.
pub(super) fn referenced_tool(text: &str) -> Option<String> {
    let block = ContentBlock::read(text).filter(|block| block.kind == "tool_reference")?;
    block.fields.string("tool_name")
}

/// Whether a tool name or type denotes a provider's tool search. Two gateways use names of their own.
pub(super) fn is_search_name(name: &str) -> bool {
    name.starts_with("tool_search_tool_")
        || matches!(name, "openrouter:tool_search" | "orq:tool_search")
}

/// Returns the JSON of each item of a list.
pub(super) fn items(text: &str) -> Option<Vec<&str>> {
    Some(json::items(text)?.into_iter().map(serde_json::value::RawValue::get).collect())
}

/// Returns the items as a JSON list.
pub(super) fn json_list(items: &[String]) -> String {
    format!("[{}]", items.join(","))
}

/// Returns a message with these blocks, as JSON.
pub(super) fn write_message(role: &str, blocks: &[String]) -> String {
    format!(r#"{{"role":"{role}","content":{}}}"#, json_list(blocks))
}

/// Returns a text block, as JSON.
pub(super) fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, json::quote(text))
}

/// Applies `change` to each item. `change` returns `None` to keep the item, `Some(None)` to remove it, or
/// `Some(Some(text))` to replace it. Returns `None` if no item changed.
pub(super) fn edit_items(
    items: &[&str],
    mut change: impl FnMut(&str) -> Option<Option<String>>,
) -> Option<Vec<String>> {
    let mut changed = false;
    let mut left = Vec::with_capacity(items.len());
    for item in items {
        match change(item) {
            Some(new) => {
                changed = true;
                left.extend(new);
            }
            None => left.push((*item).to_owned()),
        }
    }
    changed.then_some(left)
}
