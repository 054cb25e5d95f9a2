//! When to look at a server's lists again.
//!
//! Pure: the time comes in as a value. Some servers announce a change for every tool they add. A burst
//! is answered once it has been quiet for a moment, and a burst without end every other second.

use std::time::{Duration, Instant};

/// How long it must be quiet.
const QUIET: Duration = Duration::from_millis(300);
/// How long a burst may put it off.
const MOST: Duration = Duration::from_secs(2);

/// A burst of changes.
#[derive(Debug, Default)]
pub(crate) struct Debounce {
    burst: Option<(Instant, Instant)>,
}

impl Debounce {
    /// Something changed.
    pub(crate) fn changed(&mut self, now: Instant) {
        self.burst = Some((self.burst.map_or(now, |(first, _)| first), now));
    }

    /// When to look, if at all.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.burst.map(|(first, last)| (last + QUIET).min(first + MOST))
    }

    /// It is being looked at; what changes from now on is another burst.
    pub(crate) fn looked(&mut self) {
        self.burst = None;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// How often a run of changes, one each millisecond, is looked at.
    fn looks(changes: u64) -> usize {
        let (start, mut debounce, mut looks) = (Instant::now(), Debounce::default(), 0);
        for at in 0..changes + 10_000 {
            let now = start + Duration::from_millis(at);
            if at < changes {
                debounce.changed(now);
            }
            if debounce.due().is_some_and(|due| now >= due) {
                debounce.looked();
                looks += 1;
            }
        }
        looks
    }

    #[test]
    fn a_burst_is_one_look_and_a_flood_one_every_other_second() {
        assert_eq!([looks(0), looks(1), looks(1_000)], [0, 1, 1]);
        assert_eq!(looks(10_000), 5);
    }

    proptest! {
        /// Every change is looked at within the bound, and looks lie apart.
        #[test]
        fn every_change_is_seen_soon_and_looks_are_few(gaps in prop::collection::vec(0_u64..700, 1..200)) {
            let start = Instant::now();
            let (mut debounce, mut now, mut unseen, mut looks) = (Debounce::default(), start, None, Vec::new());
            for gap in gaps {
                let next = now + Duration::from_millis(gap);
                while let Some(due) = debounce.due().filter(|due| *due <= next) {
                    debounce.looked();
                    prop_assert!(due <= unseen.take().unwrap_or(due) + MOST);
                    looks.push(due);
                }
                now = next;
                debounce.changed(now);
                unseen.get_or_insert(now);
            }
            prop_assert!(debounce.due().unwrap() <= unseen.unwrap() + MOST, "the last is not forgotten");
            prop_assert!(looks.windows(2).all(|pair| pair[1] - pair[0] >= QUIET));
        }
    }
}
