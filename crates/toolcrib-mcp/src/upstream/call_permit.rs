//! Permits for calls, which limit the concurrent calls to one server and to all servers together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use super::demand::InUse;
use super::{ConnectionHandle, Upstream};
use crate::config::seconds;

/// How much longer than a server's start timeout a call waits for the server. The server may itself wait until others
/// have started.
const START_QUEUE_WAIT: Duration = Duration::from_secs(10);

/// Permission to send one call.
#[derive(Debug)]
pub(crate) struct CallPermit {
    pub(crate) connection: Arc<ConnectionHandle>,
    _server: OwnedSemaphorePermit,
    shared: Option<OwnedSemaphorePermit>,
    /// Keeps the server running.
    _in_use: InUse,
}

impl CallPermit {
    /// Releases the permit for calls to all servers together, and keeps the permit for this server.
    pub(crate) fn release_shared_permit(&mut self) {
        self.shared = None;
    }
}

/// Why a call cannot be sent.
#[derive(Debug)]
pub(crate) enum PermitError {
    /// The server is not connected, for this reason.
    ServerDown(String),
    /// Too many calls wait for the server.
    QueueFull(QueueFull),
}

/// The error that as many calls as allowed are already waiting for this server.
#[derive(Debug, thiserror::Error)]
#[error("{max} calls are already waiting for `{server}`")]
pub(crate) struct QueueFull {
    server: Arc<str>,
    max: usize,
}

impl Upstream {
    /// Waits until a call may be sent.
    pub(crate) async fn acquire_call_permit(&self) -> Result<CallPermit, PermitError> {
        let down = || PermitError::ServerDown(self.status().unavailable_reason());
        let in_use = self.demand.enter();
        let mut slot = None;
        if self.connection().is_none() || self.call_permits.available_permits() == 0 {
            slot = Some(self.enter_queue().map_err(PermitError::QueueFull)?);
        }
        // The server's tools may be known from an earlier run while it is idle or still starting. Wait for the server
        // instead of failing the model's call.
        let mut status = self.subscribe_status();
        let attempted = status.wait_for(|status| !status.is_worth_waiting_for());
        let start_timeout = seconds(self.config().start_timeout);
        let _ = tokio::time::timeout(start_timeout + START_QUEUE_WAIT, attempted).await;
        if self.connection().is_none() {
            return Err(down());
        }
        let server = if let Ok(permit) = Arc::clone(&self.call_permits).try_acquire_owned() {
            permit
        } else {
            if slot.is_none() {
                slot = Some(self.enter_queue().map_err(PermitError::QueueFull)?);
            }
            Arc::clone(&self.call_permits).acquire_owned().await.map_err(|_| down())?
        };
        drop(slot);
        let shared =
            Arc::clone(&self.shared.call_permits).acquire_owned().await.map_err(|_| down())?;
        // The connection may have ended while this waited.
        let connection = self.connection().ok_or_else(down)?;
        Ok(CallPermit { connection, _server: server, shared: Some(shared), _in_use: in_use })
    }

    /// Returns the maximum number of concurrent calls to this server.
    pub(crate) fn max_concurrent_calls(&self) -> usize {
        self.max_concurrent_calls
    }

    /// Whether no call is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.call_permits.available_permits() == self.max_concurrent_calls
    }

    /// Takes a slot among the requests that wait for this server.
    pub(crate) fn enter_queue(&self) -> Result<QueueSlot<'_>, QueueFull> {
        let max = self.shared.limits.server_queue;
        let full = || QueueFull { server: Arc::clone(&self.name), max };
        QueueSlot::take(&self.queued_calls, max).ok_or_else(full)
    }
}

/// A slot in a server's queue. Dropping this value releases it.
pub(crate) struct QueueSlot<'a>(&'a AtomicUsize);

impl<'a> QueueSlot<'a> {
    fn take(queued: &'a AtomicUsize, max: usize) -> Option<Self> {
        let before = queued.fetch_add(1, Ordering::Relaxed);
        let slot = Self(queued);
        (before < max).then_some(slot)
    }
}

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
