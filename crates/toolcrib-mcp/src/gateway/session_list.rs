//! The list of tools of one session: what it has found, and which list it was last sent.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::ErrorData;
use serde_json::Value;
use toolcrib_core::Ledger;

use super::Sight;
use crate::shelf::View;

/// Maximum number of found tools in one session's list; the oldest makes room for a new one.
const FOUND: usize = toolcrib_core::conversation::DEFAULT_MAX_REVEALS;

/// The list of tools of one session.
#[derive(Debug)]
pub(super) struct SessionList(Mutex<State>);

#[derive(Debug)]
struct State {
    /// The found tools that its list shows, and whether the session keeps deferring.
    found: Ledger,
    /// Whether its client searches tools itself.
    searches: bool,
    /// The stamp of the list that it was last sent; `None` until its first list.
    sent: Option<u64>,
    /// The stamp of the list that it was last notified of, while that is not the one it was sent.
    notified: Option<u64>,
}

impl Default for SessionList {
    fn default() -> Self {
        let found = Ledger::new(FOUND);
        Self(Mutex::new(State { found, searches: false, sent: None, notified: None }))
    }
}

impl State {
    /// The stamp of the list that the session would be sent now.
    fn stamp(&self, view: &View) -> u64 {
        if view.is_full_for(self.searches) {
            view.full_stamp()
        } else {
            view.stamp_with(&self.found)
        }
    }

    /// Whether to notify the session that its list changed: once for each list that differs from the one it was
    /// sent. A session that was sent none has nothing outdated. A profile that is gone has no list to fetch.
    fn should_notify(&mut self, view: Option<&View>) -> bool {
        let (Some(sent), Some(view)) = (self.sent, view) else { return false };
        let now = self.stamp(view);
        let outdated = now != sent;
        let notify = outdated && self.notified != Some(now);
        self.notified = outdated.then_some(now);
        notify
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

    /// The list to send; `searches` says whether the client searches tools itself. What clients can see is read
    /// and its stamp noted in one step, so that no change falls between the two.
    pub(super) fn send(
        &self,
        searches: bool,
        see: impl FnOnce() -> Result<Sight, ErrorData>,
    ) -> Result<(Sight, Value), ErrorData> {
        let mut state = self.lock();
        let sight = see()?;
        let view = &sight.view;
        state.searches = searches;
        let full = view.is_full_for(searches);
        if !full && view.keeps_deferring() {
            state.found.set_deferred();
        }
        (state.sent, state.notified) = (Some(state.stamp(view)), None);
        let list = if full { view.full() } else { view.list_with(&state.found) };
        Ok((sight, list))
    }

    /// Notes tools that the session has found, and says whether to notify it: they need not be new to its list.
    pub(super) fn add(&self, view: &View, names: &[String]) -> bool {
        let mut state = self.lock();
        view.crib.reveal(&mut state.found, names);
        state.should_notify(Some(view))
    }

    /// Whether to notify the session that its list changed.
    pub(super) fn should_notify(&self, view: Option<&View>) -> bool {
        self.lock().should_notify(view)
    }
}
