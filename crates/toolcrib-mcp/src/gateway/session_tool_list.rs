//! The tool list of one session. It records which tools the session has found, and which list it was last sent.

use parking_lot::{Mutex, MutexGuard};

use rmcp::model::ErrorData;
use serde_json::Value;
use toolcrib_core::Ledger;

use super::VisibleSnapshot;
use crate::snapshot::{ClientToolSearch, ListDecision};
use crate::snapshot::{ClientView, SessionKind};

/// Maximum number of found tools in one session's list. At the maximum, a new one replaces the oldest.
const MAX_FOUND_TOOLS: usize = toolcrib_core::conversation::DEFAULT_MAX_REVEALS;

#[derive(Debug)]
pub(super) struct SessionToolList(Mutex<ListState>);

#[derive(Debug)]
struct ListState {
    /// The tools that the session has found, and whether it keeps deferring tools even if there are fewer tools later.
    found: Ledger,
    /// What is known about the tool search of the session's client.
    client_search: ClientToolSearch,
    /// Whether the session's client shows the user interfaces of tools.
    shows_apps: bool,
    /// The hash of the list that the session was last sent, or `None` before its first list.
    sent_hash: Option<u64>,
    /// The hash of the list that the last notification announced. `None` if the session has fetched a list since that
    /// notification, or if the list is again the one that the session was last sent.
    notified_hash: Option<u64>,
}

impl Default for SessionToolList {
    fn default() -> Self {
        let found = Ledger::new(MAX_FOUND_TOOLS);
        Self(Mutex::new(ListState {
            found,
            client_search: ClientToolSearch::default(),
            shows_apps: false,
            sent_hash: None,
            notified_hash: None,
        }))
    }
}

impl ListState {
    /// Returns the hash of the list that the session would be sent now.
    fn list_hash(&self, view: &ClientView) -> u64 {
        if view.list_decision(self.client_search, SessionKind::Stateful).is_full {
            view.full_list_hash()
        } else {
            view.list_hash_with(&self.found, self.shows_apps)
        }
    }

    /// Whether to notify the session that its list changed. It is notified once for each list that differs from the
    /// list it was last sent. A session that was not sent a list yet is not notified, and neither is a session whose
    /// profile was removed.
    fn should_notify(&mut self, view: Option<&ClientView>) -> bool {
        let (Some(sent_hash), Some(view)) = (self.sent_hash, view) else { return false };
        let now = self.list_hash(view);
        let outdated = now != sent_hash;
        let notify = outdated && self.notified_hash != Some(now);
        self.notified_hash = outdated.then_some(now);
        notify
    }
}

impl SessionToolList {
    fn lock(&self) -> MutexGuard<'_, ListState> {
        self.0.lock()
    }

    /// Whether the session was sent a list.
    pub(super) fn has_sent_list(&self) -> bool {
        self.lock().sent_hash.is_some()
    }

    /// Returns the list to send, and whether it is the full list. `look` is called while the lock is held, so that the
    /// list cannot change before its hash is recorded.
    pub(super) fn send(
        &self,
        client_search: ClientToolSearch,
        shows_apps: bool,
        look: impl FnOnce() -> Result<VisibleSnapshot, ErrorData>,
    ) -> Result<(VisibleSnapshot, Value, ListDecision), ErrorData> {
        let mut state = self.lock();
        let visible = look()?;
        let view = &visible.view;
        (state.client_search, state.shows_apps) = (client_search, shows_apps);
        let decision = view.list_decision(client_search, SessionKind::Stateful);
        if !decision.is_full && view.keeps_deferring() {
            state.found.set_deferred();
        }
        (state.sent_hash, state.notified_hash) = (Some(state.list_hash(view)), None);
        let list = if decision.is_full {
            view.full_list()
        } else {
            view.list_with(&state.found, shows_apps)
        };
        Ok((visible, list, decision))
    }

    /// Records tools that the session has found. Returns whether to notify the client, which is not needed if the tools
    /// are already in its list.
    pub(super) fn add(&self, view: &ClientView, names: &[String]) -> bool {
        let mut state = self.lock();
        view.crib.reveal(&mut state.found, names);
        state.should_notify(Some(view))
    }

    /// Whether to notify the session that its list changed.
    pub(super) fn should_notify(&self, view: Option<&ClientView>) -> bool {
        self.lock().should_notify(view)
    }
}
