//! Finds the searchable parts of a schema, and checks its size.
//!
//! References (`$ref`) are not followed. The target of a local reference is in the same document, under `$defs`, and is
//! visited there once. Remote references are never loaded.

use serde_json::Value;

use super::finding::Problem;
use crate::limits::Limits;
use toolcrib_text::json;

/// A searchable part of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// The name of a property, at any depth.
    Name(&'a str),
    /// A description inside the schema. Titles are skipped, because generators derive them from the names.
    Text(&'a str),
    /// A value of an `enum` or a `const`.
    Value(&'a str),
}

/// Keywords whose value maps names to schemas.
pub(crate) const NAMED: [&str; 5] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Calls `visit` for every searchable part, in document order.
///
/// The recursion depth is limited: [`check`] rejects schemas that are nested too deeply, and `serde_json` does not
/// parse more than 128 levels.
pub(crate) fn walk<'a>(schema: &'a Value, visit: &mut impl FnMut(Part<'a>)) {
    let map = match schema {
        Value::Object(map) => map,
        Value::Array(items) => return items.iter().for_each(|item| walk(item, visit)),
        _ => return,
    };
    for (key, value) in map {
        match (key.as_str(), value) {
            ("description", Value::String(text)) => visit(Part::Text(text)),
            ("enum", Value::Array(values)) => {
                values.iter().filter_map(Value::as_str).for_each(|text| visit(Part::Value(text)));
            }
            ("const", Value::String(text)) => visit(Part::Value(text)),
            // These keywords contain values or names, not schemas, so the walk ends here. The strings of `enum` and
            // `const` were visited above. Defaults and examples are not searchable, because they say little about what
            // the tool does.
            ("default" | "example" | "examples" | "required" | "enum" | "const", _) => {}
            (named, Value::Object(members)) if NAMED.contains(&named) => {
                for (name, member) in members {
                    if named == "properties" {
                        visit(Part::Name(name));
                    }
                    walk(member, visit);
                }
            }
            (_, nested @ (Value::Object(_) | Value::Array(_))) => walk(nested, visit),
            _ => {}
        }
    }
}

/// Checks that the schema is within the limits. This must happen before any code recurses into the schema.
pub(super) fn check(text: &str, limits: &Limits) -> Result<(), Problem> {
    if text.len() > limits.schema_bytes {
        return Err(Problem::SchemaTooLarge { bytes: text.len(), limit: limits.schema_bytes });
    }
    let size = json::measure(text);
    if size.depth > limits.schema_depth {
        return Err(Problem::SchemaTooDeep { depth: size.depth, limit: limits.schema_depth });
    }
    if size.nodes > limits.schema_nodes {
        return Err(Problem::SchemaTooMany { nodes: size.nodes, limit: limits.schema_nodes });
    }
    let Ok(value @ Value::Object(_)) = serde_json::from_str::<Value>(text) else {
        return Err(Problem::SchemaNotAnObject);
    };
    if let Some(values) = longest_enum(&value).filter(|values| *values > limits.enum_values) {
        return Err(Problem::EnumTooLong { values, limit: limits.enum_values });
    }
    Ok(())
}

fn longest_enum(value: &Value) -> Option<usize> {
    match value {
        Value::Object(map) => {
            let own = map.get("enum").and_then(Value::as_array).map(Vec::len);
            own.max(map.values().filter_map(longest_enum).max())
        }
        Value::Array(items) => items.iter().filter_map(longest_enum).max(),
        _ => None,
    }
}
