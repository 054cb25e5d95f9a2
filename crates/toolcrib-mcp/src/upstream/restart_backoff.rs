//! Decides how long to wait before a server is restarted.
//!
//! The code is pure: time and jitter are parameters. The delay doubles with each failure, with jitter so that many
//! servers do not restart at the same moment. After five failures in a row the delay is one minute. Only a connection
//! that lasted for a while counts as a success, because a server that starts and crashes every two seconds is failing.

use std::time::Duration;

/// The delay after the first failure.
const FIRST_DELAY: Duration = Duration::from_millis(500);
/// The delay after [`MAX_FAILURES`] failures in a row.
const MAX_DELAY: Duration = Duration::from_mins(1);
/// The number of failures in a row after which the delay is [`MAX_DELAY`].
const MAX_FAILURES: u32 = 5;
/// How long a connection must last to count as a success.
const SUCCESS: Duration = Duration::from_secs(30);

/// Counts how many times in a row a server has failed.
#[derive(Debug, Default)]
pub(crate) struct RestartBackoff {
    failures: u32,
}

impl RestartBackoff {
    /// Returns the delay before the next restart, after a connection that lasted `connected_for`, which is zero if
    /// connecting failed. `jitter` is between 0 and 1, and changes the delay by at most 20 %.
    pub(crate) fn next_delay(&mut self, connected_for: Duration, jitter: f64) -> Duration {
        self.failures = if connected_for >= SUCCESS { 1 } else { self.failures.saturating_add(1) };
        let delay = if self.has_reached_max() {
            MAX_DELAY
        } else {
            FIRST_DELAY * 2_u32.pow(self.failures - 1)
        };
        delay.mul_f64(0.8 + 0.4 * jitter.clamp(0.0, 1.0)).min(MAX_DELAY.mul_f64(1.2))
    }

    fn has_reached_max(&self) -> bool {
        self.failures >= MAX_FAILURES
    }
}

/// Returns a jitter between 0 and 1, different for each server and each restart. It is derived from a hash, so it needs
/// no source of randomness.
pub(crate) fn jitter(server: &str, restarts: u64) -> f64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(server.as_bytes());
    hasher.update(&restarts.to_le_bytes());
    hasher.update(&std::process::id().to_le_bytes());
    let bits = hasher.finalize();
    f64::from(u32::from_le_bytes([bits.as_bytes()[0], bits.as_bytes()[1], bits.as_bytes()[2], 0]))
        / f64::from(1 << 24)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn waits_double_and_then_it_has_reached_max() {
        let mut backoff = RestartBackoff::default();
        let delays: Vec<_> =
            (0..7).map(|_| backoff.next_delay(Duration::ZERO, 0.5).as_millis()).collect();
        assert_eq!(delays, [500, 1_000, 2_000, 4_000, 60_000, 60_000, 60_000]);
        assert!(backoff.has_reached_max());
    }

    #[test]
    fn only_a_connection_that_lasted_resets_the_delay() {
        let mut backoff = RestartBackoff::default();
        for _ in 0..3 {
            backoff.next_delay(Duration::from_secs(2), 0.5);
        }
        assert_eq!(backoff.next_delay(Duration::from_secs(2), 0.5).as_secs(), 4);
        assert_eq!(backoff.next_delay(Duration::from_secs(31), 0.5).as_millis(), 500);
    }

    #[test]
    fn jitter_changes_a_delay_by_a_fifth_at_most() {
        for (jitter, delay) in [(0.0, 400), (1.0, 600), (7.0, 600)] {
            assert_eq!(
                RestartBackoff::default().next_delay(Duration::ZERO, jitter).as_millis(),
                delay
            );
        }
        assert!((jitter("a", 1) - jitter("b", 1)).abs() > f64::EPSILON);
        assert!((0..1_000).map(|n| jitter("a", n)).all(|jitter| (0.0..1.0).contains(&jitter)));
    }

    proptest! {
        /// Delays stay within their bounds, five failures in a row reach the maximum, and a connection that lasted long
        /// enough resets the count.
        #[test]
        fn delays_are_bounded_and_grow(attempts in prop::collection::vec((0_u64..60, 0.0..=1.0_f64), 1..40)) {
            let mut backoff = RestartBackoff::default();
            let mut in_a_row = 0;
            for (connected_for, jitter) in attempts {
                let connected_for = Duration::from_secs(connected_for);
                in_a_row = if connected_for >= SUCCESS { 1 } else { in_a_row + 1 };
                let delay = backoff.next_delay(connected_for, jitter);
                prop_assert!(delay >= FIRST_DELAY.mul_f64(0.8) && delay <= MAX_DELAY.mul_f64(1.2));
                prop_assert_eq!(backoff.has_reached_max(), in_a_row >= MAX_FAILURES);
                // Even the shortest delay after a failure is at least as long as the longest delay after the previous
                // failure.
                let mut before = RestartBackoff { failures: in_a_row.saturating_sub(2) };
                if (2..=MAX_FAILURES).contains(&in_a_row) {
                    prop_assert!(delay >= before.next_delay(Duration::ZERO, 1.0));
                }
            }
        }
    }
}
