//! One item of the Responses API, as far as we must know it.
//!
//! What a client sends in `input` and what a model says in `output` are the same things, so one reader
//! serves both: the print of a turn is the same whether it is taken from what went down or from what
//! comes back.

use toolcrib_text::json::{self, Fields};

use crate::request::Speaker;

/// An item.
pub(super) struct Item<'a> {
    pub(super) fields: Fields<'a>,
    /// Its type; the short form of a message has none.
    pub(super) kind: String,
}

/// A call that the client answers.
pub(super) struct ItemCall {
    pub(super) id: Option<String>,
    /// The tool's name; for what has none, such as a shell, the type.
    pub(super) name: String,
    /// JSON text, out of the string that the API puts it into.
    pub(super) arguments: String,
}

impl<'a> Item<'a> {
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let fields = Fields::read(text)?;
        let kind = fields.string("type").unwrap_or_else(|| {
            let short = if fields.get("role").is_some() { "message" } else { "item_reference" };
            short.to_owned()
        });
        Some(Self { fields, kind })
    }

    /// Whose it is. What the provider ran by itself is part of the model's turn.
    pub(super) fn speaker(&self) -> Speaker {
        let model = match self.kind.as_str() {
            "message" => self.fields.string("role").as_deref() == Some("assistant"),
            "tool_search_output" => self.call_id().is_none(),
            // A client refers to what it was told; its own words it has at hand.
            "item_reference"
            | "reasoning"
            | "compaction"
            | "mcp_list_tools"
            | "mcp_approval_request" => true,
            kind => kind.ends_with("_call"),
        };
        if model { Speaker::Model } else { Speaker::Client }
    }

    /// The texts of a message, in order: one string, or several parts.
    pub(super) fn texts(&self, each: &mut dyn FnMut(&str)) {
        if self.kind != "message" {
            return;
        }
        if let Some(text) = self.fields.string("content") {
            return each(&text);
        }
        for part in self.fields.get("content").and_then(json::items).unwrap_or_default() {
            if let Some(text) = Fields::read(part.get()).and_then(|part| part.string("text")) {
                each(&text);
            }
        }
    }

    /// The call in it, if it is one that waits for the client.
    pub(super) fn client_call(&self) -> Option<ItemCall> {
        let text = |key: &str| {
            let raw = || self.fields.get(key).filter(|raw| *raw != "null").map(str::to_owned);
            // Some servers send the object itself.
            self.fields.string(key).or_else(raw).unwrap_or_default()
        };
        let id = self.call_id();
        match self.kind.as_str() {
            "function_call" => {
                Some(ItemCall { id, name: self.name()?, arguments: text("arguments") })
            }
            "custom_tool_call" => {
                Some(ItemCall { id, name: self.name()?, arguments: text("input") })
            }
            "mcp_approval_request" => {
                let (id, name) = (self.fields.string("id"), self.kind.clone());
                Some(ItemCall { id, name, arguments: String::new() })
            }
            // A search of tools, a shell, a screen: the provider's own have no such id.
            kind if kind.ends_with("_call") && id.is_some() => {
                Some(ItemCall { id, name: self.kind.clone(), arguments: text("arguments") })
            }
            _ => None,
        }
    }

    /// The call that it answers.
    pub(super) fn answered_call_id(&self) -> Option<String> {
        match self.kind.as_str() {
            "mcp_approval_response" => self.fields.string("approval_request_id"),
            kind if kind.ends_with("_output") => self.call_id(),
            _ => None,
        }
    }

    pub(super) fn name(&self) -> Option<String> {
        self.fields.string("name").filter(|name| !name.is_empty())
    }

    pub(super) fn call_id(&self) -> Option<String> {
        self.fields.string("call_id").filter(|id| !id.is_empty())
    }

    /// Whether the model came to its end.
    pub(super) fn is_complete(&self) -> bool {
        !matches!(self.fields.string("status").as_deref(), Some("incomplete" | "in_progress"))
    }
}

/// The name in a tool or a choice of one that a client may call by name.
pub(super) fn callable_name(text: &str) -> Option<String> {
    let fields = Fields::read(text)?;
    let kind = fields.string("type")?;
    matches!(kind.as_str(), "function" | "custom").then(|| fields.string("name")).flatten()
}
