//! Stores records in the memory of this process. Their total size is limited, and they expire when they are not read.

use std::time::Duration;

use bytes::Bytes;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::{Key, Store, StoreError, record_limits};

/// Memory that one record takes in addition to its bytes: its key, the links in the lists that order records by use
/// and by time, its entry in the table, and what the allocator rounds up. Measured as growth of the process over
/// 300,000 records: 390 to 550 bytes.
const OVERHEAD: usize = 512;

/// How many bytes of records are kept, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Maximum size of all records together, in bytes, including the overhead of each. Default: 64 MiB.
    pub total_bytes: usize,
    /// Maximum size of one record, in bytes. A larger one is not stored. Default: 4 MiB.
    pub record_bytes: usize,
    /// Time after which a record that is not read expires. Default: 24 hours.
    pub idle_expiry: Duration,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self {
            total_bytes: 64 << 20,
            record_bytes: record_limits::DEFAULT_MAX_BYTES,
            idle_expiry: record_limits::DEFAULT_IDLE_EXPIRY,
        }
    }
}

/// Records in memory. Clones share the same records.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    cache: Cache<Key, Bytes>,
    max_record_bytes: usize,
}

impl MemoryStore {
    /// Creates an empty store with these limits.
    pub fn new(limits: MemoryLimits) -> Self {
        let cache = Cache::builder()
            .max_capacity(limits.total_bytes as u64)
            .weigher(|_, value: &Bytes| u32::try_from(value.len() + OVERHEAD).unwrap_or(u32::MAX))
            // Rejected: moka's default policy, which in a full cache keeps records that were read often and drops
            // new ones. The record of the latest turn is the one most likely to be read.
            .eviction_policy(EvictionPolicy::lru())
            .time_to_idle(record_limits::clamp_expiry(limits.idle_expiry))
            .build();
        let max_record_bytes = limits.record_bytes.min(limits.total_bytes.saturating_sub(OVERHEAD));
        Self { cache, max_record_bytes }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new(MemoryLimits::default())
    }
}

impl Store for MemoryStore {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Bytes>>, StoreError> {
        Ok(keys.iter().map(|key| self.cache.get(key)).collect())
    }

    async fn put(&self, records: Vec<(Key, Bytes)>) -> Result<usize, StoreError> {
        let (records, oversized) = record_limits::without_oversized(self.max_record_bytes, records);
        for (key, value) in records {
            // The bytes are copied, because they may be a slice of a complete body, all of which would otherwise stay
            // in memory.
            self.cache.insert(key, Bytes::copy_from_slice(&value));
        }
        // The cache evicts lazily, but the limit must hold at once.
        self.cache.run_pending_tasks();
        Ok(oversized)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn key(number: u32) -> Key {
        let mut hash = [0; 32];
        hash[..4].copy_from_slice(&number.to_be_bytes());
        Key::new(hash)
    }

    fn value(size: usize) -> Bytes {
        Bytes::from(vec![7; size])
    }

    #[tokio::test]
    async fn the_limit_holds_after_each_of_ten_thousand_puts_and_the_newest_records_stay() {
        let total_bytes = 1 << 20;
        let memory = MemoryStore::new(MemoryLimits { total_bytes, ..MemoryLimits::default() });
        for number in 0..10_000 {
            memory.put(vec![(key(number), value(10_000))]).await.unwrap();
            // The sum is computed here, because the cache's own sum lags behind.
            let held: usize = memory.cache.iter().map(|(_, value)| value.len() + OVERHEAD).sum();
            assert!(held <= total_bytes, "{held} after {number}");
        }
        let room = total_bytes / (10_000 + OVERHEAD);
        assert_eq!(memory.cache.iter().count(), room);
        let newest: Vec<_> = (10_000 - room as u32..10_000).map(key).collect();
        assert_eq!(memory.get(&newest).await.unwrap(), vec![Some(value(10_000)); room]);
    }

    #[tokio::test]
    async fn a_record_is_stored_up_to_the_limit() {
        let limit = MemoryLimits::default().record_bytes;
        let memory = MemoryStore::default();
        let records =
            vec![(key(1), value(limit - 1)), (key(2), value(limit)), (key(3), value(limit + 1))];
        assert_eq!(memory.put(records).await, Ok(1));
        let found = memory.get(&[key(1), key(2), key(3)]).await.unwrap();
        let sizes: Vec<_> = found.iter().map(|found| found.as_ref().map(Bytes::len)).collect();
        assert_eq!(sizes, [Some(limit - 1), Some(limit), None]);
    }

    #[tokio::test]
    async fn a_record_larger_than_the_total_is_reported_as_not_stored() {
        let memory = MemoryStore::new(MemoryLimits {
            total_bytes: 1000 + OVERHEAD,
            ..MemoryLimits::default()
        });
        for (size, oversized) in [(999, 0), (1000, 0), (1001, 1)] {
            let key = key(size as u32);
            assert_eq!(memory.put(vec![(key, value(size))]).await, Ok(oversized));
            assert_eq!(memory.get(&[key]).await.unwrap()[0].is_some(), oversized == 0, "{size}");
        }
    }

    #[tokio::test]
    async fn storing_a_slice_does_not_keep_its_body_in_memory() {
        let memory = MemoryStore::default();
        let body = value(1 << 20);
        memory.put(vec![(key(1), body.slice(..10))]).await.unwrap();
        assert!(body.is_unique());
    }

    #[tokio::test]
    async fn a_record_that_is_read_expires_later_than_one_that_is_not() {
        let idle_expiry = Duration::from_secs(1);
        // If the machine stalls between two reads, the record that is being read may expire, too. Such a run proves
        // nothing and is repeated.
        for _ in 0..100 {
            let memory = MemoryStore::new(MemoryLimits { idle_expiry, ..MemoryLimits::default() });
            memory.put(vec![(key(1), value(1)), (key(2), value(2))]).await.unwrap();
            let (mut read, mut longest) = (Instant::now(), Duration::ZERO);
            // `contains_key` does not count as a read.
            while memory.cache.contains_key(&key(2)) {
                let _ = memory.get(&[key(1)]).await;
                longest = longest.max(read.elapsed());
                read = Instant::now();
                std::thread::sleep(Duration::from_millis(10));
            }
            let found = memory.get(&[key(1), key(2)]).await;
            if longest.max(read.elapsed()) < idle_expiry / 2 {
                return assert_eq!(found, Ok(vec![Some(value(1)), None]));
            }
        }
        panic!("this machine stalls all the time");
    }
}
