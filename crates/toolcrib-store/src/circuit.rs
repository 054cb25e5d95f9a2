//! Leaving a failing Redis alone for a moment, so that requests do not queue up to wait for it.
//!
//! After a failure everybody is turned away until the pause is over; then one is let through to try, and
//! the others wait for what became of it. Reads no clock: the time comes in.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct Circuit {
    pause: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// When the next try may be made; `None` as long as all is well.
    retry: Option<Instant>,
    /// How many failures there were so far.
    failures: u64,
}

/// Leave to try, given when so many failures were known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leave(u64);

impl Circuit {
    pub(crate) fn new(pause: Duration) -> Self {
        Self { pause, state: Mutex::new(State { retry: None, failures: 0 }) }
    }

    /// Whether to try at all.
    pub(crate) fn admit(&self, now: Instant) -> Option<Leave> {
        let mut state = self.state();
        if let Some(retry) = state.retry {
            if now < retry {
                return None;
            }
            // The one who tries has a pause's time for it. Should it vanish half-way, as requests do whose
            // client hangs up, the next one tries.
            state.retry = Some(now + self.pause);
        }
        Some(Leave(state.failures))
    }

    /// Whether somebody failed since leave was given: whoever waited for that one has nothing to wait for.
    pub(crate) fn overtaken(&self, leave: Leave) -> bool {
        self.state().failures != leave.0
    }

    /// Notes a failure. Returns whether all was well until now.
    pub(crate) fn trip(&self, now: Instant) -> bool {
        let mut state = self.state();
        state.failures += 1;
        state.retry.replace(now + self.pause).is_none()
    }

    /// Notes an answer. Returns whether it ends a failure.
    pub(crate) fn close(&self) -> bool {
        self.state().retry.take().is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here can stop half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(1);
    const ALMOST: Duration = Duration::from_millis(999);

    #[test]
    fn all_are_admitted_until_a_failure_and_none_for_a_pause_after_it() {
        let (circuit, start) = (Circuit::new(PAUSE), Instant::now());
        assert!(circuit.admit(start).is_some());
        assert!(circuit.admit(start).is_some());
        assert!(circuit.trip(start));
        assert!(!circuit.trip(start), "only the first failure is news");
        assert!(circuit.admit(start + ALMOST).is_none());
        assert!(circuit.admit(start + PAUSE).is_some());
    }

    #[test]
    fn after_the_pause_one_tries_and_the_others_wait_for_it() {
        let (circuit, start) = (Circuit::new(PAUSE), Instant::now());
        circuit.trip(start);
        let later = start + PAUSE;
        assert!(circuit.admit(later).is_some());
        assert!(circuit.admit(later).is_none());
        assert!(circuit.close());
        assert!(circuit.admit(later).is_some());
        assert!(!circuit.close(), "only the first answer is news");
    }

    #[test]
    fn one_who_tries_and_never_returns_is_replaced() {
        let (circuit, start) = (Circuit::new(PAUSE), Instant::now());
        circuit.trip(start);
        assert!(circuit.admit(start + PAUSE).is_some());
        assert!(circuit.admit(start + PAUSE + ALMOST).is_none());
        assert!(circuit.admit(start + PAUSE * 2).is_some());
    }

    #[test]
    fn one_who_waited_for_a_failure_is_told() {
        let (circuit, start) = (Circuit::new(PAUSE), Instant::now());
        let waiting = circuit.admit(start).unwrap();
        assert!(!circuit.overtaken(waiting));
        circuit.trip(start);
        assert!(circuit.overtaken(waiting));
        assert!(!circuit.overtaken(circuit.admit(start + PAUSE).unwrap()));
    }
}
