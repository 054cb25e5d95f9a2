//! Calls that wait for a client of the newer protocol to answer a question by retrying its request.
//!
//! Each call is stored under a `requestState` that cannot be guessed and can be used once. The number of waiting calls
//! is limited. A call that waits too long expires and is cancelled at its server.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::forward_outcome::PausedFor;
use super::forwarded_request::ForwardedRequest;
use crate::server_pool::ServerPool;
use crate::upstream::Upstream;

/// Maximum number of waiting calls. At the maximum, a new call replaces the oldest.
const MAX_PENDING: usize = 1_024;
/// How long a call waits for an answer before it expires.
const MAX_WAIT: Duration = Duration::from_mins(10);

/// A call that waits for an answer.
pub(crate) struct PendingInput {
    pub(crate) forwarded: ForwardedRequest,
    pub(crate) paused_for: PausedFor,
    /// The profile of the client that sent the call. A client of another profile cannot continue the call.
    pub(crate) profile: Option<String>,
    /// The session of the client that sent the call, if it has one.
    session: Option<u64>,
    added_at: Instant,
}

impl PendingInput {
    /// Whether this call and `forwarded` are calls to the same server.
    fn has_same_server(&self, forwarded: &ForwardedRequest) -> bool {
        self.forwarded.server() == forwarded.server()
    }
}

/// Returns the start of every `requestState` that a gateway creates for calls of this server. It depends on the server's
/// config, because the server may be a Toolcrib that creates such states itself, and not on this run of the gateway,
/// because a client may retry a call after a restart.
fn own_state_prefix(upstream: &Upstream) -> String {
    let key =
        ServerPool::key(upstream.client_environment(), &upstream.name, &upstream.config()).to_hex();
    format!("toolcrib-{}-", &key[..16])
}

/// Whether a gateway created this `requestState` for a call of this server.
pub(super) fn is_own_state(upstream: &Upstream, state: &str) -> bool {
    state.starts_with(&own_state_prefix(upstream))
}

/// All waiting calls, by their `requestState`.
#[derive(Default)]
pub(crate) struct PendingInputs(Mutex<HashMap<String, PendingInput>>);

impl PendingInputs {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, PendingInput>> {
        self.0.lock()
    }

    /// Stores a call. Returns its `requestState`.
    pub(crate) fn add(
        &self,
        mut forwarded: ForwardedRequest,
        paused_for: PausedFor,
        (session, profile): (Option<u64>, Option<String>),
    ) -> std::io::Result<String> {
        let state = own_state_prefix(&forwarded.upstream) + &toolcrib_server::random::hex::<16>()?;
        self.drop_expired();
        let mut calls = self.lock();
        forwarded.release_global_permit();
        // The calls to one server that wait for answers must leave room for its other calls.
        let of_server =
            calls.values().filter(|pending| pending.has_same_server(&forwarded)).count();
        if calls.len() >= MAX_PENDING || of_server >= forwarded.max_pending_inputs() {
            let candidates = calls
                .iter()
                .filter(|(_, pending)| of_server == 0 || pending.has_same_server(&forwarded));
            let oldest = candidates
                .min_by_key(|(_, pending)| pending.added_at)
                .map(|(state, _)| state.clone());
            oldest.map(|state| calls.remove(&state));
        }
        calls.insert(
            state.clone(),
            PendingInput { forwarded, paused_for, profile, session, added_at: Instant::now() },
        );
        Ok(state)
    }

    /// Drops the calls that have expired or whose server no longer waits for the answer. Dropping a call cancels it.
    pub(crate) fn drop_expired(&self) {
        self.lock().retain(|_, pending| {
            pending.added_at.elapsed() < MAX_WAIT && !pending.paused_for.is_over()
        });
    }

    /// Drops the calls of a client that has disconnected. Dropping a call cancels it.
    pub(crate) fn end_session(&self, session: u64) {
        let is_ended = |_: &String, pending: &mut PendingInput| pending.session == Some(session);
        let ended: Vec<_> = self.lock().extract_if(is_ended).collect();
        drop(ended);
    }

    /// Removes and returns a call, if it belongs to this profile and the request is a retry of it.
    pub(crate) fn take(
        &self,
        state: &str,
        profile: Option<&str>,
        is_retry: impl FnOnce(&ForwardedRequest) -> bool,
    ) -> Option<PendingInput> {
        let mut calls = self.lock();
        let pending = calls.get(state)?;
        let may_take = pending.profile.as_deref() == profile
            && pending.added_at.elapsed() < MAX_WAIT
            && is_retry(&pending.forwarded);
        if may_take { calls.remove(state) } else { None }
    }
}
