//! Applies the config's changes to the definitions of a server's tools.
//!
//! The definition keeps the tool's own name, by which the server knows it; the new name is added later, like a prefix.
//! Definitions are edited as text, so that everything that the config does not change stays as the server sent it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use toolcrib_core::nearest_names;
use toolcrib_text::json::{Fields, items, quote};

use crate::config::{Server, ToolOverride};
use crate::hidden_text::loggable_name;
use crate::upstream::Definitions;

/// The fields of `annotations` that say what a tool does. Their defaults are the cautious values.
const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

/// Returns a list of definitions as clients should see them, except for the tools' names.
pub(super) fn overridden_definitions<'t>(list: &'t str, server: &Server) -> Cow<'t, str> {
    let is_unchanged = server.tools.is_empty() && server.trust_annotations;
    let tools = if is_unchanged { None } else { items(list) };
    let Some(tools) = tools else { return Cow::Borrowed(list) };
    let definitions: Vec<Cow<'_, str>> = tools
        .iter()
        .map(|tool| edited_definition(tool.get(), server).map_or(tool.get().into(), Cow::Owned))
        .collect();
    Cow::Owned(format!("[{}]", definitions.join(",")))
}

/// Returns the edited definition of one tool, or `None` if the config does not change it.
fn edited_definition(tool: &str, server: &Server) -> Option<String> {
    let fields = Fields::read(tool)?;
    let change = server.tools.get(&fields.string("name")?);
    let mut edits = Vec::new();
    if let Some(description) = change.and_then(|change| change.description.as_deref()) {
        edits.push(("description", Some(quote(description))));
    }
    if let Some(change) = change
        && let Some(schema) = fields.get("inputSchema").and_then(|text| edited_schema(text, change))
    {
        edits.push(("inputSchema", Some(schema)));
    }
    let read_only = change.and_then(|change| change.read_only);
    let annotations = fields.get("annotations").unwrap_or("{}");
    if let Some(hints) = edited_hints(read_only, server.trust_annotations)
        && let Some(annotations) = Fields::read(annotations)
    {
        edits.push(("annotations", Some(annotations.with(&hints))));
    }
    (!edits.is_empty()).then(|| fields.with(&edits))
}

/// Returns the hints that replace those of a tool, or `None` if they stay. A client may decide by them whether to ask its
/// user, so it must see what the config says.
fn edited_hints(
    read_only: Option<bool>,
    are_trusted: bool,
) -> Option<Vec<(&'static str, Option<String>)>> {
    let yes = || Some("true".to_owned());
    let no = || Some("false".to_owned());
    match read_only {
        Some(true) => Some(vec![("readOnlyHint", yes()), ("destructiveHint", no())]),
        Some(false) => Some(vec![("readOnlyHint", no())]),
        None if are_trusted => None,
        None => Some(HINTS.map(|hint| (hint, None)).into()),
    }
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
            if !change.hide_parameters.is_empty() || !change.defaults.is_empty() {
                notes.push(format!(
                    "`tools.{name}` cannot change the parameters that the model sees, because the tool's schema has no `properties` at the top level"
                ));
            }
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

    fn changed(name: &str, change: ToolOverride) -> Server {
        Server { tools: [(name.to_owned(), change)].into(), ..plain() }
    }

    fn plain() -> Server {
        let config = crate::GatewayConfig::from_toml("[servers.a]\ncommand = 'x'").unwrap();
        config.servers["a"].clone()
    }

    fn change() -> Server {
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
        changed("read", change)
    }

    #[test]
    fn only_what_the_config_changes_is_edited() {
        let read = r#"{"z": 1.00, "name":"read","description":"x","inputSchema":{"type":"object","properties":{"path":{"type" : "string"},"token":{},"limit":{"type":"integer","default":1.0},"account":{"default":"me"}},"required":["path","token","limit"],"x":[1]},"_meta":{"a":1}}"#;
        let list = format!(r#"[{{"name":"write" }},{read}]"#);
        let expected = r#"{"z":1.00,"name":"read","description":"Reads \"one\" file.","inputSchema":{"type":"object","properties":{"path":{"type" : "string"},"limit":{"type":"integer","default":5},"account":{}},"required":["path"],"x":[1]},"_meta":{"a":1}}"#;
        let edited = overridden_definitions(&list, &change());
        assert_eq!(edited, format!(r#"[{{"name":"write" }},{expected}]"#));
        assert!(matches!(overridden_definitions(&list, &plain()), Cow::Borrowed(_)));
        for odd in ["[]", r#"[1,{"name":1},{"name":"read"},{"name":"read","inputSchema":true}]"#] {
            let edited = overridden_definitions(odd, &change());
            assert!(serde_json::from_str::<Vec<Value>>(&edited).is_ok(), "{edited}");
        }
    }

    /// What a client sees must not say more than what the config says.
    #[test]
    fn annotations_follow_the_config() {
        let tool = r#"[{"name":"wipe","annotations":{"title":"W","readOnlyHint":true,"openWorldHint":false}}]"#;
        let bare = r#"[{"name":"wipe"}]"#;
        let read_only =
            |read_only| changed("wipe", ToolOverride { read_only, ..ToolOverride::default() });
        let untrusted = Server { trust_annotations: false, ..read_only(None) };
        for (server, list, annotations) in [
            (
                read_only(None),
                tool,
                json!({"title": "W", "readOnlyHint": true, "openWorldHint": false}),
            ),
            (
                read_only(Some(false)),
                tool,
                json!({"title": "W", "readOnlyHint": false, "openWorldHint": false}),
            ),
            (read_only(Some(false)), bare, json!({"readOnlyHint": false})),
            (read_only(Some(true)), bare, json!({"readOnlyHint": true, "destructiveHint": false})),
            (untrusted.clone(), tool, json!({"title": "W"})),
            (Server { tools: BTreeMap::new(), ..untrusted }, tool, json!({"title": "W"})),
        ] {
            let edited: Value =
                serde_json::from_str(&overridden_definitions(list, &server)).unwrap();
            assert_eq!(edited[0]["annotations"], annotations, "{list}");
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
