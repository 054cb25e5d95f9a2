//! State in this process: bounded in bytes, forgotten when idle.

use std::time::Duration;

use bytes::Bytes;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::{Key, Lost, Store, record};

/// What one record costs beside its bytes: its key, the links of the orders by use and by time, its place
/// in the table, and what the allocator rounds up. Measured as growth of the process over 300,000 records:
/// 390 to 550 bytes.
const OVERHEAD: usize = 512;

/// How much is kept, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// All records together, in bytes, with what it takes to keep them. 64 MiB unless told otherwise.
    pub total: usize,
    /// One record, in bytes; a larger one is not kept. 4 MiB unless told otherwise.
    pub record: usize,
    /// How long a record stays that nobody reads. 24 hours unless told otherwise.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { total: 64 << 20, record: record::LARGEST, idle: record::IDLE }
    }
}

/// Records in memory. Clones share them.
#[derive(Debug, Clone)]
pub struct Memory {
    cache: Cache<Key, Bytes>,
    largest: usize,
}

impl Memory {
    /// An empty memory with these limits.
    pub fn new(limits: Limits) -> Self {
        let cache = Cache::builder()
            .max_capacity(limits.total as u64)
            .weigher(|_, value: &Bytes| u32::try_from(value.len() + OVERHEAD).unwrap_or(u32::MAX))
            // Not the default, which in a full cache prefers what was read often to what is new: here
            // the newest turn is the one most likely to be asked for.
            .eviction_policy(EvictionPolicy::lru())
            .time_to_idle(record::expiry(limits.idle))
            .build();
        Self { cache, largest: limits.record.min(limits.total.saturating_sub(OVERHEAD)) }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Store for Memory {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Bytes>>, Lost> {
        Ok(keys.iter().map(|key| self.cache.get(key)).collect())
    }

    async fn put(&self, records: Vec<(Key, Bytes)>) -> Result<usize, Lost> {
        let (kept, refused) = record::within(self.largest, records);
        for (key, value) in kept {
            // A copy: the bytes may be a slice of a whole body, which would stay as long as they do.
            self.cache.insert(key, Bytes::copy_from_slice(&value));
        }
        // The cache evicts when it gets round to it; the bound is meant to hold now.
        self.cache.run_pending_tasks();
        Ok(refused)
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
    async fn the_bound_holds_after_each_of_ten_thousand_puts_and_the_newest_stay() {
        let total = 1 << 20;
        let memory = Memory::new(Limits { total, ..Limits::default() });
        for number in 0..10_000 {
            memory.put(vec![(key(number), value(10_000))]).await.unwrap();
            // Counted here, as the cache's own sum knows only what it has got round to.
            let held: usize = memory.cache.iter().map(|(_, value)| value.len() + OVERHEAD).sum();
            assert!(held <= total, "{held} after {number}");
        }
        let room = total / (10_000 + OVERHEAD);
        assert_eq!(memory.cache.iter().count(), room);
        let newest: Vec<_> = (10_000 - room as u32..10_000).map(key).collect();
        assert_eq!(memory.get(&newest).await.unwrap(), vec![Some(value(10_000)); room]);
    }

    #[tokio::test]
    async fn a_record_is_kept_up_to_the_limit() {
        let limit = Limits::default().record;
        let memory = Memory::default();
        let records =
            vec![(key(1), value(limit - 1)), (key(2), value(limit)), (key(3), value(limit + 1))];
        assert_eq!(memory.put(records).await, Ok(1));
        let found = memory.get(&[key(1), key(2), key(3)]).await.unwrap();
        let sizes: Vec<_> = found.iter().map(|found| found.as_ref().map(Bytes::len)).collect();
        assert_eq!(sizes, [Some(limit - 1), Some(limit), None]);
    }

    #[tokio::test]
    async fn a_record_that_never_fits_is_refused_rather_than_dropped_in_silence() {
        let memory = Memory::new(Limits { total: 1000 + OVERHEAD, ..Limits::default() });
        for (size, refused) in [(999, 0), (1000, 0), (1001, 1)] {
            let key = key(size as u32);
            assert_eq!(memory.put(vec![(key, value(size))]).await, Ok(refused));
            assert_eq!(memory.get(&[key]).await.unwrap()[0].is_some(), refused == 0, "{size}");
        }
    }

    #[tokio::test]
    async fn a_slice_does_not_keep_the_body_it_was_cut_from() {
        let memory = Memory::default();
        let body = value(1 << 20);
        memory.put(vec![(key(1), body.slice(..10))]).await.unwrap();
        assert!(body.is_unique());
    }

    #[tokio::test]
    async fn a_record_that_is_read_outlives_one_that_is_not() {
        let idle = Duration::from_secs(1);
        // On a machine that stalls between two readings, the record read may rightly be gone, too: then
        // nothing was seen, and it is tried again.
        for _ in 0..100 {
            let memory = Memory::new(Limits { idle, ..Limits::default() });
            memory.put(vec![(key(1), value(1)), (key(2), value(2))]).await.unwrap();
            let (mut read, mut longest) = (Instant::now(), Duration::ZERO);
            // To look whether a record is there is not to read it.
            while memory.cache.contains_key(&key(2)) {
                let _ = memory.get(&[key(1)]).await;
                longest = longest.max(read.elapsed());
                read = Instant::now();
                std::thread::sleep(Duration::from_millis(10));
            }
            let found = memory.get(&[key(1), key(2)]).await;
            if longest.max(read.elapsed()) < idle / 2 {
                return assert_eq!(found, Ok(vec![Some(value(1)), None]));
            }
        }
        panic!("this machine stalls all the time");
    }
}
