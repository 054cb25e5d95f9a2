//! The definition of a tool: name, description and input schema.

use std::sync::Arc;

use rmcp::model::Tool;
use serde_json::{Map, Value, json};

pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) input: fn() -> Value,
}

impl Definition {
    /// Creates the definition of a tool without arguments.
    pub(crate) const fn plain(name: &'static str, about: &'static str) -> Self {
        Self { name, about, input: nothing }
    }

    pub(crate) const fn taking(
        name: &'static str,
        about: &'static str,
        input: fn() -> Value,
    ) -> Self {
        Self { name, about, input }
    }

    pub(crate) fn tool(&self) -> Tool {
        let schema = match (self.input)() {
            Value::Object(schema) => schema,
            _ => Map::new(),
        };
        Tool::new(self.name, self.about, Arc::new(schema))
    }
}

fn nothing() -> Value {
    json!({"type": "object", "properties": {}})
}

/// Returns the input schema of a tool with one required text argument. `name` and `about` are the name and the
/// description of the argument.
pub(crate) fn one_text(name: &str, about: &str) -> Value {
    json!({
        "type": "object",
        "properties": {name: {"type": "string", "description": about}},
        "required": [name],
    })
}
