//! How much of a request is read, and how much of an upstream's response is held in memory.
//!
//! What is forwarded as it comes takes no memory, however long it gets. Two kinds of things do:
//!
//! - Copies for the record of the turn. Once they are too large, nothing more is copied and the turn is not
//!   recorded; the client does not notice.
//! - What cannot be forwarded yet: calls that are held, events that wait for them, answers to searches. Once
//!   they are too large, the turn ends with an error. An upstream that never ends a call is broken, and
//!   nothing of it could be given to the client.
//!
//! Every call, block and item counts as `PART` bytes in addition to its text, so their number is bounded, too.

use toolcrib_text::json;

use crate::api::Api;

/// Maximum number of values in a request that is read. Each takes 100 to 300 bytes of memory while it is parsed,
/// however short its text. A conversation of a million tokens with a thousand tools has a tenth as many.
pub(crate) const VALUES: usize = 500_000;

/// Maximum number of tools that are rewritten: the largest catalog that a provider searches. A request with
/// more passes unchanged.
pub(crate) const TOOLS: usize = 10_000;

/// What a call, block or item counts in addition to its text, in bytes. More than it takes: some steps look at
/// all of them.
pub(crate) const PART: usize = 1024;

/// Maximum number of calls in a turn. Some steps look at all calls for each piece of a response, and no model makes
/// nearly as many.
pub(crate) const CALLS: usize = 1024;

/// Limits of what is held of a response, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Responses that are read as a whole, all rounds of a turn together.
    pub response: usize,
    /// What is held of the streamed responses of a turn, all rounds together.
    pub turn: usize,
    /// The arguments of one call that is held.
    pub call: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { response: 64 << 20, turn: 16 << 20, call: 8 << 20 }
    }
}

/// A limit that a response exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Exceeded {
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
    #[error("the upstream's response has more than {CALLS} calls")]
    Calls,
}

impl Exceeded {
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

/// Counts what is held of a turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct Budget {
    limits: Limits,
    copied: usize,
    held: usize,
    calls: usize,
    is_full: bool,
    exceeded: Option<Exceeded>,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Counts a copy for the record; whether it is to be made.
    pub(crate) fn copy(&mut self, bytes: usize) -> bool {
        self.copied = self.copied.saturating_add(bytes);
        self.is_full |= self.copied > self.limits.turn;
        !self.is_full
    }

    /// Whether copies are missing: the turn cannot be recorded or continued.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Counts what is held until it can be forwarded or answered.
    pub(crate) fn hold(&mut self, bytes: usize) {
        self.held = self.held.saturating_add(bytes);
        if self.held > self.limits.turn {
            self.exceed();
        }
    }

    /// Counts more arguments of a call that is held, which has `all` bytes of them by now.
    pub(crate) fn hold_arguments(&mut self, all: usize, more: usize) {
        if all > self.limits.call {
            self.exceeded.get_or_insert(Exceeded::Call(self.limits.call));
        }
        self.hold(more);
    }

    /// Gives back what is no longer held.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.held = self.held.saturating_sub(bytes);
    }

    /// Bytes that are held, copies included.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held + self.copied.min(self.limits.turn)
    }

    /// Counts a call.
    pub(crate) fn call(&mut self) {
        self.calls += 1;
        if self.calls > CALLS {
            self.exceed_calls();
        }
    }

    /// Ends the turn because of the number of its calls.
    pub(crate) fn exceed_calls(&mut self) {
        self.exceeded.get_or_insert(Exceeded::Calls);
    }

    /// Ends the turn.
    pub(crate) fn exceed(&mut self) {
        self.exceeded.get_or_insert(Exceeded::Turn(self.limits.turn));
    }

    /// The limit that was exceeded, if one was.
    pub(crate) fn exceeded(&self) -> Option<Exceeded> {
        self.exceeded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_reached_and_then_exceeded() {
        let limits = Limits { response: 0, turn: 10, call: 4 };
        let mut budget = Budget::new(limits);
        assert!(budget.copy(10) && !budget.is_full());
        assert!(!budget.copy(1) && budget.is_full() && budget.exceeded().is_none());
        budget.hold(10);
        budget.release(4);
        budget.hold_arguments(4, 4);
        assert_eq!(budget.exceeded(), None);
        budget.hold_arguments(5, 0);
        assert_eq!(budget.exceeded(), Some(Exceeded::Call(4)));
        let mut budget = Budget::new(limits);
        budget.hold(11);
        assert_eq!(budget.exceeded(), Some(Exceeded::Turn(10)));
    }
}
