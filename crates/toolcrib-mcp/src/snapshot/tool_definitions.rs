//! Applies the config's changes to the definitions of a server's tools.
//!
//! The definition keeps the tool's own name, by which the server knows it; the new name is added later, like a prefix.
//! Definitions are edited as text, so that everything that the config does not change stays as the server sent it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use toolcrib_core::nearest_names;
use toolcrib_text::json::{Fields, items, quote};

use crate::config::ToolOverride;
use crate::hidden_text::loggable_name;
use crate::upstream::Definitions;

/// Returns a list of definitions as clients should see them, except for the tools' names.
pub(super) fn overridden_definitions<'t>(
    list: &'t str,
    overrides: &BTreeMap<String, ToolOverride>,
) -> Cow<'t, str> {
    let tools = if overrides.is_empty() { None } else { items(list) };
    let Some(tools) = tools else { return Cow::Borrowed(list) };
    let definitions: Vec<Cow<'_, str>> = tools
        .iter()
        .map(|tool| edited_definition(tool.get(), overrides).map_or(tool.get().into(), Cow::Owned))
        .collect();
    Cow::Owned(format!("[{}]", definitions.join(",")))
}

/// Returns the edited definition of one tool, or `None` if the config does not change it.
fn edited_definition(tool: &str, overrides: &BTreeMap<String, ToolOverride>) -> Option<String> {
    let fields = Fields::read(tool)?;
    let change = overrides.get(&fields.string("name")?)?;
    let mut edits = Vec::new();
    if let Some(description) = &change.description {
        edits.push(("description", Some(quote(description))));
    }
    if let Some(schema) = fields.get("inputSchema").and_then(|text| edited_schema(text, change)) {
        edits.push(("inputSchema", Some(schema)));
    }
    Some(fields.with(&edits))
}

/// Returns a schema without the hidden parameters, in which parameters with a default are optional. Only `properties`
/// and `required` are edited. Conditions such as `dependentRequired` and `anyOf` stay, because they cannot be rewritten
/// in general.
fn edited_schema(schema: &str, change: &ToolOverride) -> Option<String> {
    let fields = Fields::read(schema)?;
    let mut edits = Vec::new();
    if let Some(properties) = fields.get("properties").and_then(Fields::read) {
        let hidden = change.hide_parameters.iter().map(|name| (&**name, None));
        let shown = change.defaults.iter().filter(|(name, _)| !change.hides(name));
        let shown = shown.filter_map(|(name, default)| {
            let property = Fields::read(properties.get(name)?)?;
            // The schema may have a default of its own, which no longer applies.
            let value = default.shown().map(Value::to_string);
            Some((&**name, Some(property.with(&[("default", value)]))))
        });
        edits.push(("properties", Some(properties.with(&hidden.chain(shown).collect::<Vec<_>>()))));
    }
    let required = fields.get("required").and_then(|text| serde_json::from_str(text).ok());
    if let Some(mut required) = required.map(|names: Vec<Value>| names) {
        required.retain(|name| {
            let name = name.as_str().unwrap_or_default();
            !change.hides(name) && !change.defaults.iter().any(|(known, _)| known == name)
        });
        edits.push(("required", (!required.is_empty()).then(|| Value::from(required).to_string())));
    }
    Some(fields.with(&edits))
}

/// Returns notes about changes in the config that have no effect or cannot work, for the log and `doctor`.
pub(crate) fn override_notes(
    tools: &Definitions,
    overrides: &BTreeMap<String, ToolOverride>,
) -> Vec<String> {
    if overrides.is_empty() {
        return Vec::new();
    }
    let tools: BTreeMap<String, Value> = tools
        .values()
        .into_iter()
        .filter_map(|tool| Some((tool.get("name")?.as_str()?.to_owned(), tool)))
        .collect();
    let mut notes = Vec::new();
    for (name, change) in overrides {
        let Some(tool) = tools.get(name) else {
            let suggestion = suggestion(name, tools.keys());
            notes
                .push(format!("`tools` has `{name}`, but the server has no such tool{suggestion}"));
            continue;
        };
        let schema = &tool["inputSchema"];
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            continue;
        };
        let defaults = change.defaults.iter().map(|(parameter, _)| ("defaults", parameter));
        let hidden = change.hide_parameters.iter().map(|parameter| ("hide_parameters", parameter));
        for (key, parameter) in hidden.chain(defaults) {
            if !properties.contains_key(parameter) {
                let suggestion = suggestion(parameter, properties.keys());
                notes.push(format!(
                    "`tools.{name}.{key}` has `{parameter}`, which is not a parameter of the tool{suggestion}"
                ));
            }
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        for parameter in required.filter_map(Value::as_str) {
            let has_default = change.defaults.iter().any(|(known, _)| known == parameter);
            if change.hides(parameter) && !has_default {
                notes.push(format!(
                    "`tools.{name}` hides the required parameter `{}`, so its calls will fail: add a value in `defaults`",
                    loggable_name(parameter)
                ));
            }
        }
    }
    notes
}

