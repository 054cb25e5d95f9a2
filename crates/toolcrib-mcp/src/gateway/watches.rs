//! Which client watches which resource.
//!
//! A subscription is kept until its client ends it or leaves, and its address is stored in several places. So there are
//! a maximum length for addresses, a maximum number of subscriptions for each client, and a maximum of memory for those
//! of all clients.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::ErrorData;
use tokio::sync::broadcast;
use toolcrib_server::{MemoryBudget, MemoryShare};

use super::Gateway;
use crate::upstream::{Failed, URI_BYTES, Upstream};

/// Maximum number of changed resources that a slow client may lag behind. Beyond that, some are not reported.
const LAG: usize = 256;

/// Maximum number of resources that one client may watch.
const WATCHED: usize = 256;

/// Maximum memory for the subscriptions of all clients together, in bytes: some 200,000 of ordinary length.
const TOTAL_BYTES: usize = 64 << 20;

/// Memory that a subscription takes in addition to its addresses, in bytes.
const ENTRY: usize = 256;

/// A resource: its server, and its address there.
pub(super) type Place = (Arc<str>, String);

/// The resources that any client watches.
pub(super) struct Subscribers {
    updates: broadcast::Sender<Place>,
    watched: Mutex<HashMap<Place, usize>>,
    memory: MemoryBudget,
}

impl Default for Subscribers {
    fn default() -> Self {
        let (updates, memory) = (broadcast::Sender::new(LAG), MemoryBudget::new(TOTAL_BYTES));
        Self { updates, watched: Mutex::default(), memory }
    }
}

impl Subscribers {
    fn lock(&self) -> MutexGuard<'_, HashMap<Place, usize>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells all clients that a resource changed.
    pub(super) fn tell(&self, place: Place) {
        // An error means that no client listens.
        let _ = self.updates.send(place);
    }

    /// The resources that change from now on.
    pub(super) fn updates(&self) -> broadcast::Receiver<Place> {
        self.updates.subscribe()
    }

    /// Memory for one more subscription.
    fn share(&self, place: &Place, known_as: &str) -> Result<MemoryShare, Failed> {
        let mut share = self.memory.share();
        if share.grow(ENTRY + place.1.len() + known_as.len()) {
            return Ok(share);
        }
        let problem =
            "the subscriptions of all clients take up all memory for them: try again later";
        Err(Failed::Refused(ErrorData::internal_error(problem, None)))
    }

    /// Records that one client fewer watches it.
    fn release(&self, place: &Place) {
        let mut watched = self.lock();
        let Some(count) = watched.get_mut(place) else { return };
        *count -= 1;
        if *count == 0 {
            watched.remove(place);
        }
    }

    /// Whether any client watches it.
    fn wants(&self, place: &Place) -> bool {
        self.lock().contains_key(place)
    }
}

/// The resources that one client watches. Dropping it ends the subscriptions.
pub(super) struct Watches {
    gateway: Arc<Gateway>,
    by_place: Mutex<HashMap<Place, Watch>>,
    serials: AtomicU64,
}

struct Watch {
    /// The address by which the client knows the resource.
    known_as: String,
    share: MemoryShare,
    /// The number of this entry: the resource may have been watched before under another one.
    serial: u64,
    /// Subscriptions of this client that wait for the server.
    pending: usize,
    /// Whether one of them has succeeded.
    is_confirmed: bool,
}

