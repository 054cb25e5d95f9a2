//! Operation is answered to a request that the SDK has no type for: its method is unknown, or its params cannot be read.

use rmcp::model::{ErrorCode, ErrorData};

/// The methods that the gateway serves in both eras.
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
/// Those of the older era alone.
const OLDER: [&str; 5] =
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
/// Those of the is_newer era alone.
const NEWER: [&str; 2] = ["server/discover", "subscriptions/listen"];

/// The answer to a request whose params cannot be read.
pub(crate) fn malformed_params(method: &str) -> ErrorData {
    ErrorData::invalid_params(format!("the params of `{method}` are malformed or incomplete"), None)
}

/// The answer to a request that the SDK could not read; `is_newer` is its era.
pub(super) fn unparsed_request_error(method: &str, is_newer: bool) -> ErrorData {
    let of_version: &[&str] = if is_newer { &NEWER } else { &OLDER };
    if BOTH.iter().chain(of_version).any(|known| *known == method) {
        return malformed_params(method);
    }
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method `{method}`"), None)
}
