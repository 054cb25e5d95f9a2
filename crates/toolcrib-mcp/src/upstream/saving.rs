//! When the lists of one server are written to the state folder.
//!
//! They are written before clients see them, unless writes come too fast: after each write there is a pause in
//! proportion to its size, and changes made meanwhile are written after it, or when the gateway ends. A server whose
//! large lists change all the time would otherwise cause megabytes of writes each second.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Maximum average write rate, in bytes a second. Ordinary lists have a few kilobytes.
const RATE: usize = 256 << 10;

/// Whether there is something to write, and when.
#[derive(Debug, Default)]
pub(crate) struct Saving(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    unsaved: bool,
    /// When the pause after the last write ends; `None` before the first.
    next: Option<Instant>,
}

impl Saving {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the lists changed.
    pub(crate) fn changed(&self) {
        self.lock().unsaved = true;
    }

    /// When the next write is due; `None` if there is nothing to write.
    pub(crate) fn due(&self) -> Option<Instant> {
        let state = self.lock();
        state.unsaved.then(|| state.next.unwrap_or_else(Instant::now))
    }

    /// Whether the lists must be written now. If so, the caller writes them.
    pub(crate) fn begin(&self) -> bool {
        let mut state = self.lock();
        let begins = state.unsaved && state.next.is_none_or(|next| Instant::now() >= next);
        if begins {
            state.unsaved = false;
        }
        begins
    }

    /// Records a write of this many bytes, and starts the pause after it.
    pub(crate) fn wrote(&self, bytes: usize) {
        let pause = Duration::from_secs(1).mul_f64(bytes as f64 / RATE as f64);
        self.lock().next = Some(Instant::now() + pause);
    }

    /// The same when the gateway ends, even during the pause.
    pub(crate) fn begin_last(&self) -> bool {
        std::mem::take(&mut self.lock().unsaved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn at_once_then_after_a_pause_and_at_the_end() {
        let saving = Saving::default();
        assert_eq!((saving.due(), saving.begin(), saving.begin_last()), (None, false, false));
        saving.changed();
        assert!(saving.due().is_some() && saving.begin() && !saving.begin());
        saving.wrote(60 * RATE);
        saving.changed();
        assert_eq!(saving.due(), Some(Instant::now() + Duration::from_mins(1)));
        assert!(!saving.begin());
        tokio::time::advance(Duration::from_mins(1)).await;
        assert!(saving.begin());
        saving.wrote(0);
        saving.changed();
        assert!(saving.begin(), "a small list is written at once");
        saving.wrote(RATE);
        saving.changed();
        assert!(!saving.begin() && saving.begin_last() && !saving.begin_last());
    }
}
