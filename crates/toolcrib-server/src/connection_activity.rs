//! What one connection is doing, and since when. Timeouts and eviction depend on it.
//!
//! The stream reports bytes, and the HTTP service reports requests. Each phase has a timeout, except the phase in which
//! a request is in flight, because an event stream may be silent for any length of time.

use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// The timeouts of a connection's phases.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// Maximum time until the head of a request is complete. The time starts with the request's first byte or, for the
    /// first request, when the connection is opened.
    pub(crate) header: Duration,
    /// Maximum time between two requests.
    pub(crate) idle: Duration,
    /// Maximum time between two chunks of a request body.
    pub(crate) body: Duration,
}

/// The state of one connection, shared by its stream, its service and the table of connections.
#[derive(Debug)]
pub(crate) struct ConnectionActivity {
    state: Mutex<PhaseState>,
    evicted: Notify,
}

#[derive(Debug, Clone, Copy)]
struct PhaseState {
    phase: Phase,
    since: Instant,
    is_evicted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The head of a request is being received. A new connection starts in this phase.
    Head,
    /// A request's head is complete, and hyper has not yet taken the end of its response body.
    InFlight,
    /// No request is in flight, and no byte of the next request has arrived.
    Idle,
}

impl ConnectionActivity {
    pub(crate) fn new() -> Self {
        let state = PhaseState { phase: Phase::Head, since: Instant::now(), is_evicted: false };
        Self { state: Mutex::new(state), evicted: Notify::new() }
    }

    /// Records that bytes were received. The timeout for the head of a request starts at the first byte. Later bytes do
    /// not restart it, because otherwise a client that sends one byte every few seconds could keep a connection open
    /// forever.
    pub(crate) fn bytes_received(&self) {
        let mut state = self.lock();
        if state.phase == Phase::Idle {
            state.enter(Phase::Head);
        }
    }

    /// Records that bytes were sent. If no request is in flight, restarts the idle time: hyper may still be sending the
    /// last bytes of a long response after the request has ended.
    pub(crate) fn bytes_sent(&self) {
        let mut state = self.lock();
        if state.phase == Phase::Idle {
            state.since = Instant::now();
        }
    }

    /// Records that the head of a request is complete. The request is in flight until the returned value is dropped.
    pub(crate) fn begin_request(self: &Arc<Self>) -> InFlight {
        self.lock().enter(Phase::InFlight);
        InFlight(Arc::clone(self))
    }

    /// Returns when the current phase began, or when bytes were last sent in the idle phase. Returns `None` if a
    /// request is in flight or the connection is evicted.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let state = self.lock();
        (state.phase != Phase::InFlight && !state.is_evicted).then_some(state.since)
    }

    /// Whether the connection is being closed to make room for others.
    pub(crate) fn is_evicted(&self) -> bool {
        self.lock().is_evicted
    }

    /// Evicts the connection and returns `true`, unless a request is in flight or the connection is already evicted.
    pub(crate) fn evict(&self) -> bool {
        let mut state = self.lock();
        if state.phase == Phase::InFlight || state.is_evicted {
            return false;
        }
        state.is_evicted = true;
        self.evicted.notify_one();
        true
    }

    /// Completes when the connection must close to make room for others.
    pub(crate) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Returns when to check the connection next, or `None` if it has timed out and must be closed.
    ///
    /// The time until the next check is never longer than the head timeout or the idle timeout, so a phase that starts
    /// after this call is checked in time. Rejected: a timer that every request resets, which would slow down every
    /// request.
    pub(crate) fn next_check(&self, timeouts: &Timeouts) -> Option<Instant> {
        let (state, now) = (*self.lock(), Instant::now());
        let latest = now + timeouts.header.min(timeouts.idle);
        let deadline = match state.phase {
            Phase::Head => state.since + timeouts.header,
            Phase::Idle => state.since + timeouts.idle,
            Phase::InFlight => return Some(latest),
        };
        (deadline > now).then(|| deadline.min(latest))
    }

    fn lock(&self) -> MutexGuard<'_, PhaseState> {
        self.state.lock()
    }
}

impl PhaseState {
    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.since = Instant::now();
    }
}

/// A request in flight. Dropping it makes the connection idle.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<ConnectionActivity>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.lock().enter(Phase::Idle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: Timeouts = Timeouts {
        header: Duration::from_secs(30),
        idle: Duration::from_mins(2),
        body: Duration::from_secs(30),
    };

    /// Whether the connection is still open after `seconds`, if it is checked only at the times that `next_check`
    /// returns.
    async fn survives(activity: &ConnectionActivity, seconds: u64) -> bool {
        let end = Instant::now() + Duration::from_secs(seconds);
        loop {
            match activity.next_check(&TIMEOUTS) {
                None => return false,
                Some(at) if at > end => break,
                Some(at) => tokio::time::sleep_until(at).await,
            }
        }
        tokio::time::sleep_until(end).await;
        true
    }

    #[tokio::test(start_paused = true)]
    async fn each_phase_has_its_timeout_and_a_request_in_flight_has_none() {
        let activity = Arc::new(ConnectionActivity::new());
        assert!(survives(&activity, 29).await);
        activity.bytes_received();
        assert!(!survives(&activity, 1).await, "a new connection has 30 s for its first request");

        let activity = Arc::new(ConnectionActivity::new());
        let request = activity.begin_request();
        assert!(survives(&activity, 3600).await, "a silent stream stays open");
        assert!(!activity.evict() && activity.idle_since().is_none());
        drop(request);
        assert!(survives(&activity, 119).await);
        activity.bytes_received();
        for _ in 0..29 {
            assert!(survives(&activity, 1).await);
            activity.bytes_received();
        }
        assert!(!survives(&activity, 1).await, "more bytes do not extend the timeout of a head");

        let activity = Arc::new(ConnectionActivity::new());
        drop(activity.begin_request());
        assert!(survives(&activity, 119).await);
        activity.bytes_sent();
        assert!(survives(&activity, 119).await, "the end of a response is still being sent");
        assert!(!survives(&activity, 1).await);
    }

    #[tokio::test]
    async fn a_connection_is_retired_once() {
        let activity = ConnectionActivity::new();
        assert!(activity.idle_since().is_some() && activity.evict());
        assert!(!activity.evict() && activity.idle_since().is_none());
        activity.evicted().await;
    }
}
