//! Checks the forms in servers' questions. A form with deceptive field names or choices is rejected, and its other
//! texts are cleaned.

use serde_json::Value;
use toolcrib_text::clean::{is_clean, one_line};
use toolcrib_text::shorten;

use super::QuestionError;
use super::server_label::{begins_like_label, without_labels_or_leading_brackets};
use crate::hidden_text::has_invisible_chars;

/// Maximum length of a title, a description or the name of a choice in a form, in characters. Such a text is a line or
/// a paragraph. The question itself has a limit of its own.
pub(super) const MAX_FORM_TEXT_CHARS: usize = 1_000;

/// Rejects a form with deceptive field names or choices. Names and choices are returned in the answer, so they cannot
/// be changed: the server would not recognise them. Names matter because a client shows a field without a title by its
/// name.
pub(super) fn check_form(schema: &Value) -> Result<(), QuestionError> {
    match schema {
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            if begins_like_label(key) {
                return Err(QuestionError::ForgedLabel);
            }
            match (&**key, value) {
                ("enum", Value::Array(choices)) => choices.iter().try_for_each(check_choice),
                ("const", choice @ Value::String(_)) => check_choice(choice),
                ("default", Value::String(text)) if begins_like_label(text) => {
                    Err(QuestionError::ForgedLabel)
                }
                ("required", Value::Array(names)) => {
                    let is_invisible =
                        |name: &Value| name.as_str().is_some_and(has_invisible_chars);
                    if names.iter().any(is_invisible) {
                        Err(QuestionError::InvisibleChars)
                    } else {
                        Ok(())
                    }
                }
                (_, value) => check_form(value),
            }
        }),
        Value::Array(items) => items.iter().try_for_each(check_form),
        _ => Ok(()),
    }
}

/// Checks that a choice is one line and does not look like a server label. It may contain the invisible characters that
/// ordinary writing needs.
fn check_choice(choice: &Value) -> Result<(), QuestionError> {
    let text = choice.as_str().unwrap_or_default();
    if !is_clean(text) || text.contains(['\n', '\t']) {
        return Err(QuestionError::InvisibleChars);
    }
    if begins_like_label(text) { Err(QuestionError::ForgedLabel) } else { Ok(()) }
}

/// Reduces each title, description and name of a choice to one line without a server label, and truncates it if it is
/// too long.
pub(super) fn clean_form_texts(schema: &mut Value) {
    fn clean_text(label: &mut Value) {
        if let Value::String(text) = label {
            let line = without_labels_or_leading_brackets(&one_line(text));
            *text = shorten(&line, MAX_FORM_TEXT_CHARS).into_owned();
        }
    }
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                match (&**key, value) {
                    ("title" | "description", label @ Value::String(_)) => clean_text(label),
                    ("enumNames", Value::Array(labels)) => labels.iter_mut().for_each(clean_text),
                    (_, value) => clean_form_texts(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(clean_form_texts),
        _ => {}
    }
}
