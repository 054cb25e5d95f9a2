//! Reads the fields that the proxy needs from a Chat Completions message.

use toolcrib_text::json::{self, Fields};

pub(super) struct ChatMessage<'a> {
    fields: Fields<'a>,
    pub(super) role: String,
    /// The id of the call that a tool message answers.
    pub(super) tool_call_id: Option<String>,
}

pub(super) struct ChatCall<'a> {
    pub(super) fields: Fields<'a>,
    pub(super) id: Option<String>,
    pub(super) name: String,
    /// The arguments as JSON text, without the string encoding of the API. `None` for a call to a custom tool.
    pub(super) arguments: Option<String>,
}

impl<'a> ChatMessage<'a> {
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let fields = Fields::read(text)?;
        let role = fields.string("role")?;
        let tool_call_id = fields.string("tool_call_id");
        Some(Self { fields, role, tool_call_id })
    }

    /// Calls `each` for every text in the content, which is one string or a list of parts.
    pub(super) fn texts(&self, each: &mut dyn FnMut(&str)) {
        if let Some(text) = self.fields.string("content") {
            return each(&text);
        }
        let parts = self.fields.get("content").and_then(json::items).unwrap_or_default();
        for part in parts {
            if let Some(text) = Fields::read(part.get()).and_then(|part| part.string("text")) {
                each(&text);
            }
        }
    }

    /// Returns the calls, in order.
    pub(super) fn calls(&self) -> Vec<ChatCall<'a>> {
        let calls = self.fields.get("tool_calls").and_then(json::items).unwrap_or_default();
        calls.into_iter().filter_map(|call| ChatCall::read(call.get())).collect()
    }

    pub(super) fn fields(&self) -> &Fields<'a> {
        &self.fields
    }
}

impl<'a> ChatCall<'a> {
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let fields = Fields::read(text)?;
        let id = fields.string("id");
        let function = fields.get("function").and_then(Fields::read);
        let name = name(text)?;
        // Some servers send the arguments as an object instead of a string.
        let arguments = function.map(|function| {
            let raw = function.get("arguments").unwrap_or_default();
            function.string("arguments").unwrap_or_else(|| raw.to_owned())
        });
        Some(Self { fields, id, name, arguments })
    }

    /// Returns the call with its function name and arguments replaced.
    pub(super) fn with_function(&self, name: &str, arguments: &str) -> String {
        let function = self.fields.get("function").and_then(Fields::read);
        let edits =
            [("name", Some(json::quote(name))), ("arguments", Some(json::quote(arguments)))];
        let function = function.map(|function| function.with(&edits));
        self.fields.with(&[("function", function)])
    }
}

/// Returns the tool's name from a call, a tool definition or a tool choice.
pub(super) fn name(text: &str) -> Option<String> {
    let fields = Fields::read(text)?;
    let inner = ["function", "custom"].iter().find_map(|key| fields.get(key));
    inner.and_then(Fields::read)?.string("name")
}
