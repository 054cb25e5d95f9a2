//! Waits for servers that have never answered, so that a search or a first tool list can include their tools.

use std::time::Duration;

use tokio::time::Instant;
use toolcrib_core::Reply;

use super::client::Client;
use super::{Gateway, VisibleSnapshot};
use crate::config::seconds;
use crate::upstream::FirstAnswerDeadlines;

/// Whether a search waits for servers that have never answered, in case they have better tools.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SearchWait {
    /// The search does not wait, because its hits are good enough.
    No,
    /// The search waits, but only once for each server. Its hits come from another system's ranker, which does not
    /// report how good they are. A starting server may have a better tool, but a server that hangs must not delay every
    /// search.
    Once,
    /// The search waits, and so does every later search of this kind. The search has no hits, a requested name is
    /// missing, or the hits are weak, so only another server can help.
    EachTime,
}

impl SearchWait {
    pub(super) fn for_reply(reply: &Reply) -> Self {
        if reply.is_strong() {
            Self::No
        } else if reply.fit.is_none() && !reply.hits.is_empty() && reply.missing.is_empty() {
            Self::Once
        } else {
            Self::EachTime
        }
    }
}

impl Gateway {
    /// Waits until every server whose lists are unknown has answered or failed, for at most the configured time.
    pub(super) async fn wait_for_startup(&self, client: &Client, profile: Option<&str>) {
        let wait = seconds(self.hub().config().gateway.first_list_wait);
        let mut snapshots = self.hub().subscribe();
        loop {
            snapshots.mark_unchanged();
            let Ok(visible) = self.visible_in_session(client.viewer(profile)) else { return };
            let Some(deadline) = self.startup_deadline(&visible, |waits| waits.list(wait)) else {
                return;
            };
            tokio::select! {
                changed = snapshots.changed() => if changed.is_err() { return },
                () = tokio::time::sleep_until(deadline) => return,
                () = client.abandoned.cancelled() => return,
            }
        }
    }

    /// Returns the latest deadline among the servers that the client may see and that have never answered. `of` chooses
    /// one of a server's deadlines. Returns `None` if there is no such server or the latest deadline has passed.
    pub(super) fn startup_deadline(
        &self,
        visible: &VisibleSnapshot,
        of: impl Fn(&FirstAnswerDeadlines) -> Instant,
    ) -> Option<Instant> {
        let awaited =
            visible.snapshot.awaited_servers().filter(|server| visible.view.can_see_server(server));
        let upstreams = awaited.filter_map(|server| self.hub().upstream(server));
        let latest = upstreams.map(|upstream| of(upstream.first_answer_deadlines())).max();
        latest.filter(|deadline| *deadline > Instant::now())
    }

    /// Returns the maximum time that a search waits for servers.
    pub(super) fn search_wait(&self) -> Duration {
        seconds(self.hub().config().gateway.wait)
    }
}
