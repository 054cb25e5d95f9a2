//! Notifications that clients want from a server (changed resources, its log), and the one that a server wants from its
//! client: that its roots changed.

use std::sync::PoisonError;
use std::time::Duration;

use rmcp::model::{
    ClientNotification, ClientRequest, RootsListChangedNotification, SetLevelRequest,
    SetLevelRequestParams,
};

use super::{Failed, Upstream, listen};
use crate::config::seconds;

/// How long a server may take to be told.
const TOLD_WITHIN: Duration = Duration::from_secs(10);

/// A server is asked to change a subscription. If this is dropped before the answer, the server may or may not have
/// changed it, so the next client that wants the subscription or its end asks again.
struct Asking<'a> {
    upstream: &'a Upstream,
    uri: &'a str,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let unconfirmed = &self.upstream.unconfirmed;
        unconfirmed.lock().unwrap_or_else(PoisonError::into_inner).insert(self.uri.to_owned());
    }
}

impl Upstream {
    /// Hears about what clients wanted to hear about from the server that had this one's place.
    pub(crate) fn take_over(&self, before: &Self) {
        let watched = before.watched();
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).extend(watched);
    }

    /// Hears about a resource from now on, or no more: as it is `wanted` when its turn comes, since
    /// subscribe and unsubscribe may race. May be dropped at any await.
    pub(crate) async fn watch_resource(
        &self,
        uri: &str,
        wanted: impl Fn() -> bool,
    ) -> Result<(), Failed> {
        let _turn = self.watching.lock().await;
        let watch = wanted();
        {
            let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
            let changed = if watch { watched.insert(uri.to_owned()) } else { watched.remove(uri) };
            let is_unconfirmed =
                self.unconfirmed.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
            if !changed && !is_unconfirmed {
                return Ok(());
            }
        }
        let Some(link) = self.link() else { return Ok(()) };
        if link.is_modern() {
            self.rewatch.notify_one();
            return Ok(());
        }
        let within = seconds(self.config().start_timeout);
        let asking = Asking { upstream: self, uri };
        let told = listen::subscribe(&link, uri, watch, within).await;
        std::mem::forget(asking);
        if watch && told.is_err() {
            self.watched.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
        }
        told
    }

    pub(super) fn watched(&self) -> Vec<String> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Tells a server of the older era that the roots of its client changed. A client may keep changing them while the
    /// server does not read, so at most one message waits for the one before it. It covers all changes up to the time
    /// it is sent.
    pub(crate) async fn tell_roots(&self) {
        let Ok(waiting) = self.roots_waiting.try_lock() else { return };
        let _turn = self.roots_turn.lock().await;
        drop(waiting);
        if let Some(link) = self.link().filter(|link| !link.is_modern()) {
            let changed = RootsListChangedNotification::default();
            let changed = ClientNotification::RootsListChangedNotification(changed);
            let _ = link.peer.send_notification(changed).await;
        }
    }

    /// Tells a server of the older era how much of its log is wanted; in the newer one each request does.
    pub(crate) async fn say_log_level(&self) {
        let level = *self.shared.log_level.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(level), Some(link)) = (level, self.link()) else { return };
        if !link.is_modern() && link.info.capabilities.logging.is_some() {
            let request = SetLevelRequest::new(SetLevelRequestParams::new(level));
            let _ = link.ask(ClientRequest::SetLevelRequest(request), TOLD_WITHIN).await;
        }
    }
}
