//! The resources that at least one client subscribes to, and their updates.
//!
//! A subscription lasts until its client ends it or disconnects, and its URI is stored several times. Therefore the
//! memory for the subscriptions of all clients is limited.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;

use rmcp::model::ErrorData;
use tokio::sync::broadcast;
use toolcrib_server::{MemoryBudget, MemoryShare};

use super::UpstreamError;

/// Maximum number of resource changes that a slow client may lag behind. Beyond that, some changes are not reported.
const MAX_LAG: usize = 256;

/// Maximum memory for the subscriptions of all clients together, in bytes. This is enough for about 200,000
/// subscriptions to URIs of ordinary length.
const MAX_TOTAL_BYTES: usize = 64 << 20;

/// Memory that a subscription takes in addition to its URIs, in bytes.
const ENTRY_BYTES: usize = 256;

/// A resource of one server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ResourceKey {
    /// The id of the server.
    pub(crate) upstream: u64,
    /// The name of the server.
    pub(crate) server: Arc<str>,
    /// The URI of the resource on that server.
    pub(crate) uri: String,
}

/// The resources that at least one client subscribes to.
#[derive(Debug)]
pub(crate) struct SubscriptionRegistry {
    updates: broadcast::Sender<ResourceKey>,
    counts: Mutex<HashMap<ResourceKey, usize>>,
    memory: MemoryBudget,
}

impl Default for SubscriptionRegistry {
    fn default() -> Self {
        let (updates, memory) =
            (broadcast::Sender::new(MAX_LAG), MemoryBudget::new(MAX_TOTAL_BYTES));
        Self { updates, counts: Mutex::default(), memory }
    }
}

impl SubscriptionRegistry {
    fn lock(&self) -> MutexGuard<'_, HashMap<ResourceKey, usize>> {
        self.counts.lock()
    }

    /// Announces that a resource changed. The listeners ignore resources that their client does not subscribe to.
    pub(crate) fn notify(&self, resource: ResourceKey) {
        // An error means only that no client listens.
        let _ = self.updates.send(resource);
    }

    /// Returns a receiver of the resources that change from now on.
    pub(crate) fn updates(&self) -> broadcast::Receiver<ResourceKey> {
        self.updates.subscribe()
    }

    /// Reserves memory for one more subscription.
    pub(crate) fn share(
        &self,
        resource: &ResourceKey,
        client_uri: &str,
    ) -> Result<MemoryShare, UpstreamError> {
        let mut share = self.memory.share();
        if share.grow(ENTRY_BYTES + resource.uri.len() + client_uri.len()) {
            return Ok(share);
        }
        let problem =
            "the subscriptions of all clients use up the memory for subscriptions: try again later";
        Err(UpstreamError::Rejected(ErrorData::internal_error(problem, None)))
    }

    /// Records that one more client subscribes to a resource.
    pub(crate) fn add(&self, resource: &ResourceKey) {
        *self.lock().entry(resource.clone()).or_default() += 1;
    }

    /// Records that one client no longer subscribes to a resource.
    pub(crate) fn release(&self, resource: &ResourceKey) {
        let mut entries = self.lock();
        let Some(count) = entries.get_mut(resource) else { return };
        *count -= 1;
        if *count == 0 {
            entries.remove(resource);
        }
    }

    /// Whether any client subscribes to a resource.
    pub(crate) fn is_wanted(&self, resource: &ResourceKey) -> bool {
        self.lock().contains_key(resource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::URI_BYTES;

    #[test]
    fn the_subscriptions_of_all_clients_share_a_memory_limit() {
        let registry = SubscriptionRegistry::default();
        let uri = "x".repeat(URI_BYTES);
        let resource = ResourceKey { upstream: 1, server: Arc::from("server"), uri: uri.clone() };
        let mut shares: Vec<MemoryShare> =
            std::iter::from_fn(|| registry.share(&resource, &uri).ok()).collect();
        assert_eq!(shares.len(), MAX_TOTAL_BYTES / (ENTRY_BYTES + 2 * URI_BYTES));
        // One client may have at most 256 subscriptions, so it cannot take all of the memory.
        assert!(shares.len() > 256);
        shares.pop();
        assert!(registry.share(&resource, &uri).is_ok());
    }
}
