//! The list of tools of one session: what it has found, and which list it was last sent.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::ErrorData;
use serde_json::Value;
use toolcrib_core::Ledger;

use super::Sight;
use crate::shelf::View;

/// Maximum number of found tools in one session's list; the oldest makes room for a new one.
const FOUND: usize = toolcrib_core::conversation::REVEALS;

/// The list of tools of one session.
#[derive(Debug)]
pub(super) struct SessionList(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Tools that it has found, if they are in its list from then on, and whether it goes on deferring.
    found: Ledger,
    /// The stamp of the list that it was last sent.
    sent: Option<u64>,
    /// The stamp of the list that it was told of since.
    told: Option<u64>,
}

impl Default for SessionList {
    fn default() -> Self {
        Self(Mutex::new(State { found: Ledger::new(FOUND), sent: None, told: None }))
    }
}

impl SessionList {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the session was sent a list.
    pub(super) fn is_sent(&self) -> bool {
        self.lock().sent.is_some()
    }

    /// The list to send. What clients can see is read and its stamp noted in one step, so that no change falls
    /// between the two.
    pub(super) fn send(
        &self,
        see: impl FnOnce() -> Result<Sight, ErrorData>,
    ) -> Result<(Sight, Value), ErrorData> {
        let mut state = self.lock();
        let sight = see()?;
        if sight.view.keeps_deferring() {
            state.found.set_deferred();
        }
        (state.sent, state.told) = (Some(sight.view.stamp_with(&state.found)), None);
        let list = sight.view.list_with(&state.found);
        Ok((sight, list))
    }

    /// Notes tools that the session has found; whether that changed anything.
    pub(super) fn add(&self, view: &View, names: &[String]) -> bool {
        let found = &mut self.lock().found;
        let before = found.clone();
        view.crib.reveal(found, names);
        *found != before
    }

    /// Whether the session is to be told that its list changed: once for each list that is not the one it was
    /// sent. A session that was sent none has none to change, and one that waits for its first list gets the
    /// new one.
    pub(super) fn is_to_be_told(&self, view: Option<&View>) -> bool {
        let mut state = self.lock();
        let now = view.map(|view| view.stamp_with(&state.found));
        let outdated = state.sent.is_some() && now != state.sent && now != state.told;
        if outdated {
            state.told = now;
        }
        outdated
    }
}
