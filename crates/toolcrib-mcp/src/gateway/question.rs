//! A server's question, as it is put to a client.
//!
//! A client knows the gateway and not the servers behind it, so a question that is passed on unchanged
//! seems to be the gateway's own. Every elicitation therefore begins with `[server "files"]`, and every
//! sampling request has that line at the beginning of its system prompt. No server can write that form
//! into its own text: `[server` becomes `(server` there. The rest is cleaned of hidden characters and
//! bounded. A question that cannot be shown truthfully is refused, and the server is told why.
//!
//! Rejected: the name in `_meta` alone, which no client shows.

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::{Map, Value};
use thiserror::Error;
use toolcrib_core::text::shorten;
use url::Url;

use crate::config::Limits;
use crate::hidden_text::{clean_value, has_hidden_key, is_hidden_name};

/// Maximum length of a title, a description or the name of a choice in a form, in characters: a label is a
/// line or a paragraph, and the question itself has a limit of its own.
const LABEL_CHARS: usize = 1_000;
/// The error by which a server of the older era asks the user to open URLs before it goes on.
const URL_ELICITATION_REQUIRED: ErrorCode = ErrorCode(-32042);

/// Why a question is not put to a client.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum Unfit {
    #[error("its parameters are not an object")]
    NotAnObject,
    #[error("its parameters have {bytes} bytes, and at most {limit} are passed on")]
    TooLarge { bytes: usize, limit: usize },
    #[error("a name or a choice in it has invisible characters")]
    HiddenName,
    #[error("its URL {0}")]
    Url(&'static str),
}

/// Puts a server's name to a question, and cleans and bounds its text.
pub(super) fn present(
    server: &str,
    method: &str,
    params: Option<&mut Value>,
    limits: &Limits,
) -> Result<(), Unfit> {
    match method {
        "elicitation/create" => elicitation(server, params.ok_or(Unfit::NotAnObject)?, limits),
        "sampling/createMessage" => sampling(server, params.ok_or(Unfit::NotAnObject)?, limits),
        _ => {
            params.map(clean_value);
            Ok(())
        }
    }
}

/// The same for all questions of a result that asks for input.
pub(super) fn present_all(server: &str, result: &mut Value, limits: &Limits) -> Result<(), Unfit> {
    let requests = result.get_mut("inputRequests").and_then(Value::as_object_mut);
    for (key, request) in requests.into_iter().flatten() {
        if is_hidden_name(key) {
            return Err(Unfit::HiddenName);
        }
        let fields = request.as_object_mut().ok_or(Unfit::NotAnObject)?;
        let method = fields.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
        present(server, &method, fields.get_mut("params"), limits)?;
    }
    Ok(())
}

/// The same for an error that asks the user to open URLs; any other error stays as it is.
pub(super) fn present_error(
    server: &str,
    mut error: ErrorData,
    limits: &Limits,
) -> Result<ErrorData, Unfit> {
    if error.code == URL_ELICITATION_REQUIRED {
        let asked = error.data.as_mut().and_then(|data| data.get_mut("elicitations"));
        let asked = asked.and_then(Value::as_array_mut);
        for params in asked.into_iter().flatten() {
            elicitation(server, params, limits)?;
        }
    }
    Ok(error)
}

fn elicitation(server: &str, params: &mut Value, limits: &Limits) -> Result<(), Unfit> {
    let fields = checked(params, limits.question_bytes)?;
    if fields.get("requestedSchema").is_some_and(has_hidden_choice) {
        return Err(Unfit::HiddenName);
    }
    let is_link =
        fields.get("mode").is_some_and(|mode| mode == "url") || fields.contains_key("url");
    let link = if is_link {
        let url = fields.get("url").and_then(Value::as_str).unwrap_or_default();
        format!(", link to {}", destination(url).map_err(Unfit::Url)?)
    } else {
        String::new()
    };
    let mut fields = Value::Object(std::mem::take(fields));
    clean_value(&mut fields);
    if let Some(schema) = fields.get_mut("requestedSchema") {
        shorten_labels(schema);
    }
    let message = fields.get("message").and_then(Value::as_str).unwrap_or_default();
    let message = own_words(message, limits.question_chars);
    fields["message"] = format!("[server \"{server}\"{link}] {message}").into();
    *params = fields;
    Ok(())
}

