//! Ids that look like real ones, are unique within a conversation, and are the same on every run.
//!
//! An id depends on the request and on the number of earlier requests in this process. A counter alone would produce
//! the same ids again if the provider restarts during a conversation. The request alone would give two identical
//! conversations the same ids, which no real provider does.

use std::sync::atomic::{AtomicU64, Ordering};

/// Generates the ids of one response.
pub(crate) struct Ids {
    seed: blake3::Hash,
    next: u32,
}

impl Ids {
    pub(crate) fn new(body: &[u8], counter: &AtomicU64) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&counter.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        hasher.update(body);
        Self { seed: hasher.finalize(), next: 0 }
    }

    pub(crate) fn make(&mut self, prefix: &str) -> String {
        self.next += 1;
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.seed.as_bytes());
        hasher.update(&self.next.to_le_bytes());
        format!("{prefix}{}", &hasher.finalize().to_hex()[..24])
    }
}
