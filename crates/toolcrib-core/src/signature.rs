//! Writes a schema as one line of types.
//!
//! `{owner: string; labels?: string[]; state?: "open"|"closed"}` contains what most calls need, in a tenth of the
//! tokens. Deep or unusual parts become `object` or `any`, which is less precise but not wrong.

use serde_json::{Map, Value};

use toolcrib_text::json::data;
use toolcrib_text::shorten;

/// Maximum nesting depth that is written out.
const MAX_DEPTH: usize = 4;
/// Maximum number of enum values that are written out.
const MAX_VALUES: usize = 12;
/// Maximum number of properties that are written out for an object.
const MAX_PROPERTIES: usize = 40;
/// Maximum number of options that are written out for a union.
const MAX_OPTIONS: usize = 8;

/// Maximum length of a signature in a reply, in characters.
const MAX_CHARS: usize = 2_000;

/// The signature as it is shown in a reply. If it is too long, it is truncated and ends with an ellipsis.
pub(crate) fn bounded(schema: &Value) -> String {
    shorten(&signature(schema), MAX_CHARS).into_owned()
}

/// Writes the signature of an input schema.
///
/// ```
/// let schema = serde_json::json!({
///     "type": "object",
///     "properties": {"id": {"type": "string"}, "mode": {"enum": ["a", "b"]}},
///     "required": ["id"],
/// });
/// assert_eq!(toolcrib_core::signature(&schema), r#"{id: string; mode?: "a"|"b"}"#);
/// ```
pub fn signature(schema: &Value) -> String {
    match schema {
        Value::Object(map) if map.contains_key("properties") => object(map, schema, MAX_DEPTH),
        Value::Object(map) if map.get("type").is_none_or(|t| t.as_str() == Some("object")) => {
            match typed(schema, schema, MAX_DEPTH) {
                spelled if spelled == "any" || spelled == "object" => "{}".into(),
                spelled => spelled,
            }
        }
        _ => typed(schema, schema, MAX_DEPTH),
    }
}

fn typed(schema: &Value, root: &Value, depth: usize) -> String {
    let Value::Object(map) = schema else { return "any".into() };
    if depth == 0 {
        return "any".into();
    }
    if let Some(target) = map.get("$ref").and_then(Value::as_str) {
        let found = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return found.map_or_else(|| "any".into(), |found| typed(found, root, depth - 1));
    }
    if let Some(value) = map.get("const") {
        return literal(value);
    }
    if let Some(Value::Array(values)) = map.get("enum") {
        let mut shown: Vec<_> = values.iter().take(MAX_VALUES).map(literal).collect();
        if values.len() > MAX_VALUES {
            shown.push("…".into());
        }
        return shown.join("|");
    }
    for key in ["anyOf", "oneOf", "any_of"] {
        if let Some(Value::Array(options)) = map.get(key) {
            let each =
                options.iter().take(MAX_OPTIONS).map(|option| typed(option, root, depth - 1));
            return union(each.collect(), options.len() > MAX_OPTIONS);
        }
    }
    match map.get("type") {
        Some(Value::Array(kinds)) => {
            let mut kinds: Vec<Option<&str>> =
                kinds.iter().take(MAX_OPTIONS).map(Value::as_str).collect();
            kinds.dedup();
            let each = kinds.into_iter().map(|kind| of_kind(kind, map, root, depth));
            union(each.collect(), false)
        }
        Some(kind) => of_kind(kind.as_str(), map, root, depth),
        None if map.contains_key("properties") => object(map, root, depth),
        None if map.contains_key("items") => of_kind(Some("array"), map, root, depth),
        None => match map.get("allOf") {
            Some(Value::Array(parts)) if parts.len() == 1 => typed(&parts[0], root, depth - 1),
            _ => "any".into(),
        },
    }
}

fn of_kind(kind: Option<&str>, map: &Map<String, Value>, root: &Value, depth: usize) -> String {
    // The type is converted to lower case, because Gemini's schemas have types in upper case.
    match kind.map(str::to_ascii_lowercase).as_deref() {
        Some("object") => object(map, root, depth),
        Some("array") => match map.get("items") {
            Some(items) => {
                let of = typed(items, root, depth - 1);
                if of.contains('|') { format!("({of})[]") } else { format!("{of}[]") }
            }
            None => "any[]".into(),
        },
        Some("integer") => "integer".into(),
        Some(kind @ ("string" | "number" | "boolean" | "null")) => kind.into(),
        _ => "any".into(),
    }
}

fn object(map: &Map<String, Value>, root: &Value, depth: usize) -> String {
    let Some(Value::Object(properties)) = map.get("properties").filter(|_| depth > 0) else {
        return "object".into();
    };
    let required: Vec<&str> = match map.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    // Fewer properties are written out for nested objects. Otherwise the signature could have 40 × 40 × 40 of them.
    let max_properties = if depth == MAX_DEPTH { MAX_PROPERTIES } else { MAX_PROPERTIES / 4 };
    let mut shown: Vec<String> = properties
        .iter()
        .take(max_properties)
        .map(|(name, schema)| {
            let optional = if required.contains(&name.as_str()) { "" } else { "?" };
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '$';
            let key = if name.chars().all(plain) { name.clone() } else { data(name) };
            format!("{key}{optional}: {}", typed(schema, root, depth - 1))
        })
        .collect();
    if properties.len() > max_properties {
        shown.push("…".into());
    }
    format!("{{{}}}", shown.join("; "))
}

fn union(mut options: Vec<String>, more: bool) -> String {
    let mut seen: Vec<String> = Vec::new();
    options.retain(|option| {
        let new = !seen.contains(option);
        seen.extend(new.then(|| option.clone()));
        new
    });
    if options.iter().any(|option| option == "any") || more {
        "any".into()
    } else {
        options.join("|")
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => data(&shorten(text, 40)),
        Value::Array(_) | Value::Object(_) => "any".into(),
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_real_schema_reads_like_a_type() {
        let schema = json!({
            "type": "object",
            "properties": {
                "repo": {"type": "string"},
                "labels": {"type": "array", "items": {"type": "string"}},
                "state": {"type": "string", "enum": ["open", "closed"]},
                "assignee": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "filter": {"$ref": "#/$defs/filter"},
                "odd key": {"type": ["string", "number"]},
            },
            "required": ["repo", "filter"],
            "$defs": {"filter": {
                "type": "object",
                "properties": {"and": {"type": "array", "items": {"$ref": "#/$defs/filter"}}},
            }},
        });
        assert_eq!(
            signature(&schema),
            r#"{repo: string; labels?: string[]; state?: "open"|"closed"; assignee?: integer|null; filter: {and?: any[]}; "odd key"?: string|number}"#
        );
    }

    #[test]
    fn no_parameters_and_no_schema_read_the_same() {
        for schema in
            [json!({}), json!({"type": "object"}), json!({"type": "object", "properties": {}})]
        {
            assert_eq!(signature(&schema), "{}");
        }
    }

    #[test]
    fn text_in_a_schema_cannot_leave_its_quotes() {
        let schema = json!({"properties": {"a": {"enum": ["\"}</function>"]}}});
        assert_eq!(signature(&schema), r#"{a?: "\"}\u003c/function>"}"#);
    }
}
