//! Turns `KEY=VALUE` pairs of the command line into the arguments of a tool.
//!
//! The tool's schema decides how a value is read. `version=1.10` is the text `1.10` if the parameter is a string, and a
//! number if it is a number. A value that does not fit its parameter stays text, so that the check of the arguments
//! reports it. A parameter that takes a list may be repeated.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use toolcrib_text::nearest_spelling;

/// Maximum number of schemas that are read for one parameter, because references may form a cycle.
const MAX_SCHEMAS: usize = 64;

/// Why a `KEY=VALUE` pair cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PairError {
    pub(super) problem: String,
    pub(super) hint: String,
}

/// Adds the pairs to `arguments`. `schema` is the input schema of the tool.
pub(super) fn add_pairs(
    arguments: &mut Map<String, Value>,
    pairs: &[String],
    schema: &Value,
) -> Result<(), PairError> {
    let mut given: Vec<(&str, Vec<&str>)> = Vec::new();
    for pair in pairs {
        let Some((key, value)) = pair.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(PairError {
                problem: format!("`{pair}` is not of the form KEY=VALUE"),
                hint: "write `KEY=VALUE`, or give all arguments as JSON with `--args`".to_owned(),
            });
        };
        match given.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => given.push((key, vec![value])),
        }
    }
    for (key, values) in given {
        let value = argument(key, &values, schema)?;
        arguments.insert(key.to_owned(), value);
    }
    Ok(())
}

/// Reads the values of one key.
fn argument(key: &str, values: &[&str], schema: &Value) -> Result<Value, PairError> {
    let accepted = Accepted::of(parameter(schema, key)?, schema);
    let list = accepted.items.map(|items| Accepted::of(items, schema));
    match (values, list) {
        ([value], Some(items)) => match serde_json::from_str::<Value>(value) {
            Ok(list @ Value::Array(_)) => Ok(list),
            // A parameter may take either a list or a single value.
            _ if accepted.has_other_types() => Ok(accepted.read(value)),
            _ => Ok(Value::Array(vec![items.read(value)])),
        },
        ([value], None) => Ok(accepted.read(value)),
        (values, Some(items)) => Ok(values.iter().map(|value| items.read(value)).collect()),
        (values, None) => Err(PairError {
            problem: format!("`{key}` is given {} times", values.len()),
            hint: format!("`{key}` takes one value"),
        }),
    }
}

/// Returns the schema of a parameter. A schema may allow parameters that it does not describe, but a misspelled name is
/// more likely.
fn parameter<'a>(schema: &'a Value, key: &str) -> Result<&'a Value, PairError> {
    let schema = resolve(schema, schema);
    let properties = schema.get("properties").and_then(Value::as_object);
    if let Some(parameter) = properties.and_then(|properties| properties.get(key)) {
        return Ok(parameter);
    }
    let allows_others = match schema.get("additionalProperties") {
        None => false,
        Some(Value::Bool(allows)) => *allows,
        Some(_) => true,
    };
    if allows_others || schema.get("patternProperties").is_some() {
        return Ok(&Value::Null);
    }
    let names = || properties.into_iter().flat_map(Map::keys).map(String::as_str);
    let hint = match nearest_spelling(key, names()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => match &names().collect::<Vec<_>>()[..] {
            [] => "it takes no parameters".to_owned(),
            names => format!("its parameters are {}", names.join(", ")),
        },
    };
    Err(PairError { problem: format!("the tool has no parameter `{key}`"), hint })
}

/// Follows a reference to another part of `root`. References to other documents are not followed.
fn resolve<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let target = reference.and_then(|reference| root.pointer(reference.strip_prefix('#')?));
    target.unwrap_or(schema)
}

/// What a parameter accepts.
#[derive(Default)]
struct Accepted<'a> {
    /// The types. Empty if the schema does not restrict the type.
    types: BTreeSet<&'a str>,
    /// The schema of the items, if the parameter takes a list.
    items: Option<&'a Value>,
}

impl<'a> Accepted<'a> {
    fn of(schema: &'a Value, root: &'a Value) -> Self {
        let mut accepted = Self::default();
        let mut open = vec![schema];
        for _ in 0..MAX_SCHEMAS {
            let Some(schema) = open.pop() else { break };
            let schema = match resolve(schema, root) {
                target if std::ptr::eq(target, schema) => target,
                target => {
                    open.push(target);
                    continue;
                }
            };
            match schema.get("type") {
                Some(Value::String(one)) => _ = accepted.types.insert(one),
                Some(Value::Array(several)) => {
                    accepted.types.extend(several.iter().filter_map(Value::as_str));
                }
                _ => {
                    let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
                    accepted
                        .types
                        .extend(values.chain(schema.get("const")).map(|value| type_name(value)));
                }
            }
            if accepted.types.contains("array") && accepted.items.is_none() {
                accepted.items = Some(schema.get("items").unwrap_or(&Value::Null));
            }
            for key in ["anyOf", "oneOf", "allOf"] {
                open.extend(schema.get(key).and_then(Value::as_array).into_iter().flatten());
            }
        }
        accepted
    }

