//! Finds the arguments of a call in what the model sent.
//!
//! Models send an object, a JSON string, nothing, `arguments` inside `arguments`, or the arguments next to the name.
//! Each possible interpretation of the input is a candidate, and the caller uses the first one that matches the schema.
//! An input that already matches is used unchanged.

use std::borrow::Cow;

use toolcrib_text::json::{self, Fields};

/// Keys under which models put the arguments.
const ARGUMENT_KEYS: [&str; 5] = ["arguments", "args", "input", "parameters", "params"];
/// Keys under which models put the tool's name.
const NAME_KEYS: [&str; 3] = ["name", "tool_name", "tool"];

/// The input of a `tool_call`, split into the tool's name and its arguments.
#[derive(Debug)]
pub(crate) struct ToolCallInput<'a> {
    /// The tool's name as the model spelled it.
    pub(crate) name: Option<String>,
    arguments: Option<&'a str>,
    /// All other keys of the input. If the model put the arguments next to the name, these are the arguments.
    rest: Vec<(String, &'a str)>,
}

impl<'a> ToolCallInput<'a> {
    pub(crate) fn read(fields: &Fields<'a>) -> Self {
        let name_key = NAME_KEYS.into_iter().find(|key| fields.get(key).is_some());
        let arguments_key = ARGUMENT_KEYS.into_iter().find(|key| fields.get(key).is_some());
        let rest = fields
            .iter()
            .filter(|(key, _)| Some(*key) != name_key && Some(*key) != arguments_key)
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        Self {
            name: name_key.and_then(|key| fields.string(key)),
            arguments: arguments_key.and_then(|key| fields.get(key)),
            rest,
        }
    }

    /// All possible interpretations of the arguments, the most literal first. Each is the text of a JSON object.
    pub(crate) fn candidates(&self) -> Vec<Cow<'a, str>> {
        let mut found = match self.arguments {
            Some(arguments) => interpretations(arguments),
            None => Vec::new(),
        };
        if !self.rest.is_empty() && found.iter().all(|text| is_empty_object(text)) {
            found.push(Cow::Owned(object(&self.rest)));
            // If the input has no `arguments`, its other keys are most likely the arguments themselves, so they become
            // the first candidate. If `arguments` is present but empty, the empty object remains the first candidate.
            if self.arguments.is_none() {
                found.rotate_right(1);
            }
        }
        if found.is_empty() && self.arguments.is_none_or(is_blank) {
            found.push(Cow::Borrowed("{}"));
        }
        found
    }
}

/// All possible interpretations of a direct call's input, the most literal first.
pub(crate) fn interpretations(text: &str) -> Vec<Cow<'_, str>> {
    let mut found: Vec<Cow<'_, str>> = Vec::new();
    let text = text.trim();
    if is_blank(text) {
        return vec![Cow::Borrowed("{}")];
    }
    if let Some(fields) = Fields::read(text) {
        found.push(Cow::Borrowed(text));
        // The arguments may be wrapped as `{"arguments": {…}}`, possibly with the name next to them.
        let wrapper = ARGUMENT_KEYS.into_iter().find(|key| fields.get(key).is_some());
        if let Some(key) = wrapper
            && fields.iter().all(|(other, _)| other == key || NAME_KEYS.contains(&other))
            && let Some(inner) = fields.get(key)
        {
            found.extend(wrapped_interpretations(inner));
        }
    } else if let Ok(inner) = serde_json::from_str::<String>(text) {
        // The input is a JSON string that contains JSON, which may again be a string.
        found.extend(interpretations(&inner).into_iter().map(|c| Cow::Owned(c.into_owned())));
    }
    found
}

/// Returns the interpretations of arguments that were found under one of the [`ARGUMENT_KEYS`]. This function does not
/// look for another such key inside them, because models do not wrap arguments any deeper.
fn wrapped_interpretations(text: &str) -> Vec<Cow<'_, str>> {
    if Fields::read(text).is_some() {
        return vec![Cow::Borrowed(text)];
    }
    match serde_json::from_str::<String>(text) {
        Ok(inner) if is_blank(&inner) => vec![Cow::Borrowed("{}")],
        Ok(inner) if Fields::read(&inner).is_some() => vec![Cow::Owned(inner)],
        _ => Vec::new(),
    }
}

fn is_blank(text: &str) -> bool {
    let text = text.trim();
    text.is_empty()
        || text == "null"
        || serde_json::from_str::<String>(text).is_ok_and(|inner| inner.trim().is_empty())
}

fn is_empty_object(text: &str) -> bool {
    Fields::read(text).is_some_and(|fields| fields.iter().next().is_none())
}

fn object(fields: &[(String, &str)]) -> String {
    let fields: Vec<_> =
        fields.iter().map(|(key, value)| format!("{}:{value}", json::quote(key))).collect();
    format!("{{{}}}", fields.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(text: &str) -> (Option<String>, Vec<String>) {
        let fields = Fields::read(text).unwrap();
        let wrapped = ToolCallInput::read(&fields);
        let found = wrapped.candidates().into_iter().map(Cow::into_owned).collect();
        (wrapped.name, found)
    }

    #[test]
    fn every_wrapping_that_models_send() {
        for (text, first) in [
            (r#"{"name":"t","arguments":{"a":1.0}}"#, r#"{"a":1.0}"#),
            (r#"{"name":"t","arguments":"{\"a\":1.0}"}"#, r#"{"a":1.0}"#),
            (r#"{"name":"t","arguments":"\"{\\\"a\\\":1.0}\""}"#, r#"{"a":1.0}"#),
            (r#"{"name":"t","arguments":""}"#, "{}"),
            (r#"{"name":"t","arguments":"  "}"#, "{}"),
            (r#"{"name":"t","arguments":null}"#, "{}"),
            (r#"{"name":"t"}"#, "{}"),
            (r#"{"name":"t","a":1.0}"#, r#"{"a":1.0}"#),
            (r#"{"tool_name":"t","args":{"a":1.0}}"#, r#"{"a":1.0}"#),
        ] {
            let (name, found) = candidates(text);
            assert_eq!((name.as_deref(), found[0].as_str()), (Some("t"), first), "{text}");
        }
    }

    #[test]
    fn a_nested_wrapper_is_the_second_reading() {
        let (_, found) = candidates(r#"{"name":"t","arguments":{"name":"t","arguments":{"a":1}}}"#);
        assert_eq!(found, [r#"{"name":"t","arguments":{"a":1}}"#, r#"{"a":1}"#]);
        let (_, found) = candidates(r#"{"name":"t","arguments":{},"a":1}"#);
        assert_eq!(found, ["{}", r#"{"a":1}"#]);
    }

    #[test]
    fn values_that_are_not_objects_are_not_readings() {
        assert!(candidates(r#"{"name":"t","arguments":[1]}"#).1.is_empty());
        assert!(candidates(r#"{"name":"t","arguments":"{"}"#).1.is_empty());
    }
}
