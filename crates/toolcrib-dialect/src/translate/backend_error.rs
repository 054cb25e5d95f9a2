//! Reads the errors of a backend, in all their formats.

use toolcrib_text::json::{self, Fields};

use super::lenient;

/// Maximum length of an error text that is not JSON, in bytes. This is enough for a sentence, but not for a web page.
const MAX_TEXT_BYTES: usize = 500;

/// An error from the backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BackendError {
    /// The HTTP status, or an equivalent status if the error arrived in a stream.
    pub(super) status: u16,
    pub(super) message: String,
    /// The backend's error code.
    pub(super) code: Option<String>,
    /// The error object as it was received, if it has OpenAI's format.
    pub(super) raw: Option<String>,
}

impl BackendError {
    /// Creates an error that the adapter itself detected.
    pub(super) fn detected(message: &str) -> Self {
        Self { status: 502, message: message.to_owned(), code: None, raw: None }
    }

    /// Reads the error from a response that is not a completion.
    pub(super) fn from_response(status: u16, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        if let Some(error) =
            Fields::read(&text).and_then(|fields| Self::from_object(&fields, status))
        {
            return error;
        }
        let text = text.trim();
        let message = if text.is_empty() || text.starts_with(['<', '{', '[']) {
            format!("the backend answered {status} with a body that cannot be read")
        } else {
            format!(
                "the backend answered {status}: {}",
                &text[..text.floor_char_boundary(MAX_TEXT_BYTES)]
            )
        };
        Self { status: error_status(status, None), ..Self::detected(&message) }
    }

    /// Reads the error in an object. Returns `None` if the object contains no error.
    pub(super) fn from_object(fields: &Fields<'_>, status: u16) -> Option<Self> {
        let Some(inner) = lenient::object(fields, "error") else {
            // The error is `{"error": "…"}` or the default error of a web framework.
            let found = ["error", "message", "detail"]
                .iter()
                .find_map(|key| lenient::text(fields, key).filter(|text| !text.is_empty()))?;
            return Some(Self { status: error_status(status, None), ..Self::detected(&found) });
        };
        let code = inner.get("code").filter(|raw| *raw != "null");
        let number = code.and_then(|raw| raw.trim_matches('"').parse().ok());
        let message = lenient::text(&inner, "message");
        Some(Self {
            status: error_status(status, number),
            raw: message
                .as_ref()
                .and(fields.get("error"))
                .map(|raw| json::compact(raw).into_owned()),
            message: message.unwrap_or_else(|| "the backend gave no reason".to_owned()),
            code: code.and_then(lenient::string),
        })
    }
}

/// Returns the status of an error: the response's status or, if that is a success status, the error's code if it is an
/// HTTP error status. Otherwise returns 502.
fn error_status(status: u16, code: Option<u16>) -> u16 {
    match code {
        _ if status >= 400 => status,
        Some(code @ 400..=599) => code,
        _ => 502,
    }
}
