//! The text of a connection error, for people and models.
//!
//! The SDK's errors name its own types, and the HTTP client's errors contain the full URL, which may hold a key. These
//! type names and the URL are left out here.

use std::error::Error;

use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use toolcrib_text::clean::one_line;

/// Joins the messages of an error and of its sources on one line.
pub(super) fn error_text(error: &(dyn Error + 'static)) -> String {
    let mut messages: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(inner) = inner_error(error) {
            next = Some(inner);
            continue;
        }
        let text = message(error);
        if !messages.iter().any(|before| before.contains(&text)) {
            messages.push(text);
        }
        next = error.source();
    }
    messages.join(": ")
}

/// Returns the message of one error, without its sources.
fn message(error: &(dyn Error + 'static)) -> String {
    // The SDK puts `unexpected server response` in front of the texts of our own HTTP clients.
    if let Some(StreamableHttpError::UnexpectedServerResponse(text)) =
        error.downcast_ref::<StreamableHttpError<reqwest::Error>>()
    {
        return one_line(text);
    }
    match error.downcast_ref::<reqwest::Error>() {
        Some(http) if http.is_timeout() => "no answer in time".into(),
        Some(http) if http.is_connect() => "cannot connect".into(),
        Some(http) if http.is_body() || http.is_decode() => "the response was cut off".into(),
        Some(_) => "the request failed".into(),
        None => one_line(&error.to_string()),
    }
}

/// Returns the error inside one of the SDK's errors that only name a layer of the SDK, or `None` for any other error.
fn inner_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    if let Some(ClientInitializeError::TransportError { error, .. }) = error.downcast_ref() {
        return Some(&*error.error);
    }
    if let Some(ServiceError::TransportSend(error)) = error.downcast_ref() {
        return Some(&*error.error);
    }
    if let Some(error) = error.downcast_ref::<DynamicTransportError>() {
        return Some(&*error.error);
    }
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => Some(error),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_url_that_may_contain_a_key_is_left_out() {
        let url = "http://127.0.0.1:1/mcp?key=CANARY";
        let error =
            toolcrib_tls::client_builder().build().unwrap().get(url).send().await.unwrap_err();
        assert!(error.to_string().contains("CANARY"));
        let error = StreamableHttpError::Client(error);
        let text = error_text(&error);
        assert!(text.starts_with("cannot connect: ") && !text.contains("CANARY"), "{text}");
    }
}
