//! The choice of where state is kept.

use bytes::Bytes;

use crate::{Key, Lost, Memory, Redis, Store};

/// The store that was configured. Clones share what is kept.
#[derive(Debug, Clone)]
pub enum Shared {
    /// Shared by the requests of this process, and gone with it.
    Memory(Memory),
    /// Shared by all replicas, and still there after a restart.
    Redis(Redis),
}

impl Store for Shared {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Bytes>>, Lost> {
        match self {
            Self::Memory(memory) => memory.get(keys).await,
            Self::Redis(redis) => redis.get(keys).await,
        }
    }

    async fn put(&self, records: Vec<(Key, Bytes)>) -> Result<usize, Lost> {
        match self {
            Self::Memory(memory) => memory.put(records).await,
            Self::Redis(redis) => redis.put(records).await,
        }
    }
}