impl Watches {
    pub(super) fn new(gateway: Arc<Gateway>) -> Self {
        Self { gateway, by_place: Mutex::default(), serials: AtomicU64::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Place, Watch>> {
        self.by_place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches a resource from now on, unless its client is `gone` before the server has confirmed it.
    pub(super) async fn add(
        &self,
        upstream: &Upstream,
        own: &str,
        known_as: &str,
        gone: impl Future<Output = ()>,
    ) -> Result<(), Failed> {
        let place = (Arc::clone(&upstream.name), own.to_owned());
        let serial = self.enter(&place, known_as)?;
        let wanted = || self.gateway.subscribers.wants(&place);
        let begun = tokio::select! {
            begun = upstream.watch_resource(own, wanted) => begun,
            () = gone => Err(Failed::Cancelled),
        };
        if let Some(watch) = self.settle(&place, serial, &begun)
            && matches!(begun, Err(Failed::Cancelled))
        {
            // The server may already have the request.
            self.let_go(place, watch);
        }
        begun
    }

    /// Adds a subscription that waits for the server, and returns the serial of its entry.
    fn enter(&self, place: &Place, known_as: &str) -> Result<u64, Failed> {
        let mut watched = self.lock();
        if watched.len() >= WATCHED && !watched.contains_key(place) {
            let problem = format!("{WATCHED} resources are watched already");
            return Err(Failed::Refused(ErrorData::invalid_request(problem, None)));
        }
        let subscribers = &self.gateway.subscribers;
        let share = subscribers.share(place, known_as)?;
        let known_as = known_as.to_owned();
        if let Some(watch) = watched.get_mut(place) {
            (watch.known_as, watch.share) = (known_as, share);
            watch.pending += 1;
            return Ok(watch.serial);
        }
        let serial = self.serials.fetch_add(1, Ordering::Relaxed);
        let watch = Watch { known_as, share, serial, pending: 1, is_confirmed: false };
        watched.insert(place.clone(), watch);
        *subscribers.lock().entry(place.clone()).or_default() += 1;
        Ok(serial)
    }

    /// Records how a subscription ended. Takes its entry if it failed and the client has no other subscription to the
    /// resource.
    fn settle(&self, place: &Place, serial: u64, begun: &Result<(), Failed>) -> Option<Watch> {
        let mut watched = self.lock();
        let watch = watched.get_mut(place).filter(|watch| watch.serial == serial)?;
        watch.pending -= 1;
        match begun {
            Ok(()) => watch.is_confirmed = true,
            // It may have been watched before.
            Err(Failed::Cancelled) => {}
            Err(_) => watch.is_confirmed = false,
        }
        if watch.is_confirmed || watch.pending > 0 {
            return None;
        }
        drop(watched);
        self.take(place)
    }

    /// Stops watching a resource.
    pub(super) async fn remove(
        &self,
        upstream: &Upstream,
        own: &str,
        gone: impl Future<Output = ()>,
    ) -> Result<(), Failed> {
        let place = (Arc::clone(&upstream.name), own.to_owned());
        let Some(watch) = self.take(&place) else { return Ok(()) };
        let wanted = || self.gateway.subscribers.wants(&place);
        let ended = tokio::select! {
            ended = upstream.watch_resource(own, wanted) => return ended,
            () = gone => Err(Failed::Cancelled),
        };
        self.let_go(place, watch);
        ended
    }

    fn take(&self, place: &Place) -> Option<Watch> {
        let watch = self.lock().remove(place)?;
        self.gateway.subscribers.release(place);
        Some(watch)
    }

    /// Ends a subscription at the server, in the background, unless another client still watches the resource. Its
    /// memory counts until then.
    fn let_go(&self, place: Place, watch: Watch) {
        let (upstream, gateway) =
            (self.gateway.hub().upstream(&place.0), Arc::clone(&self.gateway));
        if let (Some(upstream), Ok(runtime)) = (upstream, tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                let wanted = || gateway.subscribers.wants(&place);
                let ended = upstream.watch_resource(&place.1, wanted).await;
                drop(watch.share);
                ended
            });
        }
    }

    /// The address by which the client knows a resource that it watches.
    pub(super) fn known_as(&self, place: &Place) -> Option<String> {
        self.lock().get(place).map(|watch| watch.known_as.clone())
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        let places: Vec<_> = self.lock().drain().collect();
        for (place, watch) in places {
            self.gateway.subscribers.release(&place);
            self.let_go(place, watch);
        }
    }
}

/// Refuses an address that is too long to be kept.
pub(super) fn check_address(uri: &str) -> Result<(), ErrorData> {
    if uri.len() <= URI_BYTES {
        return Ok(());
    }
    let problem = format!(
        "the address of the resource has {} bytes, and {URI_BYTES} are the most that can be subscribed to",
        uri.len()
    );
    Err(ErrorData::invalid_params(problem, None))
}

/// Refuses a subscription of the newer era with addresses that are too long, or with too many addresses.
pub(super) fn check_addresses(uris: &[String]) -> Result<(), ErrorData> {
    if uris.len() > WATCHED {
        let problem = format!(
            "the subscription has {} resources, and {WATCHED} are the most that it can have",
            uris.len()
        );
        return Err(ErrorData::invalid_params(problem, None));
    }
    uris.iter().try_for_each(|uri| check_address(uri))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subscriptions_of_all_clients_have_a_total() {
        let subscribers = Subscribers::default();
        let address = "x".repeat(URI_BYTES);
        let place = (Arc::from("server"), address.clone());
        let mut shares: Vec<MemoryShare> =
            std::iter::from_fn(|| subscribers.share(&place, &address).ok()).collect();
        assert_eq!(shares.len(), TOTAL_BYTES / (ENTRY + 2 * URI_BYTES));
        assert!(shares.len() > WATCHED, "one client cannot take all of it");
        shares.pop();
        assert!(subscribers.share(&place, &address).is_ok());
    }
}
