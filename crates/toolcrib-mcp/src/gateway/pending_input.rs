//! Calls that wait for a client to come back with an answer.
//!
//! Each is kept under a state that cannot be guessed and is good once. They are few, they expire, and one
//! that does is cancelled at its server.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::ErrorData;
use serde_json::Value;
use tokio::sync::oneshot;

use super::forwarded_request::ForwardedRequest;

/// Calls at most; the oldest goes first.
const MAX_PENDING: usize = 1_024;
/// How long one waits.
const MAX_WAIT: Duration = Duration::from_mins(10);

/// A call that waits for an answer.
pub(crate) struct PendingInput {
    pub(crate) forwarded: ForwardedRequest,
    pub(crate) answer: oneshot::Sender<Result<Value, ErrorData>>,
    /// Whose it is: another profile's client cannot take it.
    pub(crate) profile: Option<String>,
    since: Instant,
}

impl PendingInput {
    /// Whether it is with the same server.
    fn has_same_server(&self, forwarded: &ForwardedRequest) -> bool {
        self.forwarded.server() == forwarded.server()
    }
}

/// All of them.
#[derive(Default)]
pub(crate) struct PendingInputs(Mutex<HashMap<String, PendingInput>>);

impl PendingInputs {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, PendingInput>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a call, and says under which state.
    pub(crate) fn add(
        &self,
        mut forwarded: ForwardedRequest,
        answer: oneshot::Sender<Result<Value, ErrorData>>,
        profile: Option<String>,
    ) -> std::io::Result<String> {
        let state = format!("toolcrib-{}", toolcrib_server::random::hex::<16>()?);
        self.drop_expired();
        let mut calls = self.lock();
        forwarded.release_global_permit();
        // One server's questions that nobody answers leave room for its other calls.
        let of_server =
            calls.values().filter(|pending| pending.has_same_server(&forwarded)).count();
        if calls.len() >= MAX_PENDING || of_server >= forwarded.max_pending_inputs() {
            let among = calls
                .iter()
                .filter(|(_, pending)| of_server == 0 || pending.has_same_server(&forwarded));
            let oldest =
                among.min_by_key(|(_, pending)| pending.since).map(|(state, _)| state.clone());
            oldest.map(|state| calls.remove(&state));
        }
        calls.insert(
            state.clone(),
            PendingInput { forwarded, answer, profile, since: Instant::now() },
        );
        Ok(state)
    }

    /// Lets go of calls that nobody came back for, or whose server gave up. Dropped, they are cancelled.
    pub(crate) fn drop_expired(&self) {
        self.lock()
            .retain(|_, pending| pending.since.elapsed() < MAX_WAIT && !pending.answer.is_closed());
    }

    /// Takes a call of a profile back, if it is the one that is asked for is_retry.
    pub(crate) fn take(
        &self,
        state: &str,
        profile: Option<&str>,
        is_retry: impl FnOnce(&ForwardedRequest) -> bool,
    ) -> Option<PendingInput> {
        let mut calls = self.lock();
        let pending = calls.get(state)?;
        let fits = pending.profile.as_deref() == profile
            && pending.since.elapsed() < MAX_WAIT
            && is_retry(&pending.forwarded);
        if fits { calls.remove(state) } else { None }
    }
}
