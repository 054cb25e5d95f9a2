//! Checks the arguments of a call against the tool's schema, before the tool runs.
//!
//! The `jsonschema` crate does the validation. The schema is untrusted, however: it may refer to itself without end, or
//! a hundred bytes of it may expand to a billion steps. So a walk over the schema and the arguments, with a limited
//! number of steps, comes first. If the walk exceeds the limit, the call is not validated here; the server will
//! validate it, as it would without Toolcrib.

mod budget;

use jsonschema::PatternOptions;
use serde::Serialize;
use serde_json::Value;

use crate::ingest::NAMED;
use crate::tool::DefinitionFormat;

/// Maximum number of reported faults.
const FAULTS: usize = 5;
/// Maximum compiled size of one `pattern`, in bytes.
const PATTERN_BYTES: usize = 256 << 10;

/// One problem with the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArgumentFault {
    /// The location of the problem as a JSON pointer; empty if the problem concerns the arguments as a whole.
    #[serde(rename = "at")]
    pub path: String,
    /// A description of the problem.
    pub problem: String,
}

/// Validates the arguments of calls to one tool. It has no compiled schema if the tool's schema cannot be used for
/// validation.
#[derive(Debug)]
pub(crate) struct Validator {
    compiled: Option<(Value, jsonschema::Validator)>,
}

impl Validator {
    /// Compiles a schema. A schema that cannot be used disables validation; it never causes a call to be refused.
    pub(crate) fn new(mut schema: Value, shape: DefinitionFormat) -> Self {
        if shape == DefinitionFormat::Gemini {
            standardise(&mut schema);
        }
        let compiled = budget::allows(&schema)
            .then(|| {
                jsonschema::options()
                    .should_validate_formats(false)
                    .with_pattern_options(
                        PatternOptions::regex()
                            .size_limit(PATTERN_BYTES)
                            .dfa_size_limit(PATTERN_BYTES),
                    )
                    .build(&schema)
                    .ok()
            })
            .flatten();
        Self { compiled: compiled.map(|validator| (schema, validator)) }
    }

    /// Returns the problems with the arguments. The list is empty if the arguments are valid, if the schema cannot be
    /// used, or if the validation would take too many steps.
    pub(crate) fn faults(&self, arguments: &Value) -> Vec<ArgumentFault> {
        let Some((schema, validator)) = &self.compiled else { return Vec::new() };
        if !budget::allows_for(schema, arguments) {
            return Vec::new();
        }
        validator
            .iter_errors(arguments)
            .take(FAULTS)
            .map(|error| ArgumentFault {
                path: error.instance_path().to_string(),
                problem: toolcrib_text::shorten(
                    &toolcrib_text::clean::one_line(&error.to_string()),
                    300,
                )
                .into_owned(),
            })
            .collect()
    }
}

/// Keywords whose content is data and not a schema.
const VALUES: [&str; 5] = ["const", "enum", "default", "example", "examples"];

/// Snake-case spellings that Gemini's SDKs use for schema keywords, each with the standard name.
const SNAKE_CASE: [(&str, &str); 8] = [
    ("any_of", "anyOf"),
    ("additional_properties", "additionalProperties"),
    ("min_length", "minLength"),
    ("max_length", "maxLength"),
    ("min_items", "minItems"),
    ("max_items", "maxItems"),
    ("min_properties", "minProperties"),
    ("max_properties", "maxProperties"),
];

