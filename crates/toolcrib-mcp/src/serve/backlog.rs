//! The memory that one stdio client takes up. It consists of the client's requests in flight and the messages that the
//! client has not read.
//!
//! A client that sends requests and does not read the answers would otherwise fill up the memory. For a request in
//! flight a fixed amount is reserved, because the size of its answer is not known. For a message that waits to be
//! written, its size is reserved. While the total is used up, no other request begins, except for a limited number of
//! pings. Messages are always accepted, so the messages of requests that have already begun may exceed the total.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Maximum memory of one client's backlog, in bytes.
const MAX_BYTES: usize = 64 << 20;
/// Maximum number of one client's requests in flight.
const MAX_REQUESTS: usize = 256;
/// Additional memory for pings and their answers when the total is used up, in bytes.
const EXTRA_PING_BYTES: usize = 4 << 20;
/// Memory that is reserved for a ping in flight, in bytes. A larger ping is treated like any other request.
pub(super) const PING_BYTES: usize = 16 << 10;
/// Memory that a message takes in addition to its text, in bytes.
const MESSAGE_BYTES: usize = 1 << 10;

/// The backlog of one client. Clones share the same backlog.
#[derive(Debug, Clone, Default)]
pub(super) struct Backlog(Arc<BacklogState>);

#[derive(Debug, Default)]
struct BacklogState {
    used: AtomicUsize,
    released: Notify,
}

/// Memory that is reserved in the backlog. It is released when the last clone is dropped.
#[derive(Debug, Clone)]
pub(super) struct BacklogShare {
    _reserved: Arc<ReservedBytes>,
}

#[derive(Debug)]
struct ReservedBytes {
    state: Arc<BacklogState>,
    bytes: usize,
}

impl Backlog {
    /// Reserves memory for a request in flight.
    pub(super) fn request_share(&self) -> BacklogShare {
        self.take(MAX_BYTES / MAX_REQUESTS)
    }

    /// Reserves memory for a small ping in flight.
    pub(super) fn ping_share(&self) -> BacklogShare {
        self.take(PING_BYTES)
    }

    /// Reserves memory for a message that waits to be written.
    pub(super) fn message_share(&self, text: &str) -> BacklogShare {
        self.take(MESSAGE_BYTES + text.len())
    }

    fn take(&self, bytes: usize) -> BacklogShare {
        self.0.used.fetch_add(bytes, Ordering::AcqRel);
        BacklogShare { _reserved: Arc::new(ReservedBytes { state: Arc::clone(&self.0), bytes }) }
    }

    /// Whether another request may begin.
    pub(super) fn has_room(&self) -> bool {
        self.0.used.load(Ordering::Acquire) < MAX_BYTES
    }

    /// Whether a ping may begin. Pings have additional memory, so one may begin even if no other request may.
    pub(super) fn has_room_for_ping(&self) -> bool {
        self.0.used.load(Ordering::Acquire) < MAX_BYTES + EXTRA_PING_BYTES
    }

    /// Waits until another request may begin. Only one task may wait at a time.
    pub(super) async fn wait_for_room(&self) {
        while !self.has_room() {
            // No release is missed, because `Notify` remembers a release that happened before this line.
            self.0.released.notified().await;
        }
    }
}

impl Drop for ReservedBytes {
    fn drop(&mut self) {
        self.state.used.fetch_sub(self.bytes, Ordering::AcqRel);
        self.state.released.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn requests_and_unread_messages_share_one_limit() {
        let backlog = Backlog::default();
        let mut requests: Vec<BacklogShare> =
            (0..MAX_REQUESTS).map(|_| backlog.request_share()).collect();
        assert!(!backlog.has_room() && backlog.wait_for_room().now_or_never().is_none());
        requests.pop();
        assert!(backlog.wait_for_room().now_or_never().is_some());
        let unread = backlog.message_share(&"x".repeat(MAX_BYTES));
        requests.clear();
        assert!(!backlog.has_room(), "the message alone takes more than all of it");
        let clone = unread.clone();
        drop(unread);
        assert!(!backlog.has_room(), "it is still held");
        drop(clone);
        assert!(backlog.wait_for_room().now_or_never().is_some());
    }
}
