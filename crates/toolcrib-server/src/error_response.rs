//! The server's own error responses: a JSON object with `error` and `hint`.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;

/// Seconds after which a client may try again.
pub const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

#[derive(Serialize)]
struct Refusal<'a> {
    error: &'a str,
    hint: &'a str,
}

/// An error with this status.
pub fn json(status: StatusCode, error: &str, hint: &str) -> Response {
    let text = serde_json::to_string(&Refusal { error, hint }).unwrap_or_default();
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// The server has too much to do: 503, with the time to wait.
pub fn busy(error: &str, hint: &str) -> Response {
    let mut response = json(StatusCode::SERVICE_UNAVAILABLE, error, hint);
    response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    response
}
