//! Records which client subscribes to which resource.
//!
//! A subscription lasts until its client ends it or disconnects, and its URI is stored several times. Therefore there
//! are maximums for the length of a URI and for the subscriptions of each client. [`SubscriptionRegistry`] limits the
//! memory for the subscriptions of all clients.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rmcp::model::ErrorData;
use toolcrib_server::MemoryShare;

use super::Gateway;
use crate::upstream::{ResourceKey, SubscriptionRegistry, URI_BYTES, Upstream, UpstreamError};

/// Maximum number of resources that one client may subscribe to.
const MAX_SUBSCRIPTIONS: usize = 256;

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

    fn registry(&self) -> &SubscriptionRegistry {
        self.gateway.hub().subscriptions()
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
        let resource = upstream.resource(own_uri);
        let serial = self.insert_pending(&resource, client_uri)?;
        let is_wanted = || self.registry().is_wanted(&resource);
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
        let registry = self.registry();
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
        registry.add(resource);
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
        self.registry().release(resource);
        Some(subscription)
    }

    /// Unsubscribes from a resource.
    pub(super) async fn remove(
        &self,
        upstream: &Upstream,
        own_uri: &str,
        abandoned: impl Future<Output = ()>,
    ) -> Result<(), UpstreamError> {
        let resource = upstream.resource(own_uri);
        let Some(subscription) = self.take(&resource) else { return Ok(()) };
        let is_wanted = || self.registry().is_wanted(&resource);
        let ended = tokio::select! {
            ended = upstream.sync_subscription(own_uri, is_wanted) => return ended,
            () = abandoned => Err(UpstreamError::Cancelled),
        };
        self.end_at_server(resource, subscription);
        ended
    }

    fn take(&self, resource: &ResourceKey) -> Option<Subscription> {
        let subscription = self.lock().remove(resource)?;
        self.registry().release(resource);
        Some(subscription)
    }

    /// Ends a subscription at the server, in the background, unless another client still subscribes to the resource.
    /// The subscription's memory stays reserved until the server has answered.
    fn end_at_server(&self, resource: ResourceKey, subscription: Subscription) {
        let (upstream, gateway) =
            (self.gateway.hub().upstream_of(&resource), Arc::clone(&self.gateway));
        if let (Some(upstream), Ok(runtime)) = (upstream, tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                let is_wanted = || gateway.hub().subscriptions().is_wanted(&resource);
                let ended = upstream.sync_subscription(&resource.uri, is_wanted).await;
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
            self.registry().release(&resource);
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
