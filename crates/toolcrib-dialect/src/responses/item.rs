//! Reads the fields that the proxy needs from a Responses item.
//!
//! Items in `input` and in `output` have the same form, so this reader is used for both. Therefore a turn has the same
//! fingerprint whether it is read from the response or from the client's next request.

use toolcrib_text::json::{self, Fields};

use crate::request::Speaker;

pub(super) struct Item<'a> {
    pub(super) fields: Fields<'a>,
    /// The item's type. If the item omits it, `message` for an item with a role and `item_reference` for any other.
    pub(super) kind: String,
}

/// A call that the client must answer.
pub(super) struct ItemCall {
    pub(super) id: Option<String>,
    /// The tool's name. A call without a name, such as a shell call, has the item's type as its name.
    pub(super) name: String,
    /// The arguments as JSON text, without the string encoding of the API.
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

    /// Returns who sent the item. Calls and results of tools that the provider ran itself belong to the model's turn.
    pub(super) fn speaker(&self) -> Speaker {
        let model = match self.kind.as_str() {
            "message" => self.fields.string("role").as_deref() == Some("assistant"),
            "tool_search_output" => self.call_id().is_none(),
            // An item reference belongs to the model, because clients refer only to items that they received.
            "item_reference"
            | "reasoning"
            | "compaction"
            | "mcp_list_tools"
            | "mcp_approval_request" => true,
            kind => kind.ends_with("_call"),
        };
        if model { Speaker::Model } else { Speaker::Client }
    }

    /// Calls `each` for every text of a message, whose content is one string or a list of parts.
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

    /// Returns the item's call, if the client must answer it.
    pub(super) fn client_call(&self) -> Option<ItemCall> {
        let text = |key: &str| {
            let raw = || self.fields.get(key).filter(|raw| *raw != "null").map(str::to_owned);
            // Some servers send the arguments as an object instead of a string.
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
            // These are calls of tool search, shell or computer use. A call that the provider runs itself has no
            // `call_id`.
            kind if kind.ends_with("_call") && id.is_some() => {
                Some(ItemCall { id, name: self.kind.clone(), arguments: text("arguments") })
            }
            _ => None,
        }
    }

    /// Returns the id of the call that this item answers.
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

    /// Whether the model finished the item.
    pub(super) fn is_complete(&self) -> bool {
        !matches!(self.fields.string("status").as_deref(), Some("incomplete" | "in_progress"))
    }
}

/// Returns the name of a function or custom tool, from its definition or from a tool choice.
pub(super) fn callable_name(text: &str) -> Option<String> {
    let fields = Fields::read(text)?;
    let kind = fields.string("type")?;
    matches!(kind.as_str(), "function" | "custom").then(|| fields.string("name")).flatten()
}
