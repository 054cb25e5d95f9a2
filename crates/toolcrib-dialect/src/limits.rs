//! Limits on the size of requests that are read, and of responses that are held in memory.

use toolcrib_text::json;

use crate::api::Api;

/// Maximum number of JSON values in a request that is read. Each value takes 100 to 300 bytes of memory while it is
/// parsed, however short its text is. A conversation of a million tokens with a thousand tools has only a tenth of this
/// number.
pub(crate) const MAX_VALUES: usize = 500_000;

/// Maximum number of tools in a request that is rewritten. No provider's search accepts a larger catalog. A request
/// with more tools passes through.
pub(crate) const MAX_TOOLS: usize = 10_000;

/// Bytes that are counted for each call, block or item in addition to its text. This is more than the memory that such
/// a part takes. It is meant to limit the number of parts, because some steps iterate over all of them.
pub(crate) const PART_BYTES: usize = 1024;

/// Maximum number of calls in a turn, because some steps iterate over all calls for each piece of a response. No model
/// makes nearly that many calls.
pub(crate) const MAX_CALLS: usize = 1024;

/// Limits on how much of a response is held in memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseLimits {
    /// Maximum total size of all responses of a turn, if they are not streamed.
    pub response: usize,
    /// Maximum total size of the parts that are held in memory, for all streamed responses of a turn.
    pub turn: usize,
    /// Maximum size of the arguments of one call that is held until it is complete.
    pub call: usize,
}

impl Default for ResponseLimits {
    fn default() -> Self {
        Self { response: 64 << 20, turn: 16 << 20, call: 8 << 20 }
    }
}

/// The limit that a response exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitExceeded {
    /// The maximum size of one event of a stream.
    #[error("an event of the upstream is larger than {} bytes", crate::sse::MAX_EVENT_BYTES)]
    Event,
    /// The maximum size of a response that is not streamed.
    #[error(
        "the upstream's response is larger than {0} bytes, the most that `response_bytes` allows"
    )]
    Response(usize),
    /// The maximum memory for one turn.
    #[error(
        "the upstream's response needs more than the {0} bytes of memory that `turn_bytes` allows"
    )]
    Turn(usize),
    /// The maximum size of the arguments of one call.
    #[error(
        "a call of the upstream has arguments larger than the {0} bytes that `call_bytes` allows"
    )]
    Call(usize),
    /// The maximum memory for the responses to all requests together.
    #[error(
        "the responses of other requests take up too much of the {0} bytes of memory that `total_response_bytes` allows: try again later"
    )]
    Total(usize),
    /// The maximum number of calls in a turn.
    #[error("the upstream's response has more than {MAX_CALLS} calls")]
    Calls,
}

impl LimitExceeded {
    /// Returns a response body with this error, in the format of `api`.
    pub(crate) fn body(self, api: Api) -> String {
        let text = json::quote(&format!("toolcrib: {self}"));
        let error = match api {
            Api::Messages => format!(r#"{{"type":"api_error","message":{text}}}"#),
            Api::Gemini => format!(r#"{{"code":502,"message":{text},"status":"UNAVAILABLE"}}"#),
            Api::Chat | Api::Responses => format!(
                r#"{{"message":{text},"type":"upstream_error","param":null,"code":"response_too_large"}}"#
            ),
        };
        format!(r#"{{"error":{error}}}"#)
    }
}
