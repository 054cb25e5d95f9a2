//! Limits how long requests wait for the first answer of a server whose lists are not known.
//!
//! The first request that has to wait sets the deadline, and no later request waits beyond it. So a server that hangs
//! delays its clients once, and not on each of their requests. Rejected: limiting the wait of each session, because the
//! newer protocol has no sessions, so a client's first list request cannot be told from its second.

use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::Instant;

/// The deadlines of one server. Each deadline is set by the first request that waits.
#[derive(Debug, Default)]
pub(crate) struct FirstAnswerDeadlines {
    list: OnceLock<Instant>,
    search: OnceLock<Instant>,
}

impl FirstAnswerDeadlines {
    /// Returns when to answer a list request even if the server has not answered. If this is the first such request,
    /// the deadline is `wait` from now.
    pub(crate) fn list(&self, wait: Duration) -> Instant {
        deadline(&self.list, wait)
    }

    /// Returns when to answer a search even if the server has not answered. If this is the first such search, the
    /// deadline is `wait` from now. This is for a search that has hits, but no measure of their confidence.
    pub(crate) fn search(&self, wait: Duration) -> Instant {
        deadline(&self.search, wait)
    }
}

fn deadline(first: &OnceLock<Instant>, wait: Duration) -> Instant {
    let latest = Instant::now() + wait;
    (*first.get_or_init(|| latest)).min(latest)
}
