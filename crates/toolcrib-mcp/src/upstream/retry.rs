//! When to try a server again.
//!
//! Pure: the time and the luck come in as values. Waits double up to a minute, each a little earlier or
//! later than the next server's, so that a hundred of them do not come back at once. After five
//! failures in a row the server is taken for hopeless and gets one try a minute, no more. Only a
//! connection that held for a while counts as a success: a server that comes up and falls over every two
//! seconds is failing.

use std::time::Duration;

/// The first wait.
const FIRST: Duration = Duration::from_millis(500);
/// The longest wait, and the time between two tries of a hopeless server.
const LONGEST: Duration = Duration::from_mins(1);
/// Failures in a row that make a server hopeless.
const HOPELESS: u32 = 5;
/// How long a connection must hold to count.
const HELD: Duration = Duration::from_secs(30);

/// How often a server failed in a row.
#[derive(Debug, Default)]
pub(crate) struct Retry {
    failures: u32,
}

impl Retry {
    /// A connection ended after `held`, or never came about (zero). How long to wait now; `luck` is
    /// between 0 and 1.
    pub(crate) fn failed(&mut self, held: Duration, luck: f64) -> Duration {
        self.failures = if held >= HELD { 1 } else { self.failures.saturating_add(1) };
        let wait = if self.is_hopeless() { LONGEST } else { FIRST * 2_u32.pow(self.failures - 1) };
        wait.mul_f64(0.8 + 0.4 * luck.clamp(0.0, 1.0)).min(LONGEST.mul_f64(1.2))
    }

    /// Whether it gets one try a minute and no more.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.failures >= HOPELESS
    }
}

/// Luck for a wait: different for each server and each time, and needing no source of randomness.
pub(crate) fn luck(server: &str, restarts: u64) -> f64 {
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
    fn waits_double_and_then_it_is_hopeless() {
        let mut retry = Retry::default();
        let waits: Vec<_> = (0..7).map(|_| retry.failed(Duration::ZERO, 0.5).as_millis()).collect();
        assert_eq!(waits, [500, 1_000, 2_000, 4_000, 60_000, 60_000, 60_000]);
        assert!(retry.is_hopeless());
    }

    #[test]
    fn a_connection_that_held_is_a_new_beginning_and_one_that_did_not_is_not() {
        let mut retry = Retry::default();
        for _ in 0..3 {
            retry.failed(Duration::from_secs(2), 0.5);
        }
        assert_eq!(retry.failed(Duration::from_secs(2), 0.5).as_secs(), 4);
        assert_eq!(retry.failed(Duration::from_secs(31), 0.5).as_millis(), 500);
    }

    #[test]
    fn luck_moves_a_wait_by_a_fifth_at_most() {
        for (luck, wait) in [(0.0, 400), (1.0, 600), (7.0, 600)] {
            assert_eq!(Retry::default().failed(Duration::ZERO, luck).as_millis(), wait);
        }
        assert!((luck("a", 1) - luck("b", 1)).abs() > f64::EPSILON);
        assert!((0..1_000).map(|n| luck("a", n)).all(|luck| (0.0..1.0).contains(&luck)));
    }

    proptest! {
        /// Whatever happens, waits stay within their bounds, five failures in a row are the end of
        /// patience, and one connection that held is its beginning.
        #[test]
        fn waits_are_bounded_and_grow(tries in prop::collection::vec((0_u64..60, 0.0..=1.0_f64), 1..40)) {
            let mut retry = Retry::default();
            let mut in_a_row = 0;
            for (held, luck) in tries {
                let held = Duration::from_secs(held);
                in_a_row = if held >= HELD { 1 } else { in_a_row + 1 };
                let wait = retry.failed(held, luck);
                prop_assert!(wait >= FIRST.mul_f64(0.8) && wait <= LONGEST.mul_f64(1.2));
                prop_assert_eq!(retry.is_hopeless(), in_a_row >= HOPELESS);
                // The least of one step is more than the most of the step before.
                let mut before = Retry { failures: in_a_row.saturating_sub(2) };
                if (2..=HOPELESS).contains(&in_a_row) {
                    prop_assert!(wait >= before.failed(Duration::ZERO, 1.0));
                }
            }
        }
    }
}
