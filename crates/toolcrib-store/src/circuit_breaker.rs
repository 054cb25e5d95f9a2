//! A circuit breaker: after a failure Redis is not tried for a moment, so that requests do not queue up behind it.
//!
//! After a failure every request is denied until the pause is over. Then one request is admitted as a probe, and the
//! others are denied until the probe's result is known. The circuit breaker reads no clock: callers pass the time.

use parking_lot::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct CircuitBreaker {
    pause: Duration,
    state: Mutex<BreakerState>,
}

#[derive(Debug)]
struct BreakerState {
    /// When the next attempt is admitted; `None` if there was no failure since the last success.
    retry_at: Option<Instant>,
    /// Number of failures so far.
    failures: u64,
}

/// Permission for one attempt. It contains the number of failures at the time when it was given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptPermit(u64);

impl CircuitBreaker {
    pub(crate) fn new(pause: Duration) -> Self {
        Self { pause, state: Mutex::new(BreakerState { retry_at: None, failures: 0 }) }
    }

    /// Admits an attempt; `None` if Redis must not be tried now.
    pub(crate) fn admit(&self, now: Instant) -> Option<AttemptPermit> {
        let mut state = self.state();
        if let Some(retry_at) = state.retry_at {
            if now < retry_at {
                return None;
            }
            // The probe has the length of one pause to finish. If it never finishes, because its client disconnected,
            // the next request becomes the probe.
            state.retry_at = Some(now + self.pause);
        }
        Some(AttemptPermit(state.failures))
    }

    /// Whether an attempt has failed since this permit was given. If so, a request that waited while another request
    /// tried to connect must not try as well.
    pub(crate) fn has_failed_since(&self, permit: AttemptPermit) -> bool {
        self.state().failures != permit.0
    }

    /// Records a failure. Returns whether it is the first after a success.
    pub(crate) fn record_failure(&self, now: Instant) -> bool {
        let mut state = self.state();
        state.failures += 1;
        state.retry_at.replace(now + self.pause).is_none()
    }

    /// Records a success. Returns whether it is the first after a failure.
    pub(crate) fn record_success(&self) -> bool {
        self.state().retry_at.take().is_some()
    }

    fn state(&self) -> MutexGuard<'_, BreakerState> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(1);
    const ALMOST: Duration = Duration::from_millis(999);

    #[test]
    fn every_attempt_is_admitted_until_a_failure_and_none_during_the_pause() {
        let (breaker, start) = (CircuitBreaker::new(PAUSE), Instant::now());
        assert!(breaker.admit(start).is_some());
        assert!(breaker.admit(start).is_some());
        assert!(breaker.record_failure(start));
        assert!(!breaker.record_failure(start), "only the first failure is reported");
        assert!(breaker.admit(start + ALMOST).is_none());
        assert!(breaker.admit(start + PAUSE).is_some());
    }

    #[test]
    fn after_the_pause_one_probe_is_admitted_until_it_succeeds() {
        let (breaker, start) = (CircuitBreaker::new(PAUSE), Instant::now());
        breaker.record_failure(start);
        let later = start + PAUSE;
        assert!(breaker.admit(later).is_some());
        assert!(breaker.admit(later).is_none());
        assert!(breaker.record_success());
        assert!(breaker.admit(later).is_some());
        assert!(!breaker.record_success(), "only the first success is reported");
    }

    #[test]
    fn a_probe_that_never_finishes_is_replaced() {
        let (breaker, start) = (CircuitBreaker::new(PAUSE), Instant::now());
        breaker.record_failure(start);
        assert!(breaker.admit(start + PAUSE).is_some());
        assert!(breaker.admit(start + PAUSE + ALMOST).is_none());
        assert!(breaker.admit(start + PAUSE * 2).is_some());
    }

    #[test]
    fn a_permit_tells_whether_an_attempt_has_failed_since() {
        let (breaker, start) = (CircuitBreaker::new(PAUSE), Instant::now());
        let waiting = breaker.admit(start).unwrap();
        assert!(!breaker.has_failed_since(waiting));
        breaker.record_failure(start);
        assert!(breaker.has_failed_since(waiting));
        assert!(!breaker.has_failed_since(breaker.admit(start + PAUSE).unwrap()));
    }
}
