//! The server's own error responses: a JSON object with `error` and `hint`.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;

/// The value of `Retry-After`: a client may retry after 5 seconds.
pub const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

#[derive(Serialize)]
struct ErrorBody<'a> {
    error: &'a str,
    hint: &'a str,
}

/// Returns an error response with this status and a JSON body.
pub fn json(status: StatusCode, error: &str, hint: &str) -> Response {
    let text = serde_json::to_string(&ErrorBody { error, hint }).unwrap_or_default();
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// Returns 503 with `Retry-After`, for an overloaded server.
pub fn busy(error: &str, hint: &str) -> Response {
    let mut response = json(StatusCode::SERVICE_UNAVAILABLE, error, hint);
    response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    response
}
