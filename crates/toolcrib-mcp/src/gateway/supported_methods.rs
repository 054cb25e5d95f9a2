//! Errors for requests that the SDK cannot parse: the method is unknown, or its params are malformed.

use rmcp::model::{ErrorCode, ErrorData};

/// Methods that exist both in the older and in the newer protocol.
const BOTH: [&str; 8] = [
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "completion/complete",
];
/// Methods of the older protocol only.
const OLDER: [&str; 5] =
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
/// Methods of the newer protocol only.
const NEWER: [&str; 5] =
    ["server/discover", "subscriptions/listen", "tasks/get", "tasks/update", "tasks/cancel"];

/// Builds the error for a request whose params cannot be parsed.
pub(crate) fn malformed_params(method: &str) -> ErrorData {
    ErrorData::invalid_params(format!("the params of `{method}` are malformed or incomplete"), None)
}

/// Builds the error for a client's request that the SDK could not parse.
pub(super) fn unparsed_request_error(method: &str, uses_newer_protocol: bool) -> ErrorData {
    let of_version: &[&str] = if uses_newer_protocol { &NEWER } else { &OLDER };
    if BOTH.iter().chain(of_version).any(|known| *known == method) {
        return malformed_params(method);
    }
    unknown_method(method)
}

/// Builds the error for a method that does not exist in the client's protocol version.
pub(super) fn unknown_method(method: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method `{method}`"), None)
}
