//! Prepares a server's question for a client: it names the server, is free of hidden characters, and is limited in
//! size.
//!
//! A client knows only the gateway, so an unchanged question would seem to be the gateway's own. Therefore every
//! elicitation begins with `[server "files"]`, and every sampling request has that label at the beginning of its
//! system prompt. No server can forge such a label: `[server` becomes `(server` in its own text, and no line of it
//! can begin with an opening bracket. A question that cannot be shown truthfully is rejected, and the server gets an
//! error with the reason. In log messages, the server's name is in `logger`.
//!
//! Rejected: the name in `_meta` alone, which no client shows.

use rmcp::model::{ErrorCode, ErrorData, LoggingMessageNotificationParam};
use serde_json::{Map, Value};
use thiserror::Error;
use toolcrib_text::clean::{clean, is_clean, one_line};
use toolcrib_text::shorten;
use url::Url;

use crate::config::Limits;
use crate::hidden_text::{clean_value, has_hidden_key, has_invisible_chars};

/// Maximum length of a title, a description or the name of a choice in a form, in characters. A label is a line or a
/// paragraph; the question itself has a limit of its own.
const LABEL_CHARS: usize = 1_000;
/// Maximum number of lines of a question.
const LINES: usize = 60;
/// Maximum length of a server's name in a label, in characters.
const NAME_CHARS: usize = 64;
/// Maximum length of a logger's name, including the server's name, in characters.
const LOGGER_CHARS: usize = 128;
/// The error with which an older server asks the user to open URLs before it continues.
const URL_ELICITATION_REQUIRED: ErrorCode = ErrorCode(-32042);

/// Why a question is not forwarded to a client.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum QuestionError {
    #[error("its parameters are not an object")]
    NotAnObject,
    #[error("its parameters have {bytes} bytes; the maximum is {limit}")]
    TooLarge { bytes: usize, limit: usize },
    #[error("a name or a choice in it has invisible characters")]
    HiddenName,
    #[error("a name or a choice in it looks like the name of a server")]
    FalseName,
    #[error("its URL {0}")]
    Url(&'static str),
}

/// Adds the server's name to a question, and cleans and limits its text.
pub(super) fn present(
    server: &str,
    method: &str,
    params: Option<&mut Value>,
    limits: &Limits,
) -> Result<(), QuestionError> {
    match method {
        "elicitation/create" => {
            elicitation(server, params.ok_or(QuestionError::NotAnObject)?, limits)
        }
        "sampling/createMessage" => {
            sampling(server, params.ok_or(QuestionError::NotAnObject)?, limits)
        }
        _ => {
            params.map(clean_value);
            Ok(())
        }
    }
}

/// Prepares all questions of a result that asks for input.
pub(super) fn present_all(
    server: &str,
    result: &mut Value,
    limits: &Limits,
) -> Result<(), QuestionError> {
    let requests = result.get_mut("inputRequests").and_then(Value::as_object_mut);
    for (key, request) in requests.into_iter().flatten() {
        if has_invisible_chars(key) {
            return Err(QuestionError::HiddenName);
        }
        let fields = request.as_object_mut().ok_or(QuestionError::NotAnObject)?;
        let method = fields.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
        present(server, &method, fields.get_mut("params"), limits)?;
    }
    Ok(())
}

/// Prepares an error that asks the user to open URLs; any other error stays unchanged. Data that does not have the
/// protocol's form is removed, because a client may interpret it in a way that was not checked.
pub(super) fn present_error(
    server: &str,
    mut error: ErrorData,
    limits: &Limits,
) -> Result<ErrorData, QuestionError> {
    if error.code != URL_ELICITATION_REQUIRED {
        return Ok(error);
    }
    let own = own_words(&error.message, limits.question_chars);
    error.message = format!("{} {own}", label(server, "")).into();
    let asked = error.data.as_mut().and_then(|data| data.get_mut("elicitations"));
    let is_known = match asked {
        Some(Value::Array(all)) if all.iter().all(Value::is_object) => {
            for params in all {
                elicitation(server, params, limits)?;
            }
            true
        }
        _ => false,
    };
    if !is_known {
        error.data = None;
    }
    Ok(error)
}

/// Adds the server's name to a log message, so that it cannot pretend to be from the gateway or another server.
pub(super) fn present_log(server: &str, line: &mut LoggingMessageNotificationParam) {
    let name = shown_name(server);
    let own = line.logger.as_deref().map(one_line).filter(|own| !own.is_empty());
    let logger = match own {
        Some(own) => format!("{name}/{own}"),
        None => name,
    };
    line.logger = Some(shorten(&logger, LOGGER_CHARS).into_owned());
}

