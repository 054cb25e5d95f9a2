//! The store that the config chooses.

use bytes::Bytes;

use crate::{Key, MemoryStore, RedisStore, Store, StoreError};

/// The configured store. Clones share the same records.
#[derive(Debug, Clone)]
pub enum ConfiguredStore {
    /// Records in memory. They are shared by the requests of this process, and lost when the process ends.
    Memory(MemoryStore),
    /// Records in Redis. They are shared by all replicas, and kept across restarts.
    Redis(RedisStore),
}

impl Store for ConfiguredStore {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Bytes>>, StoreError> {
        match self {
            Self::Memory(memory) => memory.get(keys).await,
            Self::Redis(redis) => redis.get(keys).await,
        }
    }

    async fn put(&self, records: Vec<(Key, Bytes)>) -> Result<usize, StoreError> {
        match self {
            Self::Memory(memory) => memory.put(records).await,
            Self::Redis(redis) => redis.put(records).await,
        }
    }
}
