//! Leave to send a call: a place among those of one server, and among those of all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use super::{Link, Upstream};

/// How long a call waits for a server that is starting.
const STARTING: Duration = Duration::from_secs(10);

/// Leave to send one call.
#[derive(Debug)]
pub(crate) struct Leave {
    pub(crate) link: Arc<Link>,
    _own: OwnedSemaphorePermit,
    all: Option<OwnedSemaphorePermit>,
}

impl Leave {
    /// Gives back the place among all calls; the one at the server stays taken.
    pub(crate) fn rest(&mut self) {
        self.all = None;
    }
}

/// Why a call is not sent.
#[derive(Debug)]
pub(crate) enum Unavailable {
    /// The server is not connected.
    Down(String),
    /// Too many calls wait for it.
    Busy(QueueFull),
}

/// The maximum number of requests already waits for this server.
#[derive(Debug, thiserror::Error)]
#[error("{most} calls wait for `{server}` already")]
pub(crate) struct QueueFull {
    server: Arc<str>,
    most: usize,
}

impl Upstream {
    /// Waits for a call's turn.
    pub(crate) async fn leave(&self) -> Result<Leave, Unavailable> {
        let down = || Unavailable::Down(self.status().why_not());
        let mut place = None;
        if self.link().is_none() || self.calls.available_permits() == 0 {
            place = Some(self.queue().map_err(Unavailable::Busy)?);
        }
        // Its tools are known from an earlier run, and it is starting: no reason to send the model away.
        let mut news = self.watch();
        let tried = news.wait_for(|status| !status.is_first_try());
        let _ = tokio::time::timeout(STARTING, tried).await;
        if self.link().is_none() {
            return Err(down());
        }
        let own = if let Ok(permit) = Arc::clone(&self.calls).try_acquire_owned() {
            permit
        } else {
            if place.is_none() {
                place = Some(self.queue().map_err(Unavailable::Busy)?);
            }
            Arc::clone(&self.calls).acquire_owned().await.map_err(|_| down())?
        };
        drop(place);
        let all = Arc::clone(&self.shared.calls).acquire_owned().await.map_err(|_| down())?;
        // It may have gone while we waited.
        let link = self.link().ok_or_else(down)?;
        Ok(Leave { link, _own: own, all: Some(all) })
    }

    /// A place among the requests that wait for this server.
    pub(crate) fn queue(&self) -> Result<Place<'_>, QueueFull> {
        let most = self.shared.limits.server_queue;
        let full = || QueueFull { server: Arc::clone(&self.name), most };
        Place::take(&self.waiting, most).ok_or_else(full)
    }
}

/// A place in a queue.
pub(crate) struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(queue: &'a AtomicUsize, most: usize) -> Option<Self> {
        let before = queue.fetch_add(1, Ordering::Relaxed);
        let place = Self(queue);
        (before < most).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
