//! A limit on the log lines about one server.
//!
//! A server can cause the same warnings again and again, for example with lists that change every second or with lines
//! that are too long. So that it cannot fill the disk, there is a maximum number of log lines per minute. The next line
//! that is written reports how many were left out.

use parking_lot::Mutex;
use std::time::Duration;

use tokio::time::Instant;

/// Maximum number of log lines in one period.
const MAX_LINES: usize = 30;
const PERIOD: Duration = Duration::from_mins(1);

/// Limits the number of log lines in one period.
#[derive(Debug, Default)]
pub(crate) struct LogLimit(Mutex<LineCounts>);

#[derive(Debug, Default)]
struct LineCounts {
    since: Option<Instant>,
    lines: usize,
    left_out: usize,
}

impl LogLimit {
    /// Counts a line. Returns how many lines were left out before it, or `None` if this line must be left out too.
    pub(crate) fn admit(&self) -> Option<usize> {
        let mut counts = self.0.lock();
        let now = Instant::now();
        if counts.since.is_none_or(|since| now >= since + PERIOD) {
            (counts.since, counts.lines) = (Some(now), 0);
        }
        if counts.lines >= MAX_LINES {
            counts.left_out += 1;
            return None;
        }
        counts.lines += 1;
        Some(std::mem::take(&mut counts.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lines_beyond_the_maximum_are_dropped_and_counted() {
        let limit = LogLimit::default();
        let admitted = (0..MAX_LINES + 7).filter(|_| limit.admit() == Some(0)).count();
        assert_eq!(admitted, MAX_LINES);
        tokio::time::advance(PERIOD).await;
        assert_eq!([limit.admit(), limit.admit()], [Some(7), Some(0)]);
    }
}
