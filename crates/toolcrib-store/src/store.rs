//! The two operations of every store.

use bytes::Bytes;

use crate::{Key, StoreError};

/// A store of immutable records. A record expires when it has not been read for a while.
pub trait Store {
    /// Returns the records under these keys, in the same order. The result is `None` for a key without a record.
    /// Reading a record restarts its expiry. Takes one round trip for any number of keys.
    fn get(
        &self,
        keys: &[Key],
    ) -> impl Future<Output = Result<Vec<Option<Bytes>>, StoreError>> + Send;

    /// Stores records. Two records with the same key must be equal, so either may be kept. Takes one round trip for any
    /// number of records.
    ///
    /// Returns how many records were not stored because they are too large.
    fn put(
        &self,
        records: Vec<(Key, Bytes)>,
    ) -> impl Future<Output = Result<usize, StoreError>> + Send;
}