/// Returns the end of a note about an unknown name: the known names that are similar.
fn suggestion<'n>(name: &str, known: impl Iterator<Item = &'n String>) -> String {
    let nearest = nearest_names(name, known.map(String::as_str));
    let nearest: Vec<String> =
        nearest.into_iter().map(|name| format!("`{}`", loggable_name(name))).collect();
    if nearest.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", nearest.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::ToolDefault;

    fn change() -> BTreeMap<String, ToolOverride> {
        let change = ToolOverride {
            description: Some("Reads \"one\" file.".into()),
            hide_parameters: vec!["token".into()],
            defaults: vec![
                ("token".into(), ToolDefault::new(json!("${TOKEN}"))),
                ("limit".into(), ToolDefault::new(json!(5))),
                ("account".into(), ToolDefault::new(json!("${ACCOUNT}"))),
            ],
            ..ToolOverride::default()
        };
        BTreeMap::from([("read".to_owned(), change)])
    }

    #[test]
    fn only_what_the_config_changes_is_edited() {
        let read = r#"{"z": 1.00, "name":"read","description":"x","inputSchema":{"type":"object","properties":{"path":{"type" : "string"},"token":{},"limit":{"type":"integer","default":1.0},"account":{"default":"me"}},"required":["path","token","limit"],"x":[1]},"_meta":{"a":1}}"#;
        let list = format!(r#"[{{"name":"write" }},{read}]"#);
        let expected = r#"{"z":1.00,"name":"read","description":"Reads \"one\" file.","inputSchema":{"type":"object","properties":{"path":{"type" : "string"},"limit":{"type":"integer","default":5},"account":{}},"required":["path"],"x":[1]},"_meta":{"a":1}}"#;
        let edited = overridden_definitions(&list, &change());
        assert_eq!(edited, format!(r#"[{{"name":"write" }},{expected}]"#));
        assert!(matches!(overridden_definitions(&list, &BTreeMap::new()), Cow::Borrowed(_)));
        for odd in ["[]", r#"[1,{"name":1},{"name":"read"},{"name":"read","inputSchema":true}]"#] {
            let edited = overridden_definitions(odd, &change());
            assert!(serde_json::from_str::<Vec<Value>>(&edited).is_ok(), "{edited}");
        }
    }

    #[test]
    fn notes_name_what_cannot_work_and_the_nearest_names() {
        let schema =
            json!({"properties": {"path": {}, "token": {}}, "required": ["path", "token"]});
        let tools = Definitions::of(&[json!({"name": "read_file", "inputSchema": schema})]);
        let change = ToolOverride {
            hide_parameters: vec!["token".into()],
            defaults: vec![("paths".into(), ToolDefault::new(json!(1)))],
            ..ToolOverride::default()
        };
        let overrides =
            ["read_file", "raed_file", "zzz"].map(|name| (name.to_owned(), change.clone()));
        let notes = override_notes(&tools, &BTreeMap::from(overrides));
        assert_eq!(
            notes,
            [
                "`tools` has `raed_file`, but the server has no such tool; did you mean `read_file`?",
                "`tools.read_file.defaults` has `paths`, which is not a parameter of the tool; did you mean `path`?",
                "`tools.read_file` hides the required parameter `token`, so its calls will fail: add a value in `defaults`",
                "`tools` has `zzz`, but the server has no such tool",
            ]
        );
    }
}
