//! Input schemas that must reach the client unchanged.

use serde_json::{Value, json};

/// Returns a schema with definitions, an anchor, composition and conditions. These are the keywords that a careless
/// rewrite would lose.
pub(crate) fn modern() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "where",
                "type": "object",
                "properties": {"town": {"type": "string"}, "code": {"type": "string"}},
                "required": ["town"],
            },
        },
        "properties": {
            "to": {"$ref": "#/$defs/address"},
            "from": {"$ref": "#where"},
            "weight": {"type": "number", "exclusiveMinimum": 0},
            "express": {"type": "boolean"},
            "deadline": {"type": "string", "format": "date"},
        },
        "allOf": [{"anyOf": [{"required": ["to"]}, {"required": ["from"]}]}],
        "if": {"properties": {"express": {"const": true}}, "required": ["express"]},
        "then": {"required": ["deadline"]},
        "else": {"required": ["weight"]},
        "additionalProperties": false,
    })
}

/// Returns a schema with one parameter that clients must also send in the header `Mcp-Param-Region`.
pub(crate) fn with_header() -> Value {
    json!({
        "type": "object",
        "properties": {
            "region": {"type": "string", "description": "Where to look.", "x-mcp-header": "Region"},
        },
        "required": ["region"],
    })
}
