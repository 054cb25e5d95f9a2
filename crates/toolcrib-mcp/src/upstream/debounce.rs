//! Decides when to fetch a server's lists again after they changed.
//!
//! The code is pure: the current time is a parameter. Some servers announce a change for every tool they add. The lists
//! are fetched when no change was announced for a moment, and every two seconds during a burst that does not end.

use std::time::{Duration, Instant};

/// How long no change must be announced before the lists are fetched.
const QUIET: Duration = Duration::from_millis(300);
/// Maximum time that a burst of changes may delay the refresh.
const MAX_DELAY: Duration = Duration::from_secs(2);

/// Combines a burst of changes into one refresh.
#[derive(Debug, Default)]
pub(crate) struct Debounce {
    /// The times of the first and the last change of the current burst.
    burst: Option<(Instant, Instant)>,
}

impl Debounce {
    /// Records a change.
    pub(crate) fn changed(&mut self, now: Instant) {
        self.burst = Some((self.burst.map_or(now, |(first, _)| first), now));
    }

    /// Returns when to refresh the lists, or `None` if nothing has changed.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.burst.map(|(first, last)| (last + QUIET).min(first + MAX_DELAY))
    }

    /// Records that a refresh begins. A later change starts another burst.
    pub(crate) fn refreshed(&mut self) {
        self.burst = None;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the number of refreshes that are caused by this many changes, one in each millisecond.
    fn refreshes(changes: u64) -> usize {
        let (start, mut debounce, mut refreshes) = (Instant::now(), Debounce::default(), 0);
        for at in 0..changes + 10_000 {
            let now = start + Duration::from_millis(at);
            if at < changes {
                debounce.changed(now);
            }
            if debounce.due().is_some_and(|due| now >= due) {
                debounce.refreshed();
                refreshes += 1;
            }
        }
        refreshes
    }

    #[test]
    fn a_burst_causes_one_refresh_and_an_endless_one_a_refresh_every_two_seconds() {
        assert_eq!([refreshes(0), refreshes(1), refreshes(1_000)], [0, 1, 1]);
        assert_eq!(refreshes(10_000), 5);
    }

    proptest! {
        /// Every change is followed by a refresh within the maximum delay, and refreshes are at least [`QUIET`] apart.
        #[test]
        fn every_change_is_refreshed_soon_and_refreshes_are_few(gaps in prop::collection::vec(0_u64..700, 1..200)) {
            let start = Instant::now();
            let (mut debounce, mut now, mut pending, mut refreshes) = (Debounce::default(), start, None, Vec::new());
            for gap in gaps {
                let next = now + Duration::from_millis(gap);
                while let Some(due) = debounce.due().filter(|due| *due <= next) {
                    debounce.refreshed();
                    prop_assert!(due <= pending.take().unwrap_or(due) + MAX_DELAY);
                    refreshes.push(due);
                }
                now = next;
                debounce.changed(now);
                pending.get_or_insert(now);
            }
            prop_assert!(debounce.due().unwrap() <= pending.unwrap() + MAX_DELAY, "the last change is not forgotten");
            prop_assert!(refreshes.windows(2).all(|pair| pair[1] - pair[0] >= QUIET));
        }
    }
}
