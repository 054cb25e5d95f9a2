//! A limit on the memory of all requests together, and each request's share of it.
//!
//! Limits on single requests do not limit their sum. The bytes of a share count until the share is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A limit on memory, in bytes. Clones share it.
#[derive(Debug, Clone)]
pub struct MemoryBudget(Arc<UsedMemory>);

#[derive(Debug)]
struct UsedMemory {
    limit: usize,
    used: AtomicUsize,
}

impl MemoryBudget {
    /// Creates a budget of `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(UsedMemory { limit, used: AtomicUsize::new(0) }))
    }

    /// Returns the limit, in bytes.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// Creates a share of 0 bytes.
    pub fn share(&self) -> MemoryShare {
        MemoryShare { total: Arc::clone(&self.0), bytes: 0 }
    }
}

/// The bytes that one request takes. Dropping the share releases them.
#[derive(Debug)]
pub struct MemoryShare {
    total: Arc<UsedMemory>,
    bytes: usize,
}

impl MemoryShare {
    /// Returns the size of this share, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes `bytes` more bytes from the budget and returns `true`. If fewer bytes are left, takes nothing and returns
    /// `false`.
    pub fn grow(&mut self, bytes: usize) -> bool {
        self.take(bytes, |left| left >= bytes)
    }

    /// Changes the size to `bytes`. If growing would leave fewer than `bytes` free in the budget, keeps the old size
    /// and returns `false`. This way, a few large shares never use up the budget, and small shares can still grow.
    pub fn resize_fairly(&mut self, bytes: usize) -> bool {
        if bytes > self.bytes {
            let more = bytes - self.bytes;
            return self
                .take(more, |left| left.checked_sub(more).is_some_and(|left| left >= bytes));
        }
        self.total.used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        self.bytes = bytes;
        true
    }

    /// Returns all bytes of this share to the budget.
    pub fn release(&mut self) {
        self.total.used.fetch_sub(std::mem::take(&mut self.bytes), Ordering::Relaxed);
    }

    fn take(&mut self, bytes: usize, may: impl Fn(usize) -> bool) -> bool {
        let UsedMemory { limit, used } = &*self.total;
        let taken = |used: usize| may(limit.saturating_sub(used)).then(|| used + bytes);
        let is_taken = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).is_ok();
        self.bytes += if is_taken { bytes } else { 0 };
        is_taken
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_share_leaves_room_for_small_ones() {
        let total = MemoryBudget::new(100);
        let (mut large, mut small) = (total.share(), total.share());
        assert!(large.resize_fairly(50));
        assert!(!large.resize_fairly(51), "less than its own size would be left");
        assert_eq!(large.bytes(), 50);
        assert!(small.resize_fairly(25) && !small.resize_fairly(26));
        assert!(large.resize_fairly(10), "a share may always shrink");
        assert!(small.resize_fairly(45));
        drop((large, small));
        assert!(total.share().grow(100), "all bytes were released");
    }

    #[test]
    fn growing_shares_can_use_the_complete_budget_and_no_more() {
        let total = MemoryBudget::new(100);
        let (mut one, mut two) = (total.share(), total.share());
        assert!(one.grow(60) && two.grow(40) && !two.grow(1) && !two.grow(usize::MAX));
        one.release();
        assert!(two.grow(60) && !one.grow(1));
    }
}
