//! When the lists of one server are written to the state folder.
//!
//! At once the first time, then at most once a minute, and when the gateway ends. A server whose lists change all the
//! time would otherwise cause megabytes of writes each second.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Minimum time between two writes.
const PERIOD: Duration = Duration::from_mins(1);

/// Whether there is something to write, and when.
#[derive(Debug, Default)]
pub(crate) struct Saving(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    unsaved: bool,
    /// When the next write may be; `None` before the first.
    next: Option<Instant>,
}

impl Saving {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lists changed.
    pub(crate) fn changed(&self) {
        self.lock().unsaved = true;
    }

    /// When the next write is due; `None` if there is nothing to write.
    pub(crate) fn due(&self) -> Option<Instant> {
        let state = self.lock();
        state.unsaved.then(|| state.next.unwrap_or_else(Instant::now))
    }

    /// Whether the lists are to be written now. The caller writes them.
    pub(crate) fn begin(&self) -> bool {
        let mut state = self.lock();
        let now = Instant::now();
        let begins = state.unsaved && state.next.is_none_or(|next| now >= next);
        if begins {
            *state = State { unsaved: false, next: Some(now + PERIOD) };
        }
        begins
    }

    /// The same when the gateway ends, however long ago the last write was.
    pub(crate) fn begin_last(&self) -> bool {
        std::mem::take(&mut self.lock().unsaved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn at_once_then_once_a_minute_and_at_the_end() {
        let saving = Saving::default();
        assert_eq!((saving.due(), saving.begin(), saving.begin_last()), (None, false, false));
        saving.changed();
        assert!(saving.due().is_some() && saving.begin() && !saving.begin());
        saving.changed();
        assert_eq!(saving.due(), Some(Instant::now() + PERIOD));
        assert!(!saving.begin());
        tokio::time::advance(PERIOD).await;
        assert!(saving.begin());
        saving.changed();
        assert!(!saving.begin() && saving.begin_last() && !saving.begin_last());
    }
}
