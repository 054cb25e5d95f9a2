//! The two verbs of state.

use bytes::Bytes;

use crate::{Key, Lost};

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
