//! Toolcrib's own request headers: `x-toolcrib-…`.
//!
//! These headers limit what a request may do, so an invalid one must not be ignored. A header that is repeated, not
//! ASCII, misspelt or empty is an error.

use std::sync::Arc;

use axum::http::HeaderMap;
use toolcrib_dialect::mode::RequestedMode;

use crate::caller_scope::{InvalidScopeRule, ScopeRule};

/// Prefix of Toolcrib's own headers. None of them is forwarded.
pub(crate) const PREFIX: &str = "x-toolcrib-";
/// The header for a Toolcrib key that is not sent in place of the provider's credential.
pub const KEY: &str = "x-toolcrib-key";
/// The header for the tools that a request may use, as names or patterns; `-name` excludes a tool.
pub const TOOLS: &str = "x-toolcrib-tools";
/// The header that selects how tools are deferred in this request. The value `off` turns deferral off.
pub const MODE: &str = "x-toolcrib-mode";

/// Why a header is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHeader {
    /// The header occurs more than once.
    #[error("the header `{0}` is sent more than once: send it once")]
    Repeated(String),
    /// The header contains characters other than visible ASCII.
    #[error("the header `{0}` contains characters that are not ASCII")]
    NotAscii(String),
    /// The header's name has Toolcrib's prefix, but there is no such header.
    #[error("there is no header `{0}`: a request may have `{KEY}`, `{TOOLS}` and `{MODE}`")]
    Unknown(String),
    /// The list of tools is malformed.
    #[error("`{TOOLS}` {0}")]
    Tools(#[from] InvalidScopeRule),
    /// The requested mode does not exist.
    #[error("`{MODE}: {0}` is not one of {names}", names = RequestedMode::NAMES.join(", "))]
    Mode(String),
}

/// The values of Toolcrib's own headers in a request.
#[derive(Debug, Default)]
pub(crate) struct ToolcribHeaders<'a> {
    pub(crate) key: Option<&'a str>,
    pub(crate) tools: Option<Arc<ScopeRule>>,
    pub(crate) mode: Option<RequestedMode>,
}

impl<'a> ToolcribHeaders<'a> {
    /// Reads the headers of a request.
    pub(crate) fn read(headers: &'a HeaderMap) -> Result<Self, InvalidHeader> {
        for name in headers.keys().map(axum::http::HeaderName::as_str) {
            if name.starts_with(PREFIX) && ![KEY, TOOLS, MODE].contains(&name) {
                return Err(InvalidHeader::Unknown(name.chars().take(64).collect()));
            }
        }
        let tools = single(headers, TOOLS)?;
        let tools = tools.map(ScopeRule::read).transpose()?.map(Arc::new);
        let mode = single(headers, MODE)?;
        let named = |text| {
            RequestedMode::from_name(text).ok_or_else(|| InvalidHeader::Mode(shortened(text)))
        };
        let mode = mode.map(named).transpose()?;
        Ok(Self { key: single(headers, KEY)?, tools, mode })
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}

/// Returns the value of a header that may occur only once.
pub(crate) fn single<'a>(
    headers: &'a HeaderMap,
    name: &str,
) -> Result<Option<&'a str>, InvalidHeader> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(InvalidHeader::Repeated(name.to_owned()));
    }
    value.to_str().map(Some).map_err(|_| InvalidHeader::NotAscii(name.to_owned()))
}
