//! Subscriptions to the resources of one server, on behalf of the gateway's clients.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    ClientRequest, SubscribeRequest, SubscribeRequestParams, UnsubscribeRequest,
    UnsubscribeRequestParams,
};

use super::{ConnectionHandle, ResourceKey, Upstream, UpstreamError};
use crate::config::seconds;

/// Marks a resource as unconfirmed if its subscribe or unsubscribe request is dropped before the server answers. The
/// server may or may not have changed the subscription, so a request must be sent when the next client subscribes or
/// unsubscribes, even if nothing seems to change.
struct UnconfirmedOnDrop<'a> {
    upstream: &'a Upstream,
    uri: &'a str,
}

impl Drop for UnconfirmedOnDrop<'_> {
    fn drop(&mut self) {
        let unconfirmed = &self.upstream.unconfirmed_resources;
        unconfirmed.lock().insert(self.uri.to_owned());
    }
}

impl Upstream {
    /// Returns the key of one of the server's resources.
    pub(crate) fn resource(&self, uri: &str) -> ResourceKey {
        ResourceKey { upstream: self.id, server: Arc::clone(&self.name), uri: uri.to_owned() }
    }

    /// Takes over the subscriptions of `before`, the server that this server replaces.
    pub(crate) fn adopt_subscriptions(&self, before: &Self) {
        let watched = before.watched_resources();
        self.watched_resources.lock().extend(watched);
    }

    /// Subscribes to a resource if `wanted` returns true, and otherwise unsubscribes from it. `wanted` is called only
    /// when the lock is held, because subscribe and unsubscribe may race. This future may be dropped at any await.
    pub(crate) async fn sync_subscription(
        &self,
        uri: &str,
        wanted: impl Fn() -> bool,
    ) -> Result<(), UpstreamError> {
        let _lock = self.subscription_lock.lock().await;
        let watch = wanted();
        // Starts the server if it is idle, and keeps it running until `watched_resources` does.
        let _in_use = watch.then(|| self.demand.enter());
        {
            let mut watched = self.watched_resources.lock();
            let changed = if watch { watched.insert(uri.to_owned()) } else { watched.remove(uri) };
            let is_unconfirmed = self.unconfirmed_resources.lock().remove(uri);
            if !changed && !is_unconfirmed {
                return Ok(());
            }
        }
        if !watch {
            self.demand.notify();
        }
        let Some(connection) = self.connection() else { return Ok(()) };
        if connection.uses_newer_protocol() {
            self.resources_changed.notify_one();
            return Ok(());
        }
        let timeout = seconds(self.config().start_timeout);
        let unconfirmed = UnconfirmedOnDrop { upstream: self, uri };
        let result = subscribe(&connection, uri, watch, timeout).await;
        std::mem::forget(unconfirmed);
        if watch && result.is_err() {
            self.watched_resources.lock().remove(uri);
        }
        result
    }

    /// Whether clients subscribe to resources of this server.
    pub(super) fn has_subscriptions(&self) -> bool {
        !self.watched_resources.lock().is_empty()
    }

    pub(super) fn watched_resources(&self) -> Vec<String> {
        let watched = self.watched_resources.lock();
        watched.iter().cloned().collect()
    }
}

/// Sends a subscribe or unsubscribe request to a server of the older protocol.
pub(super) async fn subscribe(
    connection: &ConnectionHandle,
    uri: &str,
    watch: bool,
    timeout: Duration,
) -> Result<(), UpstreamError> {
    let request = if watch {
        ClientRequest::SubscribeRequest(SubscribeRequest::new(SubscribeRequestParams::new(uri)))
    } else {
        ClientRequest::UnsubscribeRequest(UnsubscribeRequest::new(UnsubscribeRequestParams::new(
            uri,
        )))
    };
    connection.request(request, timeout).await.map(drop)
}
