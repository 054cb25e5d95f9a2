//! The proxy's own errors, in the format of the client's API.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use toolcrib_dialect::{Api, sse};

use crate::caller::IdentifyError;

/// Returns an error response in the format of an API.
pub(crate) fn error_response(api: Api, status: StatusCode, text: &str) -> Response {
    let text = serde_json::Value::from(format!("toolcrib: {text}"));
    let code = status.as_u16();
    let body = match api {
        Api::Messages => {
            format!(r#"{{"type":"error","error":{{"type":"api_error","message":{text}}}}}"#)
        }
        Api::Gemini => {
            format!(r#"{{"error":{{"code":{code},"message":{text},"status":"UNAVAILABLE"}}}}"#)
        }
        Api::Chat | Api::Responses => {
            format!(
                r#"{{"error":{{"message":{text},"type":"api_error","param":null,"code":null}}}}"#
            )
        }
    };
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// Returns an error event, for a stream that has already started.
pub(crate) fn error_event(api: Api, status: StatusCode, text: &str) -> Vec<u8> {
    let code = status.as_u16();
    let is_unauthorized = status == StatusCode::UNAUTHORIZED;
    let status = if is_unauthorized { "UNAUTHENTICATED" } else { "UNAVAILABLE" };
    let text = serde_json::Value::from(format!("toolcrib: {text}"));
    let (name, data) = match api {
        Api::Messages => (
            Some("error"),
            format!(r#"{{"type":"error","error":{{"type":"api_error","message":{text}}}}}"#),
        ),
        Api::Responses => (
            Some("error"),
            format!(r#"{{"type":"error","code":"api_error","message":{text},"param":null}}"#),
        ),
        Api::Gemini => {
            (None, format!(r#"{{"error":{{"code":{code},"message":{text},"status":"{status}"}}}}"#))
        }
        Api::Chat => (
            None,
            format!(
                r#"{{"error":{{"message":{text},"type":"api_error","param":null,"code":null}}}}"#
            ),
        ),
    };
    let mut event = Vec::new();
    sse::write_event(name, &data, &mut event);
    event
}

/// Why a request is rejected before anything is sent to an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestError {
    api: Api,
    status: StatusCode,
    text: String,
}

impl RequestError {
    pub(crate) fn new(api: Api, status: StatusCode, text: &(impl ToString + ?Sized)) -> Self {
        Self { api, status, text: text.to_string() }
    }

    /// Creates the error for a request whose caller cannot be identified.
    pub(crate) fn unidentified(api: Api, why: &IdentifyError) -> Self {
        let status = match why {
            IdentifyError::NoKey | IdentifyError::MisplacedKey(_) => StatusCode::UNAUTHORIZED,
            IdentifyError::NotAdmin => StatusCode::FORBIDDEN,
            IdentifyError::InvalidHeader(_) | IdentifyError::TwoCallers => StatusCode::BAD_REQUEST,
        };
        Self::new(api, status, why)
    }
}

impl IntoResponse for RequestError {
    fn into_response(self) -> Response {
        let mut response = error_response(self.api, self.status, &self.text);
        if self.status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// Returns the response to a WebSocket upgrade, which is not supported. Without this response clients retry; with it,
/// Codex falls back to HTTP at once.
pub(crate) fn websocket_unsupported(api: Api) -> Response {
    let text = "WebSockets are not supported: send the request with POST";
    let mut response = error_response(api, StatusCode::UPGRADE_REQUIRED, text);
    response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("HTTP/1.1"));
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    response
}
