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
//! Every call, block and item counts as `PART_BYTES` bytes in addition to its text, so their number is bounded, too.

use crate::limits::{LimitExceeded, MAX_CALLS, ResponseLimits};

/// Counts what is held of a turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResponseBudget {
    limits: ResponseLimits,
    copied: usize,
    held: usize,
    calls: usize,
    is_full: bool,
    exceeded: Option<LimitExceeded>,
}

impl ResponseBudget {
    pub(crate) fn new(limits: ResponseLimits) -> Self {
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
            self.exceeded.get_or_insert(LimitExceeded::Call(self.limits.call));
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
        if self.calls > MAX_CALLS {
            self.exceed_calls();
        }
    }

    /// Ends the turn because of the number of its calls.
    pub(crate) fn exceed_calls(&mut self) {
        self.exceeded.get_or_insert(LimitExceeded::Calls);
    }

    /// Ends the turn.
    pub(crate) fn exceed(&mut self) {
        self.exceeded.get_or_insert(LimitExceeded::Turn(self.limits.turn));
    }

    /// The limit that was exceeded, if one was.
    pub(crate) fn exceeded(&self) -> Option<LimitExceeded> {
        self.exceeded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_reached_and_then_exceeded() {
        let limits = ResponseLimits { response: 0, turn: 10, call: 4 };
        let mut budget = ResponseBudget::new(limits);
        assert!(budget.copy(10) && !budget.is_full());
        assert!(!budget.copy(1) && budget.is_full() && budget.exceeded().is_none());
        budget.hold(10);
        budget.release(4);
        budget.hold_arguments(4, 4);
        assert_eq!(budget.exceeded(), None);
        budget.hold_arguments(5, 0);
        assert_eq!(budget.exceeded(), Some(LimitExceeded::Call(4)));
        let mut budget = ResponseBudget::new(limits);
        budget.hold(11);
        assert_eq!(budget.exceeded(), Some(LimitExceeded::Turn(10)));
    }
}
