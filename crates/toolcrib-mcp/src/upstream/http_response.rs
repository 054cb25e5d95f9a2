//! What the responses of HTTP servers mean, for both HTTP transports.

use std::borrow::Cow;

use reqwest::StatusCode;
use reqwest::header::WWW_AUTHENTICATE;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, StreamableHttpError,
};

use super::http::Error;

/// Maximum length of the excerpt of a body in an error, in characters.
const EXCERPT_CHARS: usize = 200;

/// Returns the error of a response that requires a login or more permissions.
pub(super) fn auth_challenge(response: &reqwest::Response) -> Option<Error> {
    let header = response.headers().get(WWW_AUTHENTICATE);
    let text = header.map(|header| String::from_utf8_lossy(header.as_bytes()).into_owned());
    match response.status() {
        // Some servers send this status without a challenge, but it still means that a login is required.
        StatusCode::UNAUTHORIZED => {
            let error = AuthRequiredError::new(text.unwrap_or_default());
            Some(StreamableHttpError::AuthRequired(error))
        }
        StatusCode::FORBIDDEN => {
            Some(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(text?, None)))
        }
        _ => None,
    }
}

/// Returns the error of a response whose status is not a success.
pub(super) fn status_error(status: StatusCode, body: &[u8]) -> Error {
    if status.is_redirection() {
        return unexpected_response(format!(
            "HTTP {status}: the server has moved; set `url` to its new address"
        ));
    }
    unexpected_response(format!("HTTP {status}: {}", excerpt(body)))
}

/// Removes the URL from an error, because the URL may contain a key, and errors go to logs and clients.
pub(super) fn without_url(error: reqwest::Error) -> reqwest::Error {
    error.without_url()
}

pub(super) fn unexpected_response(problem: impl Into<Cow<'static, str>>) -> Error {
    StreamableHttpError::UnexpectedServerResponse(problem.into())
}

pub(super) fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = toolcrib_text::clean::one_line(&text);
    if text.is_empty() { "empty".into() } else { text.chars().take(EXCERPT_CHARS).collect() }
}