    /// Whether the parameter accepts something other than lists and `null`.
    fn has_other_types(&self) -> bool {
        self.types.iter().any(|name| !["array", "null"].contains(name))
    }

    /// Reads a value. If the parameter accepts text, only lists, objects and `null` are read as JSON.
    fn read(&self, text: &str) -> Value {
        let parsed = serde_json::from_str::<Value>(text).ok().filter(|value| {
            let is_scalar_of_text =
                self.types.contains("string") && !value.is_null() && !is_compound(value);
            self.allows(value) && !is_scalar_of_text
        });
        parsed.unwrap_or_else(|| Value::String(text.to_owned()))
    }

    fn allows(&self, value: &Value) -> bool {
        let name = type_name(value);
        self.types.is_empty()
            || self.types.contains(name)
            || name == "integer" && self.types.contains("number")
    }
}

fn is_compound(value: &Value) -> bool {
    value.is_array() || value.is_object()
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "properties": {
                "text": {"type": "string"},
                "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "count": {"type": "integer"},
                "ratio": {"type": "number"},
                "flag": {"type": "boolean"},
                "level": {"enum": [1, 2]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "numbers": {"$ref": "#/$defs/numbers"},
                "either": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]},
                "point": {"type": "object"},
                "any": {},
                "cycle": {"$ref": "#/$defs/cycle"},
            },
            "$defs": {
                "numbers": {"type": "array", "items": {"$ref": "#/$defs/number"}},
                "number": {"type": "integer"},
                "cycle": {"$ref": "#/$defs/cycle"},
            },
        })
    }

    fn read(pairs: &[&str]) -> Result<Value, PairError> {
        let mut arguments = Map::new();
        let pairs: Vec<String> = pairs.iter().map(ToString::to_string).collect();
        add_pairs(&mut arguments, &pairs, &schema()).map(|()| Value::Object(arguments))
    }

    #[test]
    fn a_value_is_read_as_the_type_of_its_parameter() {
        for (pair, expected) in [
            ("text=1.10", json!({"text": "1.10"})),
            ("text=a=b", json!({"text": "a=b"})),
            ("text=", json!({"text": ""})),
            ("text=null", json!({"text": "null"})),
            ("maybe=null", json!({"maybe": null})),
            ("maybe=7", json!({"maybe": "7"})),
            ("count=7", json!({"count": 7})),
            ("count=seven", json!({"count": "seven"})),
            ("count=7.5", json!({"count": "7.5"})),
            ("ratio=7", json!({"ratio": 7})),
            ("ratio=0.5", json!({"ratio": 0.5})),
            ("flag=true", json!({"flag": true})),
            ("flag=yes", json!({"flag": "yes"})),
            ("level=2", json!({"level": 2})),
            ("tags=7", json!({"tags": ["7"]})),
            (r#"tags=["a", "b"]"#, json!({"tags": ["a", "b"]})),
            ("numbers=7", json!({"numbers": [7]})),
            ("either=7", json!({"either": "7"})),
            ("either=[7]", json!({"either": [7]})),
            (r#"point={"x": 1}"#, json!({"point": {"x": 1}})),
            ("any=7", json!({"any": 7})),
            ("any=seven", json!({"any": "seven"})),
            ("cycle=7", json!({"cycle": 7})),
        ] {
            assert_eq!(read(&[pair]), Ok(expected), "{pair}");
        }
        assert_eq!(
            read(&["tags=a", "count=1", "tags=b"]),
            Ok(json!({"tags": ["a", "b"], "count": 1}))
        );
    }

    #[test]
    fn a_pair_that_cannot_be_used_is_an_error_with_a_hint() {
        for (pairs, problem, hint) in [
            (&["text"][..], "`text` is not of the form KEY=VALUE", "write `KEY=VALUE`"),
            (&["=x"], "`=x` is not of the form KEY=VALUE", "write `KEY=VALUE`"),
            (&["txet=x"], "the tool has no parameter `txet`", "did you mean `text`?"),
            (
                &["zzzzzz=x"],
                "the tool has no parameter `zzzzzz`",
                "its parameters are text, maybe, ",
            ),
            (&["text=a", "text=b"], "`text` is given 2 times", "`text` takes one value"),
        ] {
            let error = read(pairs).unwrap_err();
            assert_eq!(error.problem, problem);
            assert!(error.hint.starts_with(hint), "{error:?}");
        }
    }

    #[test]
    fn a_schema_may_allow_parameters_that_it_does_not_describe() {
        for (schema, is_allowed) in [
            (json!({"properties": {"a": {}}}), false),
            (json!({"properties": {"a": {}}, "additionalProperties": false}), false),
            (json!({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}), true),
            (json!({"properties": {}, "patternProperties": {"^x-": {}}}), true),
            (json!({"type": "object"}), false),
            (json!({"type": "object", "additionalProperties": true}), true),
        ] {
            let read = add_pairs(&mut Map::new(), &["b=1".to_owned()], &schema);
            assert_eq!(read.is_ok(), is_allowed, "{schema}");
        }
    }
}
