//! Requests as they were received.

use bytes::Bytes;
use serde_json::{Value, json};

/// One request, byte for byte.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Names (in lower case) and values, in order of arrival.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

impl ReceivedRequest {
    /// The body as JSON; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The first header of this name, which must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A JSON line for `GET /_requests`.
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
