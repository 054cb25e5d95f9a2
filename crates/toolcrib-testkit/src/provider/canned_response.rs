//! Canned responses for fault tests. Some are sent exactly as given, and others are scripted responses with a fault in
//! the stream.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::provider::dialect::Dialect;

/// How one request is answered.
#[derive(Clone, Debug)]
pub enum CannedResponse {
    /// The scripted response, unchanged.
    Scripted,
    /// The scripted response, with a fault in its stream.
    Faulty(StreamFault),
    /// Exactly this response.
    Exact(ExactResponse),
}

/// A fault in the stream of a scripted response. The numbers count events from the start of the stream.
#[derive(Clone, Copy, Debug)]
pub enum StreamFault {
    /// Aborts the connection after this many events.
    CutAfter(usize),
    /// Sends this many events and half of the next one, then aborts the connection.
    HalfEvent(usize),
    /// Sends this many events and half of the next one, then ends the body normally.
    EndInside(usize),
    /// Sends this many events, then ends the body normally.
    EndAfter(usize),
    /// Sends this many events, then nothing until [`release`](crate::provider::Provider::release) is called.
    StallAfter(usize),
    /// Sends nothing, not even headers, until [`release`](crate::provider::Provider::release) is called.
    StallFirst,
    /// Sends each byte in a separate write.
    ByteByByte,
}

/// A response that is sent exactly as given.
#[derive(Clone, Debug)]
pub struct ExactResponse {
    /// The status code.
    pub status: u16,
    /// All headers.
    pub headers: Vec<(String, String)>,
    /// The body, in parts that are sent in order.
    pub parts: Vec<BodyPart>,
}

/// A part of the body of an [`ExactResponse`].
#[derive(Clone, Debug)]
pub enum BodyPart {
    /// Sends these bytes in one write.
    Bytes(Bytes),
    /// Waits this long.
    Pause(Duration),
    /// Waits until [`release`](crate::provider::Provider::release) is called.
    Stall,
    /// Aborts the connection without ending the body.
    Cut,
}

impl CannedResponse {
    /// Creates a response with a JSON body.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::Exact(ExactResponse {
            status,
            headers: vec![("content-type".into(), "application/json".into())],
            parts: vec![BodyPart::Bytes(body.to_string().into())],
        })
    }

    /// Creates a response that is a stream of server-sent events. Each item of `writes` is raw text and is sent in one
    /// write.
    pub fn sse<T: Into<Bytes>>(writes: impl IntoIterator<Item = T>) -> Self {
        Self::Exact(ExactResponse {
            status: 200,
            headers: vec![("content-type".into(), "text/event-stream; charset=utf-8".into())],
            parts: writes.into_iter().map(|write| BodyPart::Bytes(write.into())).collect(),
        })
    }

    /// Creates the error response of this API with this status. With status 429 or 529, the response has a
    /// `retry-after` header.
    pub fn error(dialect: Dialect, status: u16) -> Self {
        let message = match status {
            400 => "The request is not valid.",
            401 => "The key is not valid.",
            429 => "Rate limit reached for requests.",
            529 => "Overloaded",
            _ => "The server had an error while processing the request.",
        };
        let mut response = Self::json(status, &dialect.error(status, message));
        if let Self::Exact(exact) = &mut response {
            if matches!(status, 429 | 529) {
                exact.headers.push(("retry-after".into(), "7".into()));
            }
            exact.headers.push(("x-request-id".into(), format!("req_error_{status}")));
        }
        response
    }

    /// Appends a part to the body of an exact response. Does nothing to scripted responses.
    #[must_use]
    pub fn then(mut self, part: BodyPart) -> Self {
        if let Self::Exact(exact) = &mut self {
            exact.parts.push(part);
        }
        self
    }
}

/// Returns the body of an error response, in the format of the API.
pub(crate) fn error_body(dialect: Dialect, status: u16, message: &str) -> Value {
    match dialect {
        Dialect::Chat | Dialect::Responses => {
            let kind = match status {
                400 | 404 => "invalid_request_error",
                401 => "authentication_error",
                429 => "rate_limit_error",
                _ => "server_error",
            };
            json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
        }
        Dialect::Anthropic => {
            let kind = match status {
                400 => "invalid_request_error",
                401 => "authentication_error",
                404 => "not_found_error",
                429 => "rate_limit_error",
                529 => "overloaded_error",
                _ => "api_error",
            };
            json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_scripted"})
        }
        Dialect::Gemini => {
            let name = match status {
                400 => "INVALID_ARGUMENT",
                401 => "UNAUTHENTICATED",
                404 => "NOT_FOUND",
                429 => "RESOURCE_EXHAUSTED",
                503 | 529 => "UNAVAILABLE",
                _ => "INTERNAL",
            };
            json!({"error": {"code": status, "message": message, "status": name}})
        }
    }
}