/// Rewrites Gemini's schema subset to standard JSON Schema. The subset writes `STRING` for `string`, uses `nullable`
/// instead of the type `null`, and also accepts keywords in snake case.
fn standardise(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            for (snake, standard) in SNAKE_CASE {
                if let Some(value) = map.remove(snake) {
                    map.insert(standard.to_owned(), value);
                }
            }
            let nullable = map.get("nullable") == Some(&Value::Bool(true));
            if let Some(Value::String(kind)) = map.get_mut("type") {
                kind.make_ascii_lowercase();
                if nullable {
                    let kinds = vec![Value::from(kind.as_str()), Value::from("null")];
                    map.insert("type".to_owned(), Value::Array(kinds));
                }
            }
            if let (true, Some(Value::Array(values))) = (nullable, map.get_mut("enum")) {
                values.push(Value::Null);
            }
            if let (true, Some(Value::Array(kinds))) = (nullable, map.get_mut("anyOf")) {
                kinds.push(serde_json::json!({"type": "null"}));
            }
            for (key, value) in map {
                match value {
                    Value::Object(members) if NAMED.contains(&key.as_str()) => {
                        members.values_mut().for_each(standardise);
                    }
                    _ if VALUES.contains(&key.as_str()) => {}
                    _ => standardise(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(standardise),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    fn faults(schema: Value, arguments: &Value) -> Vec<(String, String)> {
        let faults = Validator::new(schema, DefinitionFormat::Mcp).faults(arguments);
        faults.into_iter().map(|fault| (fault.path, fault.problem)).collect()
    }

    #[test]
    fn a_fault_has_a_location_and_a_problem() {
        let schema = json!({
            "type": "object",
            "properties": {"to": {"type": "array", "items": {"type": "string"}}},
            "required": ["to"],
        });
        assert_eq!(
            faults(schema.clone(), &json!({"to": ["a", 1]})),
            [("/to/1".to_owned(), r#"1 is not of type "string""#.to_owned())]
        );
        assert_eq!(
            faults(schema, &json!({})),
            [(String::new(), r#""to" is a required property"#.to_owned())]
        );
    }

    #[test]
    fn a_schema_that_cannot_be_used_refuses_no_call() {
        for schema in [
            json!({"$ref": "https://example.com/schema.json"}),
            json!({"$ref": "#/nowhere"}),
            json!({"$ref": "#/%24defs/a", "$defs": {"a": {"type": "array"}}}),
            json!({"$dynamicRef": "#a", "$defs": {"a": {"$dynamicAnchor": "a", "type": "array"}}}),
            json!({"type": 7}),
            json!({"properties": {"a": {"pattern": "(.{0,50}){50}z"}}}),
        ] {
            assert_eq!(faults(schema.clone(), &json!({"a": "b"})), [], "{schema}");
        }
    }

    #[test]
    fn recursive_schemas_do_not_loop() {
        let in_place = json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]});
        assert_eq!(faults(in_place, &json!({})), []);
        let fan: Map<String, Value> = (0..40)
            .map(|i| {
                let next = json!({"$ref": format!("#/$defs/d{}", i + 1)});
                (format!("d{i}"), json!({"allOf": [next, next]}))
            })
            .collect();
        assert_eq!(faults(json!({"$ref": "#/$defs/d0", "$defs": fan}), &json!({})), []);
        let tree = json!({
            "properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}},
        });
        let deep = (0..60).fold(json!({}), |inner, _| json!({"a": inner}));
        assert_eq!(faults(tree, &deep), []);
    }

    #[test]
    fn schemas_that_the_budget_cannot_follow_are_not_validated() {
        let nested = (0..40)
            .fold(json!({}), |inner, _| json!({"unevaluatedProperties": false, "allOf": [inner]}));
        assert_eq!(faults(nested, &json!({})), []);
        let anchors: Map<String, Value> = (0..40)
            .map(|i| {
                let next = json!({"$ref": format!("#d{}", i + 1)});
                (format!("d{i}"), json!({"$anchor": format!("d{i}"), "allOf": [next, next]}))
            })
            .collect();
        let hidden = json!({"properties": {"default": {"$ref": "#d0", "$defs": anchors}}});
        assert_eq!(faults(hidden, &json!({"default": {}})), []);
    }

    #[test]
    fn a_recursive_schema_is_validated_to_the_depth_of_the_arguments() {
        let tree = json!({
            "type": "object",
            "properties": {"child": {"$ref": "#"}, "n": {"type": "integer"}},
        });
        let wrong = json!({"child": {"child": {"n": "x"}}});
        assert_eq!(faults(tree, &wrong)[0].0, "/child/child/n");
    }

    #[test]
    fn the_schema_subset_of_gemini_is_supported() {
        let schema = json!({"type": "OBJECT", "properties": {"a": {"type": "STRING"}}});
        let gemini =
            |arguments| Validator::new(schema.clone(), DefinitionFormat::Gemini).faults(&arguments);
        assert_eq!(gemini(json!({"a": "x"})), []);
        assert_eq!(gemini(json!({"a": 1})).len(), 1);
        let optional = json!({"type": "OBJECT", "properties": {
            "min_length": {"type": "STRING", "nullable": true, "min_length": 2, "enum": ["ab", "cd"]},
        }});
        let optional = Validator::new(optional, DefinitionFormat::Gemini);
        assert_eq!(optional.faults(&json!({"min_length": null})), []);
        assert_eq!(optional.faults(&json!({"min_length": "ab"})), []);
        assert_eq!(optional.faults(&json!({"min_length": "x"})).len(), 2);
        let either =
            json!({"properties": {"a": {"any_of": [{"type": "STRING"}, {"type": "NUMBER"}]}}});
        let either = Validator::new(either, DefinitionFormat::Gemini);
        assert_eq!(
            (either.faults(&json!({"a": 1})).len(), either.faults(&json!({"a": []})).len()),
            (0, 1)
        );
        let click = json!({"properties": {"e": {"const": {"type": "Click"}}}});
        let event = json!({"e": {"type": "Click"}});
        assert_eq!(Validator::new(click, DefinitionFormat::Gemini).faults(&event), []);
    }
}
