//! Limits how often the lists of one server are written to the state folder.
//!
//! The lists are written before clients see them, unless they change too fast. After each write there is a pause in
//! proportion to its size. Changes during the pause are written after it, or when the gateway stops. Without the pause,
//! a server whose large lists change all the time would cause megabytes of writes each second.

use parking_lot::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

/// Maximum average write rate, in bytes per second. Ordinary lists have a few kilobytes.
const BYTES_PER_SECOND: usize = 256 << 10;

/// Decides whether and when the lists are written.
#[derive(Debug, Default)]
pub(crate) struct WriteThrottle(Mutex<WriteState>);

#[derive(Debug, Default)]
struct WriteState {
    unsaved: bool,
    /// When the pause after the last write ends, or `None` before the first write.
    next: Option<Instant>,
}

impl WriteThrottle {
    fn lock(&self) -> MutexGuard<'_, WriteState> {
        self.0.lock()
    }

    /// Records that the lists changed.
    pub(crate) fn mark_changed(&self) {
        self.lock().unsaved = true;
    }

    /// Returns when the next write is due, or `None` if there is nothing to write.
    pub(crate) fn next_write(&self) -> Option<Instant> {
        let state = self.lock();
        state.unsaved.then(|| state.next.unwrap_or_else(Instant::now))
    }

    /// Whether the lists must be written now. If so, they count as written, and the caller must write them.
    pub(crate) fn begin_write(&self) -> bool {
        let mut state = self.lock();
        let begins = state.unsaved && state.next.is_none_or(|next| Instant::now() >= next);
        if begins {
            state.unsaved = false;
        }
        begins
    }

    /// Records a write of this many bytes, and starts the pause after it.
    pub(crate) fn record_write(&self, bytes: usize) {
        let pause = Duration::from_secs(1).mul_f64(bytes as f64 / BYTES_PER_SECOND as f64);
        self.lock().next = Some(Instant::now() + pause);
    }

    /// Like [`Self::begin_write`], but ignores the pause, because the gateway is stopping.
    pub(crate) fn begin_final_write(&self) -> bool {
        std::mem::take(&mut self.lock().unsaved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_write_is_immediate_and_later_ones_wait_for_the_pause() {
        let throttle = WriteThrottle::default();
        assert_eq!(
            (throttle.next_write(), throttle.begin_write(), throttle.begin_final_write()),
            (None, false, false)
        );
        throttle.mark_changed();
        assert!(
            throttle.next_write().is_some() && throttle.begin_write() && !throttle.begin_write()
        );
        throttle.record_write(60 * BYTES_PER_SECOND);
        throttle.mark_changed();
        assert_eq!(throttle.next_write(), Some(Instant::now() + Duration::from_mins(1)));
        assert!(!throttle.begin_write());
        tokio::time::advance(Duration::from_mins(1)).await;
        assert!(throttle.begin_write());
        throttle.record_write(0);
        throttle.mark_changed();
        assert!(throttle.begin_write(), "a small list is written at once");
        throttle.record_write(BYTES_PER_SECOND);
        throttle.mark_changed();
        assert!(
            !throttle.begin_write()
                && throttle.begin_final_write()
                && !throttle.begin_final_write()
        );
    }
}
