//! Records of conversations in the store. A store that does not answer costs no request anything but what
//! was in it.

use bytes::Bytes;
use toolcrib_dialect::Key;
use toolcrib_store::Store as _;

use crate::proxy::Proxy;

impl Proxy {
    /// Records by their keys; none at all if the store does not answer.
    pub(crate) async fn load(&self, keys: &[Key]) -> Vec<Option<Vec<u8>>> {
        let keys: Vec<_> = keys.iter().map(|key| toolcrib_store::Key::new(key.0)).collect();
        match self.store.get(&keys).await {
            Ok(found) => found.into_iter().map(|bytes| bytes.map(|bytes| bytes.to_vec())).collect(),
            Err(lost) => {
                tracing::warn!(%lost, "state cannot be read; the conversation goes on without it");
                self.metrics.state_lost();
                Vec::new()
            }
        }
    }

    /// Keeps records.
    pub(crate) async fn store(&self, records: Vec<(Key, Vec<u8>)>) {
        let key = |key: Key| toolcrib_store::Key::new(key.0);
        let records = records.into_iter().map(|(at, bytes)| (key(at), Bytes::from(bytes)));
        if let Err(lost) = self.store.put(records.collect()).await {
            tracing::warn!(%lost, "state cannot be kept; the conversation goes on without it");
            self.metrics.state_lost();
        }
    }
}
