//! The two verbs of state, and the choice of where it lies.

use bytes::Bytes;

use crate::{Key, Lost, Memory, Redis};

/// Somewhere immutable records are kept until nobody reads them any more.
pub trait Store {
    /// The records under these keys, in their order; `None` where there is none. What is found counts as
    /// read, and its expiry starts anew. One round trip, however many keys.
    fn get(&self, keys: &[Key]) -> impl Future<Output = Result<Vec<Option<Bytes>>, Lost>> + Send;

    /// Keeps records; of two with one key, either, as they must be equal. One round trip, however many.
    ///
    /// Returns how many were not kept because they are too large.
    fn put(&self, records: Vec<(Key, Bytes)>) -> impl Future<Output = Result<usize, Lost>> + Send;
}

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
