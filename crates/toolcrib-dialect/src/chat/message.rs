//! One message of Chat Completions, as far as we must know it.

use toolcrib_text::json::{self, Fields};

/// A message.
pub(super) struct ChatMessage<'a> {
    fields: Fields<'a>,
    pub(super) role: String,
    /// The call that it answers.
    pub(super) tool_call_id: Option<String>,
}

/// A call in it.
pub(super) struct ChatCall<'a> {
    pub(super) fields: Fields<'a>,
    pub(super) id: Option<String>,
    pub(super) name: String,
    /// JSON text, out of the string that the API puts it into; `None` for a call that is no function's.
    pub(super) arguments: Option<String>,
}

impl<'a> ChatMessage<'a> {
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let fields = Fields::read(text)?;
        let role = fields.string("role")?;
        let tool_call_id = fields.string("tool_call_id");
        Some(Self { fields, role, tool_call_id })
    }

    /// Its texts, in order: one string, or several parts.
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

    /// Its calls, in order.
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
        // Some servers send the object itself.
        let arguments = function.map(|function| {
            let raw = function.get("arguments").unwrap_or_default();
            function.string("arguments").unwrap_or_else(|| raw.to_owned())
        });
        Some(Self { fields, id, name, arguments })
    }

    /// The same call, of another function.
    pub(super) fn with_function(&self, name: &str, arguments: &str) -> String {
        let function = self.fields.get("function").and_then(Fields::read);
        let edits =
            [("name", Some(json::quote(name))), ("arguments", Some(json::quote(arguments)))];
        let function = function.map(|function| function.with(&edits));
        self.fields.with(&[("function", function)])
    }
}

/// The name in a call, a tool or a choice of one.
pub(super) fn name(text: &str) -> Option<String> {
    let fields = Fields::read(text)?;
    let inner = ["function", "custom"].iter().find_map(|key| fields.get(key));
    inner.and_then(Fields::read)?.string("name")
}
