//! Counts how much of the upstream's responses is held in memory.
//!
//! Bytes that are forwarded as they arrive take no memory, however many there are. Two things are held in memory:
//!
//! - Copies for the record of the turn. When they are too large, copying stops and the turn is not recorded. The client
//!   does not notice.
//! - Everything that cannot be forwarded yet: incomplete calls, events that wait for these calls, and answers to
//!   searches. When these are too large, the turn ends with an error. An upstream that never completes a call is
//!   broken, and an incomplete call could not be forwarded anyway.
//!
//! Every call, block and item counts as `PART_BYTES` in addition to its text, so their number is limited as well.

use crate::limits::{LimitExceeded, MAX_CALLS, ResponseLimits};

/// Counts the bytes and calls that are held in memory for one turn.
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

    /// Counts `bytes` that are about to be copied for the record of the turn. Returns `false` if the copies have become
    /// too large, so that these bytes must not be copied.
    pub(crate) fn copy(&mut self, bytes: usize) -> bool {
        self.copied = self.copied.saturating_add(bytes);
        self.is_full |= self.copied > self.limits.turn;
        !self.is_full
    }

    /// Whether the copies became too large. If they did, the turn cannot be recorded, and no hidden round can follow.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Counts bytes that are held because they cannot be forwarded or sent upstream yet.
    pub(crate) fn hold(&mut self, bytes: usize) {
        self.held = self.held.saturating_add(bytes);
        if self.held > self.limits.turn {
            self.exceed();
        }
    }

    /// Counts `more` new bytes of a held call's arguments, which now have `all` bytes in total.
    pub(crate) fn hold_arguments(&mut self, all: usize, more: usize) {
        if all > self.limits.call {
            self.exceeded.get_or_insert(LimitExceeded::Call(self.limits.call));
        }
        self.hold(more);
    }

    /// Subtracts bytes that are no longer held.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.held = self.held.saturating_sub(bytes);
    }

    /// Returns the number of bytes in memory: those that are held, and the copies for the record.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held + self.copied.min(self.limits.turn)
    }

    /// Counts one more call of the turn.
    pub(crate) fn call(&mut self) {
        self.calls += 1;
        if self.calls > MAX_CALLS {
            self.exceed_calls();
        }
    }

    /// Marks the turn as having too many calls, which ends it.
    pub(crate) fn exceed_calls(&mut self) {
        self.exceeded.get_or_insert(LimitExceeded::Calls);
    }

    /// Marks the turn as using too much memory, which ends it.
    pub(crate) fn exceed(&mut self) {
        self.exceeded.get_or_insert(LimitExceeded::Turn(self.limits.turn));
    }

    /// Returns the limit that was exceeded, if any.
    pub(crate) fn exceeded(&self) -> Option<LimitExceeded> {
        self.exceeded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_may_be_reached_but_not_exceeded() {
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