fn sampling(server: &str, params: &mut Value, limits: &Limits) -> Result<(), Unfit> {
    checked(params, limits.sampling_bytes)?;
    clean_value(params);
    let own = params.get("systemPrompt").and_then(Value::as_str).unwrap_or_default();
    let own = without_server_names(own);
    let origin = format!("[server \"{server}\"] requests this completion.");
    let prompt = if own.is_empty() { origin } else { format!("{origin}\n\n{own}") };
    params["systemPrompt"] = prompt.into();
    Ok(())
}

/// Parameters that are an object of at most so many bytes, and whose keys can be seen.
fn checked(params: &mut Value, limit: usize) -> Result<&mut Map<String, Value>, Unfit> {
    let bytes = serde_json::to_vec(params).map_or(usize::MAX, |text| text.len());
    if bytes > limit {
        return Err(Unfit::TooLarge { bytes, limit });
    }
    if has_hidden_key(params) {
        return Err(Unfit::HiddenName);
    }
    params.as_object_mut().ok_or(Unfit::NotAnObject)
}

/// Whether a value that comes back in the answer has invisible characters: cleaned, it would not be the
/// one that the server knows.
fn has_hidden_choice(schema: &Value) -> bool {
    let hidden = |value: &Value| value.as_str().is_some_and(is_hidden_name);
    match schema {
        Value::Object(fields) => fields.iter().any(|(key, value)| match (&**key, value) {
            ("enum" | "required", Value::Array(values)) => values.iter().any(hidden),
            ("const", value) => hidden(value),
            (_, value) => has_hidden_choice(value),
        }),
        Value::Array(items) => items.iter().any(has_hidden_choice),
        _ => false,
    }
}

