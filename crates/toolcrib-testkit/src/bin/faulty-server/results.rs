//! Builds the results of tool calls.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Returns a result that contains the value both as text and as structured content.
pub(crate) fn structured(value: &Value) -> String {
    json!({"content": [{"type": "text", "text": value.to_string()}], "structuredContent": value})
        .to_string()
}

pub(crate) fn text(text: &str) -> String {
    json!({"content": [{"type": "text", "text": text}]}).to_string()
}

pub(crate) fn environment() -> Value {
    let variables: BTreeMap<String, String> = std::env::vars_os()
        .map(|(name, value)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        })
        .collect();
    json!(variables)
}

pub(crate) fn directory() -> Value {
    match std::env::current_dir() {
        Ok(path) => json!({"cwd": path.to_string_lossy()}),
        Err(error) => json!({"error": error.to_string()}),
    }
}

/// Returns the method and the parameters of the request that a tool sends to the client before the tool answers. `None`
/// if the tool sends no request.
pub(crate) fn question(tool: &str) -> Option<(&'static str, Value)> {
    Some(match tool {
        "elicit" => (
            "elicitation/create",
            json!({
                "message": "Which word?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {"word": {"type": "string"}},
                    "required": ["word"],
                },
            }),
        ),
        "sample" => (
            "sampling/createMessage",
            json!({
                "messages": [{"role": "user", "content": {"type": "text", "text": "Which word?"}}],
                "maxTokens": 10,
            }),
        ),
        "roots" => ("roots/list", json!({})),
        _ => return None,
    })
}
