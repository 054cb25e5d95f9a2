//! What went wrong with a connection, in words that people and models can use.
//!
//! The SDK's errors tell of transports and workers, and the HTTP client's tell the whole address, which may
//! hold a key. Here is what is left when both are taken away.

use std::error::Error;

use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

/// What an error says, with what is behind it, on one line.
pub(super) fn reason(error: &(dyn Error + 'static)) -> String {
    let mut said: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(inner) = inside(error) {
            next = Some(inner);
            continue;
        }
        let text = match error.downcast_ref::<reqwest::Error>() {
            Some(http) if http.is_timeout() => "no answer in time".into(),
            Some(http) if http.is_connect() => "cannot connect".into(),
            Some(http) if http.is_body() || http.is_decode() => "the answer broke off".into(),
            Some(_) => "the request failed".into(),
            None => toolcrib_text::clean::one_line(&error.to_string()),
        };
        if !said.iter().any(|before| before.contains(&text)) {
            said.push(text);
        }
        next = error.source();
    }
    said.join(": ")
}

/// What an error that only names a layer has in it.
fn inside<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
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
    async fn an_address_that_may_hold_a_key_is_not_repeated() {
        let url = "http://127.0.0.1:1/mcp?key=CANARY";
        let error =
            toolcrib_tls::client_builder().build().unwrap().get(url).send().await.unwrap_err();
        assert!(error.to_string().contains("CANARY"));
        let error = StreamableHttpError::Client(error);
        let text = reason(&error);
        assert!(text.starts_with("cannot connect: ") && !text.contains("CANARY"), "{text}");
    }
}