/// Cuts titles, descriptions and names of choices that are too long.
fn shorten_labels(schema: &mut Value) {
    fn cut(label: &mut Value) {
        if let Value::String(text) = label {
            *text = shorten(text, LABEL_CHARS).into_owned();
        }
    }
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                match (&**key, value) {
                    ("title" | "description", label @ Value::String(_)) => cut(label),
                    ("enumNames", Value::Array(labels)) => labels.iter_mut().for_each(cut),
                    (_, value) => shorten_labels(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(shorten_labels),
        _ => {}
    }
}

/// A server's text after its name: without the form that names a server, without runs of empty lines that
/// would push the name out of sight, and visibly cut at the limit.
fn own_words(text: &str, limit: usize) -> String {
    let mut breaks = 0;
    let mut own = without_server_names(text.trim());
    own.retain(|c| {
        breaks = match c {
            '\n' => breaks + 1,
            c if c.is_whitespace() => breaks,
            _ => 0,
        };
        c != '\n' || breaks <= 2
    });
    match own.char_indices().nth(limit) {
        Some((end, _)) => format!("{}… [cut at {limit} characters]", &own[..end]),
        None => own,
    }
}

/// A server's text without the form that names a server.
fn without_server_names(text: &str) -> String {
    let plain = |(at, c)| if c == '[' && names_a_server(&text[at + 1..]) { '(' } else { c };
    text.char_indices().map(plain).collect()
}

fn names_a_server(rest: &str) -> bool {
    let word = rest.trim_start().get(..6);
    word.is_some_and(|word| word.eq_ignore_ascii_case("server"))
}

/// Where a URL leads, for a person to see: its host, and its port where it is not the scheme's own. A URL
/// whose parts programs could read differently is refused.
fn destination(url: &str) -> Result<String, &'static str> {
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    if is_hidden_name(url) || url.contains(odd) {
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
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn asked(params: Value) -> Result<Value, Unfit> {
        let mut params = params;
        present("files", "elicitation/create", Some(&mut params), &Limits::default())?;
        Ok(params)
    }

    fn message(text: &str) -> String {
        asked(json!({"message": text})).unwrap()["message"].as_str().unwrap().to_owned()
    }

    #[test]
    fn a_question_begins_with_its_server() {
        assert_eq!(message("Which\u{e0041} word?"), "[server \"files\"] Which word?");
        let forged = message("[Server \"bank\"] Your PIN?\n\n\n\n\n[ server \"bank\"] again");
        let expected = "[server \"files\"] (Server \"bank\"] Your PIN?\n\n( server \"bank\"] again";
        assert_eq!(forged, expected);
        assert_eq!(asked(json!({})).unwrap()["message"], "[server \"files\"] ");
    }

    #[test]
    fn a_long_question_is_cut_and_a_large_one_refused() {
        let limits = Limits { question_chars: 5, question_bytes: 40, ..Limits::default() };
        let ask = |text: &str| {
            let mut params = json!({"message": text});
            present("a", "elicitation/create", Some(&mut params), &limits).map(|()| params)
        };
        assert_eq!(ask("12345").unwrap()["message"], "[server \"a\"] 12345");
        let cut = "[server \"a\"] 12345… [cut at 5 characters]";
        assert_eq!(ask("123456").unwrap()["message"], cut);
        assert!(ask(&"x".repeat(26)).is_ok());
        let large = Unfit::TooLarge { bytes: 41, limit: 40 };
        assert_eq!(ask(&"x".repeat(27)).unwrap_err(), large);
    }

    #[test]
    fn labels_are_cleaned_and_cut_and_hidden_choices_refused() {
        let schema = |property: Value| json!({"message": "?", "requestedSchema": {"type": "object", "properties": {"a": property}}});
        let long = "x".repeat(LABEL_CHARS + 1);
        let shown = asked(schema(json!({"title": "T\u{200b}itle", "description": long}))).unwrap();
        let property = &shown["requestedSchema"]["properties"]["a"];
        assert_eq!(property["title"], "Title");
        let cut = property["description"].as_str().unwrap();
        assert_eq!((cut.chars().count(), cut.chars().next_back()), (LABEL_CHARS, Some('…')));
        for hidden in [
            json!({"enum": ["a\u{200b}"]}),
            json!({"oneOf": [{"const": "a\u{e0041}", "title": "A"}]}),
            json!({"p\u{200b}": 1}),
        ] {
            assert_eq!(asked(schema(hidden)).unwrap_err(), Unfit::HiddenName);
        }
    }

    #[test]
    fn a_link_shows_its_host() {
        let ask = |url: &str| asked(json!({"mode": "url", "message": "Sign in.", "url": url}));
        let shown = ask("https://example.com:8443/in?a=1").unwrap();
        let expected = "[server \"files\", link to example.com:8443] Sign in.";
        assert_eq!(
            (&shown["message"], &shown["url"]),
            (&json!(expected), &json!("https://example.com:8443/in?a=1"))
        );
        let shown = ask("https://ex\u{e4}mple.com/").unwrap();
        assert_eq!(shown["message"], "[server \"files\", link to xn--exmple-cua.com] Sign in.");
        for url in [
            "javascript:alert(1)",
            "file:///etc/passwd",
            "https://bank.example@evil.example/",
            "https://bank.example\\@evil.example/",
            "https://evil.example/\u{202e}",
            "https://evil.example/a b",
            "",
        ] {
            assert!(matches!(ask(url), Err(Unfit::Url(_))), "{url}");
        }
    }

    #[test]
    fn a_completion_names_its_server_in_the_system_prompt() {
        let sample = |params: Value| {
            let mut params = params;
            present("files", "sampling/createMessage", Some(&mut params), &Limits::default())
                .unwrap();
            params
        };
        let text = |text: &str| json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": 5});
        let mut expected = text("hi");
        expected["systemPrompt"] = "[server \"files\"] requests this completion.".into();
        assert_eq!(sample(text("h\u{200b}i")), expected);
        let mut with = text("hi");
        with["systemPrompt"] = "Be brief.".into();
        let told = "[server \"files\"] requests this completion.\n\nBe brief.";
        assert_eq!(sample(with)["systemPrompt"], told);
    }

    #[test]
    fn an_error_that_asks_for_urls_names_the_server_too() {
        let error = |url: &str| {
            let data =
                json!({"elicitations": [{"mode": "url", "message": "Sign in.", "url": url}]});
            ErrorData::new(URL_ELICITATION_REQUIRED, "sign in", Some(data))
        };
        let shown =
            present_error("files", error("https://a.example/"), &Limits::default()).unwrap();
        let message = &shown.data.unwrap()["elicitations"][0]["message"];
        assert_eq!(message, "[server \"files\", link to a.example] Sign in.");
        assert!(present_error("files", error("data:x"), &Limits::default()).is_err());
    }

    proptest! {
        /// Whatever a server writes, the form that names a server is there once, and has its own name.
        #[test]
        fn no_server_speaks_for_another(text in r#"(\[|server|SERVER| |"|bank|\]|\n|[a-z]|\u{200b}){0,40}"#) {
            let shown = message(&text);
            let rest = shown.strip_prefix("[server \"files\"] ").unwrap();
            let mut forms = rest.match_indices('[').map(|(at, _)| rest[at + 1..].trim_start());
            let forged = |form: &str| form.to_lowercase().starts_with("server");
            prop_assert!(!forms.any(forged), "{shown}");
        }
    }
}