fn elicitation(server: &str, params: &mut Value, limits: &Limits) -> Result<(), QuestionError> {
    let fields = checked(params, limits.question_bytes)?;
    if let Some(schema) = fields.get("requestedSchema") {
        check_form(schema)?;
    }
    let is_link =
        fields.get("mode").is_some_and(|mode| mode == "url") || fields.contains_key("url");
    let link = if is_link {
        let url = fields.get("url").and_then(Value::as_str).unwrap_or_default();
        format!(", link to {}", destination(url).map_err(QuestionError::Url)?)
    } else {
        String::new()
    };
    let mut fields = Value::Object(std::mem::take(fields));
    clean_value(&mut fields);
    if let Some(schema) = fields.get_mut("requestedSchema") {
        present_labels(schema);
    }
    let message = fields.get("message").and_then(Value::as_str).unwrap_or_default();
    let message = own_words(message, limits.question_chars);
    fields["message"] = format!("{} {message}", label(server, &link)).into();
    *params = fields;
    Ok(())
}

fn sampling(server: &str, params: &mut Value, limits: &Limits) -> Result<(), QuestionError> {
    let fields = checked(params, limits.sampling_bytes)?;
    // To a client, "this server" is the gateway, so it would send the context of all servers.
    fields.retain(|key, value| key != "includeContext" || *value == "none");
    clean_value(params);
    if let Some(messages) = params.get_mut("messages") {
        present_blocks(messages);
    }
    let own = params.get("systemPrompt").and_then(Value::as_str).unwrap_or_default();
    let own = without_labels(own);
    let origin = format!("{} requests this completion.", label(server, ""));
    let prompt = if own.is_empty() { origin } else { format!("{origin}\n\n{own}") };
    params["systemPrompt"] = prompt.into();
    Ok(())
}

/// The label at the beginning of a server's text.
fn label(server: &str, link: &str) -> String {
    format!("[server \"{}\"{link}]", shown_name(server))
}

/// A server's name without the characters that end a label or begin another one.
fn shown_name(server: &str) -> String {
    let plain = |c| match c {
        '"' | '“' | '”' | '＂' => '\'',
        ']' | '］' | '】' | '〕' | '⟧' | '❳' | '〛' | '﹞' => ')',
        c if is_opening(c) => '(',
        c => c,
    };
    let name: String = one_line(server).chars().map(plain).collect();
    shorten(&name, NAME_CHARS).into_owned()
}

/// Checks that parameters are an object, are not too large, and have no hidden characters in their keys.
fn checked(params: &mut Value, limit: usize) -> Result<&mut Map<String, Value>, QuestionError> {
    let bytes = serde_json::to_vec(params).map_or(usize::MAX, |text| text.len());
    if bytes > limit {
        return Err(QuestionError::TooLarge { bytes, limit });
    }
    if has_hidden_key(params) {
        return Err(QuestionError::HiddenName);
    }
    params.as_object_mut().ok_or(QuestionError::NotAnObject)
}

/// Rejects a form with deceptive names or choices. They are returned in the answer, so they cannot be changed: the
/// server would not recognise them. A field without a title is shown by its name.
fn check_form(schema: &Value) -> Result<(), QuestionError> {
    match schema {
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            if begins_like_a_label(key) {
                return Err(QuestionError::FalseName);
            }
            match (&**key, value) {
                ("enum", Value::Array(choices)) => choices.iter().try_for_each(check_choice),
                ("const", choice @ Value::String(_)) => check_choice(choice),
                ("default", Value::String(text)) if begins_like_a_label(text) => {
                    Err(QuestionError::FalseName)
                }
                ("required", Value::Array(names)) => {
                    let hidden = |name: &Value| name.as_str().is_some_and(has_invisible_chars);
                    if names.iter().any(hidden) { Err(QuestionError::HiddenName) } else { Ok(()) }
                }
                (_, value) => check_form(value),
            }
        }),
        Value::Array(items) => items.iter().try_for_each(check_form),
        _ => Ok(()),
    }
}

/// A choice must be one line. It may have the invisible characters that ordinary writing needs.
fn check_choice(choice: &Value) -> Result<(), QuestionError> {
    let text = choice.as_str().unwrap_or_default();
    if !is_clean(text) || text.contains(['\n', '\t']) {
        return Err(QuestionError::HiddenName);
    }
    if begins_like_a_label(text) { Err(QuestionError::FalseName) } else { Ok(()) }
}

