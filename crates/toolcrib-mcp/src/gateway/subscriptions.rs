//! Records which client subscribes to which resource.
//!
//! A subscription lasts until its client ends it or disconnects, and its URI is stored several times. Therefore there
//! are maximums for the length of a URI, for the subscriptions of each client, and for the memory of the subscriptions
//! of all clients.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rmcp::model::ErrorData;
use tokio::sync::broadcast;
use toolcrib_server::{MemoryBudget, MemoryShare};

use super::Gateway;
use crate::upstream::{URI_BYTES, Upstream, UpstreamError};

/// Maximum number of resource changes that a slow client may lag behind. Beyond that, some changes are not reported.
const MAX_LAG: usize = 256;

/// Maximum number of resources that one client may subscribe to.
const MAX_SUBSCRIPTIONS: usize = 256;

/// Maximum memory for the subscriptions of all clients together, in bytes. This is enough for about 200,000
/// subscriptions to URIs of ordinary length.
const MAX_TOTAL_BYTES: usize = 64 << 20;

/// Memory that a subscription takes in addition to its URIs, in bytes.
const ENTRY_BYTES: usize = 256;

/// The name of a server, and the URI of a resource on that server.
pub(super) type ResourceKey = (Arc<str>, String);

/// The resources that at least one client subscribes to.
pub(super) struct SubscriptionRegistry {
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
    pub(super) fn notify(&self, resource: ResourceKey) {
        // An error means only that no client listens.
        let _ = self.updates.send(resource);
    }

    /// Returns a receiver of the resources that change from now on.
    pub(super) fn updates(&self) -> broadcast::Receiver<ResourceKey> {
        self.updates.subscribe()
    }

    /// Reserves memory for one more subscription.
    fn share(
        &self,
        resource: &ResourceKey,
        client_uri: &str,
    ) -> Result<MemoryShare, UpstreamError> {
        let mut share = self.memory.share();
        if share.grow(ENTRY_BYTES + resource.1.len() + client_uri.len()) {
            return Ok(share);
        }
        let problem =
            "the subscriptions of all clients use up the memory for subscriptions: try again later";
        Err(UpstreamError::Rejected(ErrorData::internal_error(problem, None)))
    }

    /// Records that one client no longer subscribes to a resource.
    fn release(&self, resource: &ResourceKey) {
        let mut entries = self.lock();
        let Some(count) = entries.get_mut(resource) else { return };
        *count -= 1;
        if *count == 0 {
            entries.remove(resource);
        }
    }

    /// Whether any client subscribes to a resource.
    fn is_wanted(&self, resource: &ResourceKey) -> bool {
        self.lock().contains_key(resource)
    }
}

/// The resources that one client subscribes to. Dropping this value ends the subscriptions.
pub(super) struct ClientSubscriptions {
    gateway: Arc<Gateway>,
    by_resource: Mutex<HashMap<ResourceKey, Subscription>>,
    serials: AtomicU64,
}

struct Subscription {
    /// The URI by which the client knows the resource.
    client_uri: String,
    share: MemoryShare,
    /// Distinguishes this entry from earlier subscriptions of the same client to the same resource.
    serial: u64,
    /// The number of this client's subscribe requests that wait for the server.
    pending: usize,
    /// Whether the server has confirmed the subscription.
    is_confirmed: bool,
}

