//! The arguments that a server gets if the config hides parameters of a tool or has defaults for them.
//!
//! Members are only added, at the end and in the order of the config, so the arguments that the client wrote stay byte
//! for byte as they are. A parameter counts as passed if the arguments contain its key at all, even several times or
//! spelled with escapes.

use toolcrib_text::json::Fields;

use crate::ClientEnvironment;
use crate::config::ToolOverride;
use crate::raw_arguments::RawArguments;

/// Why a call cannot be sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ArgumentError {
    /// The client passed a parameter that the config hides.
    Hidden(String),
    /// The arguments are not a JSON object.
    NotAnObject,
    /// A reference in a default has no value.
    Default(String),
}

/// Returns the arguments to send to the server.
pub(super) fn arguments_for_server(
    change: &ToolOverride,
    arguments: Option<RawArguments>,
    environment: &ClientEnvironment,
) -> Result<Option<RawArguments>, ArgumentError> {
    if change.hide_parameters.is_empty() && change.defaults.is_empty() {
        return Ok(arguments);
    }
    let text = arguments.as_ref().map_or("{}", RawArguments::text);
    let fields = Fields::read(text).ok_or(ArgumentError::NotAnObject)?;
    // Some servers ignore the case of names.
    let folded = |name: &str| name.trim().to_lowercase();
    let is_hidden =
        |key: &str| change.hide_parameters.iter().any(|name| folded(name) == folded(key));
    if let Some((hidden, _)) = fields.iter().find(|(key, _)| is_hidden(key)) {
        return Err(ArgumentError::Hidden(hidden.to_owned()));
    }
    let missing = change.defaults.iter().filter(|(name, _)| fields.get(name).is_none());
    let members = missing
        .map(|(name, default)| {
            let value = environment.expand_default(default);
            let value = value.map_err(|error| ArgumentError::Default(error.to_string()))?;
            Ok((&**name, value.expose().to_string()))
        })
        .collect::<Result<Vec<_>, ArgumentError>>()?;
    if members.is_empty() {
        return Ok(arguments);
    }
    let arguments = arguments.unwrap_or_else(RawArguments::empty);
    arguments.with_members(&members).map(Some).ok_or(ArgumentError::NotAnObject)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;
    use crate::config::ToolDefault;

    fn sent(change: &ToolOverride, text: Option<&str>) -> Result<Option<String>, ArgumentError> {
        let raw = text.map(|text| RawValue::from_string(text.to_owned()).unwrap().into());
        let environment = ClientEnvironment::new([("KEY".into(), "secret".into())], None);
        let sent = arguments_for_server(change, raw, &environment)?;
        Ok(sent.map(|raw| raw.text().to_owned()))
    }

    #[test]
    fn hidden_parameters_are_refused_and_defaults_are_added_once() {
        let change = ToolOverride {
            hide_parameters: vec!["token".into()],
            defaults: vec![
                ("token".into(), ToolDefault::new(json!("${KEY}"))),
                ("limit".into(), ToolDefault::new(json!(5))),
            ],
            ..ToolOverride::default()
        };
        let ok = |text: Option<&str>, expected: &str| {
            assert_eq!(sent(&change, text), Ok(Some(expected.to_owned())), "{text:?}");
        };
        ok(None, r#"{"token":"secret","limit":5}"#);
        ok(Some(r#"{"a" : 1.00 }"#), r#"{"a" : 1.00 ,"token":"secret","limit":5}"#);
        ok(Some(r#"{"l\u0069mit":null}"#), r#"{"l\u0069mit":null,"token":"secret"}"#);
        for text in [r#"{"token":"x"}"#, r#"{"a":1,"t\u006fken":null}"#] {
            assert_eq!(sent(&change, Some(text)), Err(ArgumentError::Hidden("token".into())));
        }
        // Some servers would take these for `token`.
        for name in ["Token", "TOKEN", " token "] {
            let text = json!({ name: "x" }).to_string();
            assert_eq!(sent(&change, Some(&text)), Err(ArgumentError::Hidden(name.into())));
        }
        assert_eq!(sent(&change, Some("[1]")), Err(ArgumentError::NotAnObject));
        let unset = ToolOverride {
            defaults: vec![("a".into(), ToolDefault::new(json!("${MISSING}")))],
            ..ToolOverride::default()
        };
        let problem = "the variable `MISSING` is not set".to_owned();
        assert_eq!(sent(&unset, None), Err(ArgumentError::Default(problem)));
        let plain = ToolOverride { name: Some("x".into()), ..ToolOverride::default() };
        assert_eq!(sent(&plain, Some("[1]")), Ok(Some("[1]".into())));
    }
}
