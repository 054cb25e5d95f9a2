//! Our own tools as MCP lists them, with their output schemas.
//!
//! A reply in JSON is also sent as `structuredContent`, so the tool that returns it declares an output schema for the
//! reply's format. Replies in other formats are text, and their tools declare no output schema.

use serde_json::{Value, json};
use toolcrib_core::DefinitionFormat;
use toolcrib_core::disclosure::{DESCRIBE, OwnTool, READ, SEARCH, SEARCH_REGEX, WRITE};
use toolcrib_core::reply::ReplyFormat;

/// Returns the definition of one of our tools for `tools/list`.
pub(super) fn own_tool_definition(own: &OwnTool, format: ReplyFormat) -> Option<Value> {
    let mut tool: Value = serde_json::from_str(&own.definition(DefinitionFormat::Mcp)).ok()?;
    let fields = tool.as_object_mut()?;
    if [SEARCH, SEARCH_REGEX, DESCRIBE].contains(&own.name) {
        if let Some(schema) = output_schema(format, own.name == DESCRIBE) {
            fields.insert("outputSchema".into(), schema);
        }
        fields.insert("annotations".into(), json!({"readOnlyHint": true, "openWorldHint": false}));
    }
    // Clients use these annotations to allow one of the two tools and to ask their users about the other. The arguments
    // may leave the machine, so both keep the default of `openWorldHint`, which is true.
    if own.name == READ {
        fields.insert("annotations".into(), json!({"readOnlyHint": true}));
    } else if own.name == WRITE {
        let annotations = json!({"readOnlyHint": false, "destructiveHint": true});
        fields.insert("annotations".into(), annotations);
    }
    // Without this field, Claude Code's own tool search would defer our tools. `_meta` is the last field, as in the
    // SDK's output.
    fields.insert("_meta".into(), json!({"anthropic/alwaysLoad": true}));
    Some(tool)
}

/// Returns the output schema of a search or a description, or `None` if replies in this format are not JSON objects.
/// The schema allows additional fields, so that fields can be added to replies later.
fn output_schema(format: ReplyFormat, describes: bool) -> Option<Value> {
    let (properties, required) = match format {
        ReplyFormat::Json => {
            let hits = tools(&["server", "input_schema", "annotations", "score", "confidence"]);
            let fit = json!({"enum": ["strong", "weak", "none"]});
            let servers = json!({"type": "object", "additionalProperties": {"type": "object"}});
            let properties = json!({
                "query": text(), "fit": fit, "hits": hits, "servers": servers, "loaded": names(),
                "missing": objects()
            });
            (properties, vec!["query", "hits", "loaded", "missing"])
        }
        ReplyFormat::Tools => {
            let tools = tools(&["parameters"]);
            let properties =
                json!({"query": text(), "tools": tools, "loaded": names(), "message": text()});
            (properties, vec!["query", "tools", "loaded", "message"])
        }
        ReplyFormat::Matches if describes => {
            let properties =
                json!({"name": text(), "description": text(), "parameters": {"type": "object"}});
            (properties, vec!["name", "description"])
        }
        ReplyFormat::Matches => {
            let matches = tools(&["source", "source_name", "parameters"]);
            let total = json!({"type": "integer"});
            let properties = json!({"query": text(), "total_available": total, "matches": matches});
            (properties, vec!["query", "total_available", "matches"])
        }
        // A reply in any other format is not a JSON object.
        _ => return None,
    };
    Some(json!({"type": "object", "properties": properties, "required": required}))
}

fn text() -> Value {
    json!({"type": "string"})
}

fn names() -> Value {
    json!({"type": "array", "items": text()})
}

fn objects() -> Value {
    json!({"type": "array", "items": {"type": "object"}})
}

/// Builds the schema of a list of tools that may have these fields in addition to the common ones.
fn tools(fields: &[&str]) -> Value {
    let mut properties = json!({
        "name": text(), "description": text(), "signature": text(), "unavailable": text()
    });
    for field in fields {
        properties[*field] = match *field {
            "server" => json!({"type": ["string", "null"]}),
            "score" | "confidence" => json!({"type": "number"}),
            "input_schema" | "parameters" | "annotations" => json!({"type": "object"}),
            _ => text(),
        };
    }
    let tool =
        json!({"type": "object", "properties": properties, "required": ["name", "description"]});
    json!({"type": "array", "items": tool})
}
