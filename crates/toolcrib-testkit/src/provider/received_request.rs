//! Requests, stored exactly as the provider received them.

use bytes::Bytes;
use serde_json::{Value, json};

/// One request, with its headers and body unchanged.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// The HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

impl ReceivedRequest {
    /// Returns the body as JSON, or null if the body is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns the value of the first header with this name, which must be given in lower case. `None` if there is no
    /// such header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the request as a line of JSON, without the line end, for the response to `GET /_requests`.
    pub(crate) fn line(&self) -> String {
        json!({
            "method": self.method,
            "path": self.path,
            "headers": self.headers,
            "body": String::from_utf8_lossy(&self.body),
        })
        .to_string()
    }
}
