//! Rate-limited logging for events that anyone can cause as often as they like. At most one line a minute is logged,
//! with the number of events since the previous line.

use parking_lot::Mutex;
use std::time::Duration;

use tokio::time::Instant;

/// Minimum time between two log lines.
const PERIOD: Duration = Duration::from_mins(1);

/// Counts events between two log lines.
#[derive(Debug, Default)]
pub(crate) struct RateLimitedLog {
    state: Mutex<LogState>,
}

#[derive(Debug, Default)]
struct LogState {
    last: Option<Instant>,
    unreported: u64,
}

impl RateLimitedLog {
    /// Counts an event. If a log line is due, returns the number of events to report in it.
    pub(crate) fn count(&self) -> Option<u64> {
        let mut state = self.state.lock();
        state.unreported += 1;
        let now = Instant::now();
        if state.last.is_some_and(|last| now < last + PERIOD) {
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.unreported))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_line_a_minute_reports_all_events() {
        let log = RateLimitedLog::default();
        assert_eq!(log.count(), Some(1));
        for _ in 0..41 {
            assert_eq!(log.count(), None);
        }
        tokio::time::advance(PERIOD).await;
        assert_eq!(log.count(), Some(42));
    }
}
