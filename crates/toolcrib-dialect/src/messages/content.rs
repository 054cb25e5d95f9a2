//! One message, and the blocks it is made of, as far as we must know them.

use toolcrib_text::json::{self, Fields};

/// A message.
pub(super) struct Message<'a> {
    pub(super) fields: Fields<'a>,
    pub(super) role: String,
}

/// What a message holds.
pub(super) enum Content<'a> {
    /// One text.
    Text(String),
    /// Blocks, as they came.
    Blocks(Vec<&'a str>),
}

/// A block.
pub(super) struct Block<'a> {
    pub(super) fields: Fields<'a>,
    pub(super) kind: String,
}

impl<'a> Message<'a> {
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let fields = Fields::read(text)?;
        let role = fields.string("role")?;
        Some(Self { fields, role })
    }

    /// Its content; `None` where it is neither text nor blocks.
    pub(super) fn content(&self) -> Option<Content<'a>> {
        if let Some(text) = self.fields.string("content") {
            return Some(Content::Text(text));
        }
        Some(Content::Blocks(items(self.fields.get("content")?)?))
    }

    /// Its blocks, read; a text alone has none.
    pub(super) fn blocks(&self) -> Vec<Block<'a>> {
        match self.content() {
            Some(Content::Blocks(blocks)) => blocks.into_iter().filter_map(Block::read).collect(),
            _ => Vec::new(),
        }
    }

    /// The same message with other blocks.
    pub(super) fn with(&self, blocks: &[String]) -> String {
        self.fields.with(&[("content", Some(json_list(blocks)))])
    }
}

impl<'a> Block<'a> {
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let fields = Fields::read(text)?;
        let kind = fields.string("type")?;
        Some(Self { fields, kind })
    }

    pub(super) fn is_thinking(&self) -> bool {
        matches!(self.kind.as_str(), "thinking" | "redacted_thinking")
    }

    /// Whether it is a text with nothing in it. The API writes such blocks, and refuses to read them.
    pub(super) fn is_blank(&self) -> bool {
        self.kind == "text" && self.fields.string("text").is_none_or(|text| text.trim().is_empty())
    }

    /// Whether it is of the provider's own search: a call of it, or what it found.
    pub(super) fn is_search(&self) -> bool {
        match self.kind.as_str() {
            "server_tool_use" => {
                self.fields.string("name").is_some_and(|name| is_search_name(&name))
            }
            "tool_search_tool_result" => true,
            _ => false,
        }
    }

    /// The call in it: id, name and input, for a `tool_use`.
    pub(super) fn call(&self) -> Option<(Option<String>, String, &'a str)> {
        if self.kind != "tool_use" {
            return None;
        }
        let name = self.fields.string("name")?;
        Some((self.fields.string("id"), name, self.fields.get("input").unwrap_or("{}")))
    }

    /// The tools that the provider's search found.
    pub(super) fn found_tools(&self) -> Vec<String> {
        let content = self.fields.get("content").and_then(Fields::read);
        let list = content.as_ref().and_then(|content| content.get("tool_references"));
        let list = list.and_then(items).unwrap_or_default();
        list.into_iter().filter_map(|raw| Fields::read(raw)?.string("tool_name")).collect()
    }
}

/// The name of a `tool_reference` block; `None` for any other.
pub(super) fn referenced_tool(text: &str) -> Option<String> {
    let block = Block::read(text).filter(|block| block.kind == "tool_reference")?;
    block.fields.string("tool_name")
}

/// Whether a name is that of a provider's search. Two gateways have their own.
pub(super) fn is_search_name(name: &str) -> bool {
    name.starts_with("tool_search_tool_")
        || matches!(name, "openrouter:tool_search" | "orq:tool_search")
}

/// The items of a list, as they came.
pub(super) fn items(text: &str) -> Option<Vec<&str>> {
    Some(json::items(text)?.into_iter().map(serde_json::value::RawValue::get).collect())
}

/// Items as a list.
pub(super) fn json_list(items: &[String]) -> String {
    format!("[{}]", items.join(","))
}

/// A message of ours.
pub(super) fn write_message(role: &str, blocks: &[String]) -> String {
    format!(r#"{{"role":"{role}","content":{}}}"#, json_list(blocks))
}

/// A text block of ours.
pub(super) fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, json::quote(text))
}