impl ClientSubscriptions {
    pub(super) fn new(gateway: Arc<Gateway>) -> Self {
        Self { gateway, by_resource: Mutex::default(), serials: AtomicU64::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ResourceKey, Subscription>> {
        self.by_resource.lock()
    }

    /// Subscribes to a resource, unless the client abandons the request before the server has confirmed the
    /// subscription.
    pub(super) async fn add(
        &self,
        upstream: &Upstream,
        own_uri: &str,
        client_uri: &str,
        abandoned: impl Future<Output = ()>,
    ) -> Result<(), UpstreamError> {
        let resource = (Arc::clone(&upstream.name), own_uri.to_owned());
        let serial = self.insert_pending(&resource, client_uri)?;
        let is_wanted = || self.gateway.subscriptions.is_wanted(&resource);
        let outcome = tokio::select! {
            outcome = upstream.sync_subscription(own_uri, is_wanted) => outcome,
            () = abandoned => Err(UpstreamError::Cancelled),
        };
        if let Some(subscription) = self.record_outcome(&resource, serial, &outcome)
            && matches!(outcome, Err(UpstreamError::Cancelled))
        {
            // The server may already have received the request, so the subscription is ended there too.
            self.end_at_server(resource, subscription);
        }
        outcome
    }

    /// Adds a subscription that waits for the server. Returns the serial of its entry.
    fn insert_pending(
        &self,
        resource: &ResourceKey,
        client_uri: &str,
    ) -> Result<u64, UpstreamError> {
        let mut entries = self.lock();
        if entries.len() >= MAX_SUBSCRIPTIONS && !entries.contains_key(resource) {
            let problem = format!(
                "the client already subscribes to {MAX_SUBSCRIPTIONS} resources, the maximum"
            );
            return Err(UpstreamError::Rejected(ErrorData::invalid_request(problem, None)));
        }
        let registry = &self.gateway.subscriptions;
        let share = registry.share(resource, client_uri)?;
        let client_uri = client_uri.to_owned();
        if let Some(subscription) = entries.get_mut(resource) {
            (subscription.client_uri, subscription.share) = (client_uri, share);
            subscription.pending += 1;
            return Ok(subscription.serial);
        }
        let serial = self.serials.fetch_add(1, Ordering::Relaxed);
        let subscription =
            Subscription { client_uri, share, serial, pending: 1, is_confirmed: false };
        entries.insert(resource.clone(), subscription);
        *registry.lock().entry(resource.clone()).or_default() += 1;
        Ok(serial)
    }

    /// Records the outcome of a subscribe request. Removes and returns the entry if the request failed and the client
    /// has no other subscription to the resource.
    fn record_outcome(
        &self,
        resource: &ResourceKey,
        serial: u64,
        outcome: &Result<(), UpstreamError>,
    ) -> Option<Subscription> {
        let mut entries = self.lock();
        let subscription =
            entries.get_mut(resource).filter(|subscription| subscription.serial == serial)?;
        subscription.pending -= 1;
        match outcome {
            Ok(()) => subscription.is_confirmed = true,
            // A cancelled request does not change whether the subscription is confirmed, because an earlier request may
            // have succeeded.
            Err(UpstreamError::Cancelled) => {}
            Err(_) => subscription.is_confirmed = false,
        }
        if subscription.is_confirmed || subscription.pending > 0 {
            return None;
        }
        // The lock is held until the entry is removed. Otherwise a second request for the same resource could add
        // itself to the entry in between, and its subscription would be removed as well.
        let subscription = entries.remove(resource)?;
        self.gateway.subscriptions.release(resource);
        Some(subscription)
    }

    /// Unsubscribes from a resource.
    pub(super) async fn remove(
        &self,
        upstream: &Upstream,
        own_uri: &str,
        abandoned: impl Future<Output = ()>,
    ) -> Result<(), UpstreamError> {
        let resource = (Arc::clone(&upstream.name), own_uri.to_owned());
        let Some(subscription) = self.take(&resource) else { return Ok(()) };
        let is_wanted = || self.gateway.subscriptions.is_wanted(&resource);
        let ended = tokio::select! {
            ended = upstream.sync_subscription(own_uri, is_wanted) => return ended,
            () = abandoned => Err(UpstreamError::Cancelled),
        };
        self.end_at_server(resource, subscription);
        ended
    }

    fn take(&self, resource: &ResourceKey) -> Option<Subscription> {
        let subscription = self.lock().remove(resource)?;
        self.gateway.subscriptions.release(resource);
        Some(subscription)
    }

    /// Ends a subscription at the server, in the background, unless another client still subscribes to the resource.
    /// The subscription's memory stays reserved until the server has answered.
    fn end_at_server(&self, resource: ResourceKey, subscription: Subscription) {
        let (upstream, gateway) =
            (self.gateway.hub().upstream(&resource.0), Arc::clone(&self.gateway));
        if let (Some(upstream), Ok(runtime)) = (upstream, tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                let is_wanted = || gateway.subscriptions.is_wanted(&resource);
                let ended = upstream.sync_subscription(&resource.1, is_wanted).await;
                drop(subscription.share);
                ended
            });
        }
    }

    /// Returns the URI by which the client knows a resource, or `None` if the client does not subscribe to the
    /// resource.
    pub(super) fn client_uri(&self, resource: &ResourceKey) -> Option<String> {
        self.lock().get(resource).map(|subscription| subscription.client_uri.clone())
    }
}

impl Drop for ClientSubscriptions {
    fn drop(&mut self) {
        let resources: Vec<_> = self.lock().drain().collect();
        for (resource, subscription) in resources {
            self.gateway.subscriptions.release(&resource);
            self.end_at_server(resource, subscription);
        }
    }
}

/// Rejects a URI that is too long to be stored.
pub(super) fn check_uri(uri: &str) -> Result<(), ErrorData> {
    if uri.len() <= URI_BYTES {
        return Ok(());
    }
    let problem = format!(
        "the resource's URI has {} bytes; the maximum for subscriptions is {URI_BYTES}",
        uri.len()
    );
    Err(ErrorData::invalid_params(problem, None))
}

/// Rejects a subscription of the newer protocol if it has too many URIs or if one of them is too long.
pub(super) fn check_uris(uris: &[String]) -> Result<(), ErrorData> {
    if uris.len() > MAX_SUBSCRIPTIONS {
        let problem = format!(
            "the subscription has {} resources; the maximum is {MAX_SUBSCRIPTIONS}",
            uris.len()
        );
        return Err(ErrorData::invalid_params(problem, None));
    }
    uris.iter().try_for_each(|uri| check_uri(uri))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subscriptions_of_all_clients_share_a_memory_limit() {
        let registry = SubscriptionRegistry::default();
        let address = "x".repeat(URI_BYTES);
        let resource = (Arc::from("server"), address.clone());
        let mut shares: Vec<MemoryShare> =
            std::iter::from_fn(|| registry.share(&resource, &address).ok()).collect();
        assert_eq!(shares.len(), MAX_TOTAL_BYTES / (ENTRY_BYTES + 2 * URI_BYTES));
        assert!(shares.len() > MAX_SUBSCRIPTIONS, "one client cannot take all of it");
        shares.pop();
        assert!(registry.share(&resource, &address).is_ok());
    }
}
