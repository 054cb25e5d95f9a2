//! Whether a server needs to run: who uses it now, and when it was last used.
//!
//! A server with `start = "lazy"` is started when a request needs it, and stopped when it was unused for some time.
//! Requests enter before they look for the connection, and the server is stopped only under the same lock while nobody
//! has entered. So no request is ever sent to a server that is being stopped.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{ServerPhase, ServerStatus, Upstream};
use crate::config::{RunPolicy, StartPolicy};

/// The users of a server.
#[derive(Debug, Default)]
pub(crate) struct Demand {
    usage: Mutex<Usage>,
    /// Notified when the need for the server may have changed.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Usage {
    /// Requests that use the server or wait for it.
    users: usize,
    /// The number of requests so far.
    requests: u64,
    last_use: Option<Instant>,
}

/// How much a server is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UsageSummary {
    /// Requests that use the server or wait for it.
    pub(crate) open: usize,
    /// The number of requests so far.
    pub(crate) requests: u64,
    /// The time since the last request ended, unless one is open.
    pub(crate) unused_for: Option<Duration>,
}

/// Why a server needs to run, or that it does not need to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// The config says that it always runs.
    Eager,
    /// Its lists are unknown, or come from a run with another config.
    ListsUnconfirmed,
    /// Clients subscribe to its resources.
    Subscriptions,
    /// A request uses it or waits for it.
    InUse,
    /// It was used, and is not stopped when idle.
    KeptRunning,
    /// It was used, and is stopped at this time.
    UsedUntil(Instant),
    /// Nobody needs it.
    NotNeeded,
}

impl Need {
    /// Whether the server must run at this moment.
    fn is_now(self) -> bool {
        match self {
            Self::UsedUntil(until) => Instant::now() < until,
            Self::NotNeeded => false,
            _ => true,
        }
    }

    /// Returns when the server can be stopped, unless it is used again before.
    pub(super) fn ends_at(self) -> Option<Instant> {
        match self {
            Self::UsedUntil(until) => Some(until),
            Self::NotNeeded => Some(Instant::now()),
            _ => None,
        }
    }
}

impl Usage {
    fn need(&self, idle: Option<Duration>) -> Need {
        match (self.users, self.last_use, idle) {
            (0, None, _) => Need::NotNeeded,
            (0, Some(_), None) => Need::KeptRunning,
            (0, Some(last), Some(idle)) => Need::UsedUntil(last + idle),
            _ => Need::InUse,
        }
    }
}

/// Keeps a server needed until it is dropped.
#[derive(Debug)]
pub(crate) struct InUse(Arc<Demand>);

impl Drop for InUse {
    fn drop(&mut self) {
        {
            let mut usage = self.0.usage.lock();
            usage.users -= 1;
            usage.last_use = Some(Instant::now());
        }
        self.0.changed.notify_one();
    }
}

impl Demand {
    /// Marks the server as used until the returned value is dropped, and starts it if necessary.
    pub(super) fn enter(self: &Arc<Self>) -> InUse {
        {
            let mut usage = self.usage.lock();
            usage.users += 1;
            usage.requests += 1;
        }
        self.changed.notify_one();
        InUse(Arc::clone(self))
    }

    /// Records that the server was used just now.
    pub(super) fn touch(&self) {
        self.usage.lock().last_use = Some(Instant::now());
    }

    /// Returns how much the server is used.
    pub(super) fn summary(&self) -> UsageSummary {
        let usage = self.usage.lock();
        let unused_for = usage.last_use.filter(|_| usage.users == 0).map(|last| last.elapsed());
        UsageSummary { open: usage.users, requests: usage.requests, unused_for }
    }

    /// Waits until the need may have changed.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Wakes up the task that waits for a change.
    pub(super) fn notify(&self) {
        self.changed.notify_one();
    }
}

impl Upstream {
    /// Decides whether the server needs to run.
    pub(super) fn need(&self) -> Need {
        let policy = self.run_policy();
        let other_need = self.need_besides_use(&policy);
        other_need.unwrap_or_else(|| self.demand.usage.lock().need(policy.idle))
    }

    /// Returns when this process runs. If every client has its own process, this one runs only to fetch the lists, or for
    /// clients that cannot be told apart. If it has learned the roots of a client, it is stopped as soon as its requests
    /// have ended, because a new process can be shared again.
    fn run_policy(&self) -> RunPolicy {
        let policy = self.config().run_policy(&self.name);
        if self.knows_roots_of_a_client() {
            RunPolicy { start: StartPolicy::Lazy, idle: Some(Duration::ZERO), ..policy }
        } else if self.every_client_needs_own_process() {
            RunPolicy { start: StartPolicy::Lazy, ..policy }
        } else {
            policy
        }
    }

    /// Returns a reason to run that does not depend on requests.
    fn need_besides_use(&self, policy: &RunPolicy) -> Option<Need> {
        if policy.start == StartPolicy::Eager {
            Some(Need::Eager)
        } else if !self.lists_confirmed.load(Ordering::Relaxed) {
            Some(Need::ListsUnconfirmed)
        } else if self.has_subscriptions() {
            Some(Need::Subscriptions)
        } else {
            None
        }
    }

    /// Waits until the server needs to run. Until then its phase is [`ServerPhase::Idle`]. Returns false if the gateway
    /// stops.
    pub(super) async fn wait_until_needed(&self) -> bool {
        loop {
            if self.need().is_now() {
                if self.status().phase == ServerPhase::Idle {
                    self.set_status(ServerStatus::set_starting);
                }
                return true;
            }
            if self.status().phase != ServerPhase::Idle {
                self.set_status(|status| status.phase = ServerPhase::Idle);
            }
            tokio::select! {
                () = self.demand.changed() => {}
                () = self.stop.cancelled() => return false,
            }
        }
    }

    /// Removes the connection if nobody needs the server, so that no request can use it. Returns whether the caller must
    /// now close it.
    pub(super) fn release_connection_if_idle(&self) -> bool {
        let policy = self.run_policy();
        if self.need_besides_use(&policy).is_some() {
            return false;
        }
        let usage = self.demand.usage.lock();
        if usage.need(policy.idle).is_now() {
            return false;
        }
        self.connection.store(None);
        self.set_status(|status| status.phase = ServerPhase::Idle);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_is_needed_while_it_is_used_and_for_some_time_after() {
        let (demand, idle) = (Arc::new(Demand::default()), Duration::from_mins(1));
        let need = |idle| demand.usage.lock().need(idle);
        assert_eq!(need(Some(idle)), Need::NotNeeded);
        let (first, second) = (demand.enter(), demand.enter());
        drop(first);
        tokio::time::advance(idle * 2).await;
        assert_eq!(need(Some(idle)), Need::InUse);
        drop(second);
        let until = Instant::now() + idle;
        assert_eq!(need(Some(idle)), Need::UsedUntil(until));
        assert!(need(Some(idle)).is_now());
        tokio::time::advance(idle).await;
        assert!(!need(Some(idle)).is_now());
        assert_eq!(need(Some(idle)).ends_at(), Some(until));
        assert_eq!(need(None), Need::KeptRunning);
        assert!(need(None).is_now());
    }
}
