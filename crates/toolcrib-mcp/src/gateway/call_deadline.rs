//! The deadline of a call. It is one timeout after the start of the call. Progress extends it, and it is paused while a
//! person answers a question.

use std::time::Duration;

use tokio::time::Instant;

/// Maximum total time of a call that reports progress, as a multiple of its timeout.
const MAX_TIMEOUT_FACTOR: u32 = 30;
/// How long a person may take to answer a question.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_mins(10);

#[derive(Debug)]
pub(super) struct CallDeadline {
    timeout: Duration,
    deadline: Instant,
    /// The latest time to which progress can extend the deadline.
    latest: Instant,
    /// When the current pause began, which is when a question was asked while no other question was open.
    asked_at: Instant,
}

impl CallDeadline {
    pub(super) fn new(timeout: Duration) -> Self {
        let now = Instant::now();
        Self {
            timeout,
            deadline: now + timeout,
            latest: now + timeout * MAX_TIMEOUT_FACTOR,
            asked_at: now,
        }
    }

    /// Completes when the deadline has passed.
    pub(super) async fn passed(&self) {
        tokio::time::sleep_until(self.deadline).await;
    }

    /// Extends the deadline, because progress shows that the server is still working.
    pub(super) fn extend_for_progress(&mut self) {
        self.deadline = self.deadline.max(Instant::now() + self.timeout).min(self.latest);
    }

    /// Pauses the timeout while a person answers a question. `is_first` means that no other question is open.
    pub(super) fn pause_for_question(&mut self, is_first: bool) {
        if is_first {
            self.asked_at = Instant::now();
        }
        self.deadline = Instant::now() + ANSWER_TIMEOUT;
    }

    /// Resumes the timeout after all questions were answered. The time that the answers took does not count towards the
    /// maximum total time.
    pub(super) fn resume(&mut self) {
        self.latest += self.asked_at.elapsed();
        self.restart();
    }

    /// Sets the deadline to one full timeout from now.
    pub(super) fn restart(&mut self) {
        self.deadline = Instant::now() + self.timeout;
    }
}
