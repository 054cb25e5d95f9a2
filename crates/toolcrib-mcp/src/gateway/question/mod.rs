//! Prepares a server's question for a client: it names the server, is free of hidden characters, and is limited in
//! size.
//!
//! A client knows only the gateway, so an unchanged question would seem to be the gateway's own. Therefore every
//! elicitation begins with a label such as `[server "files"]`, and every sampling request has the label at the
//! beginning of its system prompt. No server can forge such a label: `[server` becomes `(server` in its own text, and
//! no line of it can begin with an opening bracket. A question that cannot be shown truthfully is rejected, and the
//! server gets an error with the reason. In log messages, the server's name is in `logger`.
//!
//! It would not be enough to put the name into `_meta`, because no client shows `_meta`.

mod form;
mod link;
mod server_label;

use rmcp::model::{ErrorCode, ErrorData, LoggingMessageNotificationParam};
use serde_json::{Map, Value};
use thiserror::Error;
use toolcrib_text::clean::one_line;
use toolcrib_text::shorten;

use crate::config::GatewayLimits;
use crate::hidden_text::{clean_value, has_hidden_key, has_invisible_chars};
use form::{check_form, clean_form_texts};
use link::link_host;
use server_label::{
    label_name, replace_label_brackets, server_label, text_after_label, without_labels,
};

/// Maximum length of a logger's name, including the server's name, in characters.
const MAX_LOGGER_CHARS: usize = 128;
/// The error code with which a server of the older protocol asks the user to open URLs before it continues.
const URL_ELICITATION_REQUIRED: ErrorCode = ErrorCode(-32042);

/// Why a question is not forwarded to a client.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum QuestionError {
    #[error("its parameters are not an object")]
    NotAnObject,
    #[error("its parameters have {bytes} bytes; the maximum is {limit}")]
    TooLarge { bytes: usize, limit: usize },
    #[error("a name or a choice in it has invisible characters")]
    InvisibleChars,
    #[error("a name or a choice in it looks like the name of a server")]
    ForgedLabel,
    #[error("its URL {0}")]
    Link(&'static str),
}

/// Adds the server's name to a question, and cleans and limits its text.
pub(super) fn prepare_question(
    server: &str,
    method: &str,
    params: Option<&mut Value>,
    limits: &GatewayLimits,
) -> Result<(), QuestionError> {
    match method {
        "elicitation/create" => {
            prepare_elicitation(server, params.ok_or(QuestionError::NotAnObject)?, limits)
        }
        "sampling/createMessage" => {
            prepare_sampling(server, params.ok_or(QuestionError::NotAnObject)?, limits)
        }
        _ => {
            params.map(clean_value);
            Ok(())
        }
    }
}

/// Prepares all questions in a result that asks for input.
pub(super) fn prepare_input_requests(
    server: &str,
    result: &mut Value,
    limits: &GatewayLimits,
) -> Result<(), QuestionError> {
    let requests = result.get_mut("inputRequests").and_then(Value::as_object_mut);
    for (key, request) in requests.into_iter().flatten() {
        if has_invisible_chars(key) {
            return Err(QuestionError::InvisibleChars);
        }
        let fields = request.as_object_mut().ok_or(QuestionError::NotAnObject)?;
        let method = fields.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
        prepare_question(server, &method, fields.get_mut("params"), limits)?;
    }
    Ok(())
}

/// Prepares an error that asks the user to open URLs. Any other error stays unchanged. Data that does not have the
/// protocol's form is removed, because a client may interpret it in a way that was not checked.
pub(super) fn prepare_url_error(
    server: &str,
    mut error: ErrorData,
    limits: &GatewayLimits,
) -> Result<ErrorData, QuestionError> {
    if error.code != URL_ELICITATION_REQUIRED {
        return Ok(error);
    }
    let text = text_after_label(&error.message, limits.question_chars);
    error.message = format!("{} {text}", server_label(server, "")).into();
    let elicitations = error.data.as_mut().and_then(|data| data.get_mut("elicitations"));
    let is_valid = match elicitations {
        Some(Value::Array(all)) if all.iter().all(Value::is_object) => {
            for params in all {
                prepare_elicitation(server, params, limits)?;
            }
            true
        }
        _ => false,
    };
    if !is_valid {
        error.data = None;
    }
    Ok(error)
}

/// Adds the server's name to a log message, so that the message cannot pretend to be from the gateway or from another
/// server.
pub(super) fn label_log(server: &str, line: &mut LoggingMessageNotificationParam) {
    let name = label_name(server);
    let logger = line.logger.as_deref().map(one_line).filter(|logger| !logger.is_empty());
    let logger = match logger {
        Some(logger) => format!("{name}/{logger}"),
        None => name,
    };
    line.logger = Some(shorten(&logger, MAX_LOGGER_CHARS).into_owned());
}

fn prepare_elicitation(
    server: &str,
    params: &mut Value,
    limits: &GatewayLimits,
) -> Result<(), QuestionError> {
    let fields = checked_fields(params, limits.question_bytes)?;
    if let Some(schema) = fields.get("requestedSchema") {
        check_form(schema)?;
    }
    let is_link =
        fields.get("mode").is_some_and(|mode| mode == "url") || fields.contains_key("url");
    let link = if is_link {
        let url = fields.get("url").and_then(Value::as_str).unwrap_or_default();
        format!(", link to {}", link_host(url).map_err(QuestionError::Link)?)
    } else {
        String::new()
    };
    let mut fields = Value::Object(std::mem::take(fields));
    clean_value(&mut fields);
    if let Some(schema) = fields.get_mut("requestedSchema") {
        clean_form_texts(schema);
    }
    let message = fields.get("message").and_then(Value::as_str).unwrap_or_default();
    let message = text_after_label(message, limits.question_chars);
    fields["message"] = format!("{} {message}", server_label(server, &link)).into();
    *params = fields;
    Ok(())
}

fn prepare_sampling(
    server: &str,
    params: &mut Value,
    limits: &GatewayLimits,
) -> Result<(), QuestionError> {
    let fields = checked_fields(params, limits.sampling_bytes)?;
    // `includeContext` may request the context of "this server". To a client, "this server" is the gateway, so the
    // client would send the context of all servers.
    fields.retain(|key, value| key != "includeContext" || *value == "none");
    clean_value(params);
    if let Some(messages) = params.get_mut("messages") {
        replace_label_brackets(messages);
    }
    let prompt = params.get("systemPrompt").and_then(Value::as_str).unwrap_or_default();
    let prompt = without_labels(prompt);
    let label = format!("{} requests this completion.", server_label(server, ""));
    let prompt = if prompt.is_empty() { label } else { format!("{label}\n\n{prompt}") };
    params["systemPrompt"] = prompt.into();
    Ok(())
}

/// Checks that parameters are an object, are not too large, and have no hidden characters in their keys.
fn checked_fields(
    params: &mut Value,
    limit: usize,
) -> Result<&mut Map<String, Value>, QuestionError> {
    let bytes = serde_json::to_vec(params).map_or(usize::MAX, |text| text.len());
    if bytes > limit {
        return Err(QuestionError::TooLarge { bytes, limit });
    }
    if has_hidden_key(params) {
        return Err(QuestionError::InvisibleChars);
    }
    params.as_object_mut().ok_or(QuestionError::NotAnObject)
}

#[cfg(test)]
mod tests;
