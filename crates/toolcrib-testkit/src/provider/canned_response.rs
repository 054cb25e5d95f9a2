//! Answers for fault tests: exact ones, and scripted ones bent on the way out.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::provider::dialect::Dialect;

/// What one request in the queue gets.
#[derive(Clone, Debug)]
pub enum CannedResponse {
    /// What the script actions, untouched.
    Scripted,
    /// What the script actions, with its stream bent.
    Faulty(StreamFault),
    /// Exactly this.
    Exact(ExactResponse),
}

/// A fault in the stream of a scripted answer. Counts are of events, from the start.
#[derive(Clone, Copy, Debug)]
pub enum StreamFault {
    /// The connection is cut after so many events.
    CutAfter(usize),
    /// So many events, half of the next one, and the connection is cut.
    HalfEvent(usize),
    /// So many events, and half of the next one as the clean end of the body.
    EndInside(usize),
    /// So many events, and a clean end of the body.
    EndAfter(usize),
    /// So many events, then nothing until [`release`](crate::provider::Provider::release).
    StallAfter(usize),
    /// Nothing, not even headers, until [`release`](crate::provider::Provider::release).
    StallFirst,
    /// Every byte a write of its own.
    ByteByByte,
}

/// An answer given as it is.
#[derive(Clone, Debug)]
pub struct ExactResponse {
    /// The status code.
    pub status: u16,
    /// The headers, all of them.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub parts: Vec<BodyPart>,
}

/// A piece of an exact body.
#[derive(Clone, Debug)]
pub enum BodyPart {
    /// These bytes in one write.
    Bytes(Bytes),
    /// A pause.
    Pause(Duration),
    /// Nothing until [`release`](crate::provider::Provider::release).
    Stall,
    /// The end of the connection, not of the body.
    Cut,
}

impl CannedResponse {
    /// A JSON body.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::Exact(ExactResponse {
            status,
            headers: vec![("content-type".into(), "application/json".into())],
            parts: vec![BodyPart::Bytes(body.to_string().into())],
        })
    }

    /// A stream of server-sent events, given as raw text, one write per item.
    pub fn sse<T: Into<Bytes>>(writes: impl IntoIterator<Item = T>) -> Self {
        Self::Exact(ExactResponse {
            status: 200,
            headers: vec![("content-type".into(), "text/event-stream; charset=utf-8".into())],
            parts: writes.into_iter().map(|write| BodyPart::Bytes(write.into())).collect(),
        })
    }

    /// The error that the dialect's own API answers with this status, `retry-after` included.
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

    /// Adds a piece to an exact body; scripted answers have none to add to.
    #[must_use]
    pub fn then(mut self, part: BodyPart) -> Self {
        if let Self::Exact(exact) = &mut self {
            exact.parts.push(part);
        }
        self
    }
}

/// Where the four APIs differ in their errors.
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
