//! Limits on how much of a request is read, and on how much of an upstream's response is held in memory.

use toolcrib_text::json;

use crate::api::Api;

/// Maximum number of values in a request that is read. Each takes 100 to 300 bytes of memory while it is parsed,
/// however short its text. A conversation of a million tokens with a thousand tools has a tenth as many.
pub(crate) const MAX_VALUES: usize = 500_000;

/// Maximum number of tools that are rewritten: the largest catalog that a provider searches. A request with
/// more passes unchanged.
pub(crate) const MAX_TOOLS: usize = 10_000;

/// What a call, block or item counts in addition to its text, in bytes. More than it takes: some steps look at
/// all of them.
pub(crate) const PART_BYTES: usize = 1024;

/// Maximum number of calls in a turn. Some steps look at all calls for each piece of a response, and no model makes
/// nearly as many.
pub(crate) const MAX_CALLS: usize = 1024;

/// Limits of what is held of a response, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseLimits {
    /// Responses that are read as a whole, all rounds of a turn together.
    pub response: usize,
    /// What is held of the streamed responses of a turn, all rounds together.
    pub turn: usize,
    /// The arguments of one call that is held.
    pub call: usize,
}

impl Default for ResponseLimits {
    fn default() -> Self {
        Self { response: 64 << 20, turn: 16 << 20, call: 8 << 20 }
    }
}

/// A limit that a response exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LimitExceeded {
    /// One event of a stream.
    #[error("an event of the upstream is larger than {} bytes", crate::sse::MAX_EVENT_BYTES)]
    Event,
    /// A response that is read as a whole.
    #[error(
        "the upstream's response is larger than {0} bytes, the most that `response_bytes` allows"
    )]
    Response(usize),
    /// What is held of a turn.
    #[error(
        "the upstream's response needs more than the {0} bytes of memory that `turn_bytes` allows"
    )]
    Turn(usize),
    /// The arguments of one call.
    #[error(
        "a call of the upstream has arguments larger than the {0} bytes that `call_bytes` allows"
    )]
    Call(usize),
    /// What is held of all responses together.
    #[error(
        "the responses of other requests take up too much of the {0} bytes of memory that `total_response_bytes` allows: try again later"
    )]
    Total(usize),
    /// The number of calls in a turn.
    #[error("the upstream's response has more than {MAX_CALLS} calls")]
    Calls,
}

impl LimitExceeded {
    /// The body of an error, in the form of an API.
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