/// Reduces each title, description and name of a choice to one line without a server label, and cuts it if it is too
/// long.
fn present_labels(schema: &mut Value) {
    fn show(label: &mut Value) {
        if let Value::String(text) = label {
            let own = without_server_names(&one_line(text));
            *text = shorten(&own, LABEL_CHARS).into_owned();
        }
    }
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                match (&**key, value) {
                    ("title" | "description", label @ Value::String(_)) => show(label),
                    ("enumNames", Value::Array(labels)) => labels.iter_mut().for_each(show),
                    (_, value) => present_labels(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(present_labels),
        _ => {}
    }
}

/// Replaces the opening brackets of text blocks that begin like a label. The rest of a prompt stays unchanged, since
/// a completion depends on every character.
fn present_blocks(content: &mut Value) {
    match content {
        Value::Array(blocks) => blocks.iter_mut().for_each(present_blocks),
        Value::Object(block) => {
            if let Some(Value::String(text)) = block.get_mut("text")
                && begins_like_a_label(text)
            {
                let rest = text.trim_start_matches(is_before_label).to_owned();
                text.truncate(text.len() - rest.len());
                *text = text.replace(is_opening, "(") + &rest;
            }
            if let Some(content) = block.get_mut("content") {
                present_blocks(content);
            }
        }
        _ => {}
    }
}

/// A server's text after its label: without anything that looks like a label, without runs of empty lines that would
/// push the label out of view, and visibly cut at the limits.
fn own_words(text: &str, limit: usize) -> String {
    let (text, _) = clean(text);
    let own = without_server_names(text.trim());
    let mut lines: Vec<&str> = own.lines().map(str::trim_end).collect();
    lines.dedup_by(|line, before| line.is_empty() && before.is_empty());
    let has_more = lines.len() > LINES;
    lines.truncate(LINES);
    let shown = lines.join("\n");
    match shown.char_indices().nth(limit) {
        Some((end, _)) => format!("{}… [cut at {limit} characters]", &shown[..end]),
        None if has_more => format!("{shown}… [cut at {LINES} lines]"),
        None => shown,
    }
}

/// A server's text without labels. At the beginning of a line every opening bracket is replaced, because the word
/// after it may be written with similar-looking letters.
fn without_server_names(text: &str) -> String {
    let mut is_start = true;
    let plain = |(at, c): (usize, char)| {
        let opens = is_opening(c);
        let names = opens && (is_start || names_a_server(&text[at + c.len_utf8()..]));
        is_start = c == '\n' || (is_start && is_before_label(c));
        if names { '(' } else { c }
    };
    text.char_indices().map(plain).collect()
}

/// A prompt without labels. Other brackets stay, since a completion depends on every character.
fn without_labels(text: &str) -> String {
    let plain = |(at, c): (usize, char)| {
        let is_label = is_opening(c) && names_a_server(&text[at + c.len_utf8()..]);
        if is_label { '(' } else { c }
    };
    text.char_indices().map(plain).collect()
}

/// Whether a text begins with an opening bracket and `server`, apart from markup.
fn begins_like_a_label(text: &str) -> bool {
    let rest = text.trim_start_matches(is_before_label);
    text[..text.len() - rest.len()].contains(is_opening) && names_a_server(rest)
}

fn names_a_server(rest: &str) -> bool {
    let letters = rest.chars().filter(|c| !is_combining(*c)).skip_while(|c| is_markup(*c));
    letters.take(6).map(|c| c.to_ascii_lowercase()).eq("server".chars())
}

fn is_before_label(c: char) -> bool {
    is_opening(c) || is_markup(c)
}

/// Whether a character is an opening square bracket or looks like one.
fn is_opening(c: char) -> bool {
    matches!(
        c,
        '[' | '［'
            | '【'
            | '〔'
            | '〖'
            | '〘'
            | '〚'
            | '⟦'
            | '⟬'
            | '❲'
            | '⁅'
            | '⦋'
            | '﹇'
            | '﹝'
    )
}

/// Whether a reader does not notice a character at the beginning of a text: whitespace, and Markdown formatting.
fn is_markup(c: char) -> bool {
    c.is_whitespace()
        || is_combining(c)
        || matches!(c, '*' | '_' | '`' | '>' | '#' | '-' | '.' | '~' | '\\')
}

/// The blocks of combining marks that are used with any script.
fn is_combining(c: char) -> bool {
    matches!(
        c,
        '\u{300}'..='\u{36f}'
            | '\u{483}'..='\u{489}'
            | '\u{1ab0}'..='\u{1aff}'
            | '\u{1dc0}'..='\u{1dff}'
            | '\u{20d0}'..='\u{20ff}'
            | '\u{fe20}'..='\u{fe2f}'
    )
}

/// The host that a URL leads to, and its port unless it is the scheme's default, to be shown to a person. A URL that
/// programs could parse differently is rejected.
fn destination(url: &str) -> Result<String, &'static str> {
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    if has_invisible_chars(url) || url.contains(odd) {
        return Err("has blanks, backslashes or invisible characters in it");
    }
    let parsed = Url::parse(url).map_err(|_| "cannot be read")?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err("is not an http or https address");
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("has a user name or password in it");
    }
    let host = parsed.host_str().filter(|host| !host.is_empty()).ok_or("names no host")?;
    Ok(parsed.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

#[cfg(test)]
mod tests;
