//! What the config changes about one tool: `[servers.NAME.tools.TOOL]`.
//!
//! `TOOL` is the tool's own name at its server. The changes apply to what clients see, and `defaults` to the arguments
//! that the server gets.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;
use toolcrib_core::wire_name;
use toolcrib_server::config::InvalidSetting;
use toolcrib_server::expand::{Reference, ReferenceError, expand_text};

/// What the config changes about one tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOverride {
    /// Replaces the tool's own part of the name that clients see.
    pub name: Option<String>,
    /// Replaces the description.
    pub description: Option<String>,
    /// Parameters that clients do not see and may not pass.
    pub hide_parameters: Vec<String>,
    /// Values that are added to the arguments of a call if the client did not pass them, in the order of the file.
    pub defaults: Vec<(String, ToolDefault)>,
    /// Whether the tool only reads. If `None`, the server's annotations decide, unless they are not trusted.
    pub read_only: Option<bool>,
}

impl ToolOverride {
    /// Whether clients see the parameter.
    pub fn hides(&self, parameter: &str) -> bool {
        self.hide_parameters.iter().any(|hidden| hidden == parameter)
    }
}

/// The value of a parameter that the gateway adds to the arguments of a call.
#[derive(Clone, PartialEq)]
pub struct ToolDefault {
    value: Value,
    /// Whether the value contains a reference, such as `${NAME}`. Such a value counts as a secret, even after the
    /// reference was expanded.
    is_secret: bool,
}

/// Shows no secrets.
impl fmt::Debug for ToolDefault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shown() {
            Some(value) => value.fmt(f),
            None => f.write_str("***"),
        }
    }
}

impl ToolDefault {
    /// Creates a default from a value in which references are not expanded yet.
    pub fn new(value: Value) -> Self {
        let is_secret = has_reference(&value);
        Self { value, is_secret }
    }

    /// Returns the value, unless it is a secret.
    pub fn shown(&self) -> Option<&Value> {
        (!self.is_secret).then_some(&self.value)
    }

    /// Returns the value, which may be a secret.
    pub(crate) fn expose(&self) -> &Value {
        &self.value
    }

    /// Returns the strings in the value, if it is a secret.
    pub(crate) fn secret_strings(&self) -> Vec<&str> {
        let mut strings = Vec::new();
        if self.is_secret {
            add_strings(&self.value, &mut strings);
        }
        strings
    }

    /// Expands the references in the value.
    pub(crate) fn expanded(
        &self,
        lookup: &impl Fn(Reference<'_>) -> Option<String>,
    ) -> Result<Self, ReferenceError> {
        if !self.is_secret {
            return Ok(self.clone());
        }
        let mut value = self.value.clone();
        expand_strings(&mut value, lookup)?;
        Ok(Self { value, is_secret: true })
    }

    /// Returns the default with `***` in place of each text that is not only a reference, if the value is a secret.
    pub(super) fn masked(&self) -> Self {
        let mut value = self.value.clone();
        if self.is_secret {
            mask_strings(&mut value);
        }
        Self { value, is_secret: self.is_secret }
    }
}

fn has_reference(value: &Value) -> bool {
    let mut strings = Vec::new();
    add_strings(value, &mut strings);
    strings.iter().any(|text| text.contains("${"))
}

fn add_strings<'v>(value: &'v Value, strings: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => strings.push(text),
        Value::Array(items) => items.iter().for_each(|item| add_strings(item, strings)),
        Value::Object(fields) => fields.values().for_each(|field| add_strings(field, strings)),
        _ => {}
    }
}

fn expand_strings(
    value: &mut Value,
    lookup: &impl Fn(Reference<'_>) -> Option<String>,
) -> Result<(), ReferenceError> {
    match value {
        Value::String(text) => *text = expand_text(text, lookup)?,
        Value::Array(items) => {
            items.iter_mut().try_for_each(|item| expand_strings(item, lookup))?;
        }
        Value::Object(fields) => {
            fields.values_mut().try_for_each(|field| expand_strings(field, lookup))?;
        }
        _ => {}
    }
    Ok(())
}

fn mask_strings(value: &mut Value) {
    match value {
        Value::String(text) => {
            let masked = toolcrib_server::mask::value(&text.as_str().into());
            masked.expose().clone_into(text);
        }
        Value::Array(items) => items.iter_mut().for_each(mask_strings),
        Value::Object(fields) => fields.values_mut().for_each(mask_strings),
        _ => {}
    }
}

/// A tool as it is written in the file, before it is checked.
#[derive(Deserialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ToolOverride", description = "What the config changes about one tool.")
)]
pub(super) struct RawToolOverride {
    /// Replaces the tool's own part of the name that clients see.
    name: Option<String>,
    /// Replaces the description.
    description: Option<String>,
    /// Parameters that clients do not see and may not pass.
    hide_parameters: Vec<String>,
    /// Values that are added to the arguments of a call if the client did not pass them.
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, Value>"))]
    defaults: BTreeMap<Spanned<String>, toml::Value>,
    /// Whether the tool only reads. Default: the server's annotations decide, unless they are not trusted.
    read_only: Option<bool>,
}

