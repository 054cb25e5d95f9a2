//! Calls that wait for a client to come back with an answer.
//!
//! Each is kept under a name that cannot be guessed and is good once. They are few, they expire, and one
//! that does is cancelled at its server.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::ErrorData;
use serde_json::Value;
use tokio::sync::oneshot;

use super::exchange::Exchange;

/// Calls at most; the oldest goes first.
const MOST: usize = 1_024;
/// How long one waits.
const WAITS: Duration = Duration::from_mins(10);

/// A call that waits for an answer.
pub(crate) struct Parked {
    pub(crate) exchange: Exchange,
    pub(crate) answer: oneshot::Sender<Result<Value, ErrorData>>,
    /// Whose it is: another profile's client cannot take it.
    pub(crate) profile: Option<String>,
    since: Instant,
}

impl Parked {
    /// Whether it is with the same server.
    fn is_of(&self, exchange: &Exchange) -> bool {
        self.exchange.server() == exchange.server()
    }
}

/// All of them.
#[derive(Default)]
pub(crate) struct Lot(Mutex<HashMap<String, Parked>>);

impl Lot {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Parked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a call, and says under which name.
    pub(crate) fn park(
        &self,
        mut exchange: Exchange,
        answer: oneshot::Sender<Result<Value, ErrorData>>,
        profile: Option<String>,
    ) -> std::io::Result<String> {
        let name = format!("toolcrib-{}", toolcrib_server::random::hex::<16>()?);
        self.sweep();
        let mut calls = self.lock();
        exchange.rest();
        // One server's questions that nobody answers leave room for its other calls.
        let crowded = calls.values().filter(|parked| parked.is_of(&exchange)).count();
        if calls.len() >= MOST || crowded >= exchange.room() {
            let among = calls.iter().filter(|(_, parked)| crowded == 0 || parked.is_of(&exchange));
            let oldest = among.min_by_key(|(_, parked)| parked.since).map(|(name, _)| name.clone());
            oldest.map(|name| calls.remove(&name));
        }
        calls.insert(name.clone(), Parked { exchange, answer, profile, since: Instant::now() });
        Ok(name)
    }

    /// Lets go of calls that nobody came back for, or whose server gave up. Dropped, they are cancelled.
    pub(crate) fn sweep(&self) {
        self.lock()
            .retain(|_, parked| parked.since.elapsed() < WAITS && !parked.answer.is_closed());
    }

    /// Takes a call of a profile back, if it is the one that is asked for again.
    pub(crate) fn take(
        &self,
        name: &str,
        profile: Option<&str>,
        again: impl FnOnce(&Exchange) -> bool,
    ) -> Option<Parked> {
        let mut calls = self.lock();
        let parked = calls.get(name)?;
        let fits = parked.profile.as_deref() == profile
            && parked.since.elapsed() < WAITS
            && again(&parked.exchange);
        if fits { calls.remove(name) } else { None }
    }
}
