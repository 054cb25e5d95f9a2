//! A limit on what a client sends about itself: its name, its capabilities and its `_meta`.
//!
//! These values are stored for as long as a session or a subscription lasts, and there can be thousands of sessions and
//! subscriptions, so the limit is far below that of other requests. It applies to the memory that the values take,
//! because many small objects take much more memory than their text.

use rmcp::model::ErrorData;
use serde::Serialize;

use crate::json_memory::parsed_bytes;

/// Maximum memory of what a client sends about itself, in bytes. Clients usually send 1 to 4 kB, and even an inline
/// icon fits.
const MAX_BYTES: usize = 64 << 10;

/// What a client can do if it sends too much about itself.
pub(crate) const HINT: &str =
    "send less in `clientInfo`, `capabilities` and `_meta`, and icons as links";

/// Describes the problem if a message that begins a session is too large.
pub(crate) fn excess(text: &[u8]) -> Option<String> {
    let memory = parsed_bytes(text);
    let problem = || {
        format!(
            "`clientInfo`, `capabilities` and `_meta` take {memory} bytes of memory; the maximum is {MAX_BYTES}"
        )
    };
    (memory > MAX_BYTES).then(problem)
}

/// Rejects values that are too large to be stored.
pub(super) fn check(client_info: &impl Serialize) -> Result<(), ErrorData> {
    let text = serde_json::to_vec(client_info)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    match excess(&text) {
        Some(problem) => Err(ErrorData::invalid_params(format!("{problem}: {HINT}"), None)),
        None => Ok(()),
    }
}