impl RawToolOverride {
    pub(super) fn read(self) -> Result<ToolOverride, InvalidSetting> {
        // A parsed table is unordered, so the order in the file is restored.
        let mut written: Vec<_> = self.defaults.into_iter().collect();
        written.sort_by_key(|(parameter, _)| parameter.span().start);
        let mut defaults = Vec::new();
        for (parameter, value) in written {
            let parameter = parameter.into_inner();
            let value = json_value(value).ok_or_else(|| {
                let hint = "use a string, a finite number, a boolean, an array or a table";
                InvalidSetting::new(&["defaults", &parameter], "has no JSON equivalent", hint)
            })?;
            defaults.push((parameter, ToolDefault::new(value)));
        }
        Ok(ToolOverride {
            name: self.name,
            description: self.description,
            hide_parameters: self.hide_parameters,
            defaults,
            read_only: self.read_only,
        })
    }
}

/// Converts a TOML value to JSON. Returns `None` if it contains a date or a number that is not finite.
fn json_value(value: toml::Value) -> Option<Value> {
    Some(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => serde_json::Number::from_f64(number)?.into(),
        toml::Value::Boolean(flag) => flag.into(),
        toml::Value::Datetime(_) => return None,
        toml::Value::Array(items) => items.into_iter().map(json_value).collect::<Option<_>>()?,
        toml::Value::Table(fields) => {
            let field = |(key, value)| Some((key, json_value(value)?));
            Value::Object(fields.into_iter().map(field).collect::<Option<_>>()?)
        }
    })
}

/// Checks the overrides of one server's tools.
pub(super) fn check(tools: &BTreeMap<String, ToolOverride>) -> Result<(), InvalidSetting> {
    let mut names = BTreeMap::new();
    for (tool, change) in tools {
        let at = |key: &str, problem: &str, hint: &str| {
            InvalidSetting::new(&["tools", tool, key], problem, hint)
        };
        if let Some(name) = &change.name {
            InvalidSetting::unless(wire_name::is_valid(name), || {
                let hint = "1 to 64 letters, digits, `_` and `-`, beginning with a letter or `_`";
                at("name", "is not a valid name for a tool", hint)
            })?;
            InvalidSetting::unless(!wire_name::is_reserved(name), || {
                at("name", "is the name of one of Toolcrib's own tools", "choose another name")
            })?;
            InvalidSetting::unless(names.insert(name, tool).is_none(), || {
                at("name", "is also the name of another tool", "give each tool its own name")
            })?;
        }
        InvalidSetting::unless(
            change.description.as_ref().is_none_or(|text| !text.trim().is_empty()),
            || at("description", "is empty", "leave it out to keep the server's description"),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_default_with_a_reference_is_a_secret_before_and_after_expansion() {
        let plain = ToolDefault::new(json!({"a": ["b", 1]}));
        assert_eq!(plain.shown(), Some(&json!({"a": ["b", 1]})));
        assert!(plain.secret_strings().is_empty());
        let secret = ToolDefault::new(json!({"a": ["${KEY}", "x-${KEY}"]}));
        let expanded = secret.expanded(&|_| Some("CANARY".into())).unwrap();
        assert_eq!(expanded.expose(), &json!({"a": ["CANARY", "x-CANARY"]}));
        assert_eq!(expanded.secret_strings(), ["CANARY", "x-CANARY"]);
        assert_eq!((secret.shown(), expanded.shown()), (None, None));
        assert_eq!(format!("{secret:?} {expanded:?}"), "*** ***");
        assert_eq!(secret.masked().expose(), &json!({"a": ["${KEY}", "***"]}));
        assert!(secret.expanded(&|_| None).is_err());
    }
}
