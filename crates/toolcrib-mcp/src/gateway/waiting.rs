//! Waiting for servers that have yet to answer for the first time.

use std::time::Duration;

use tokio::time::Instant;
use toolcrib_core::Reply;

use super::client::Client;
use super::{Gateway, Sight};
use crate::config::seconds;
use crate::upstream::FirstWaits;

/// Whether a search waits for servers that have yet to answer for the first time.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// What it found is good enough.
    No,
    /// It has hits, and another system's ranker, which has no measure of how good they are. The server that is
    /// starting may have a better one, but one that hangs must not delay every search.
    Once,
    /// It found nothing, a name is missing, or the hits are weak: waiting is all that can help.
    EachTime,
}

impl Wait {
    pub(super) fn of(reply: &Reply) -> Self {
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
    /// Waits until every server of which nothing is known has answered or failed, within the limit of the
    /// config.
    pub(super) async fn await_first_answers(&self, client: &Client, profile: Option<&str>) {
        let wait = seconds(self.hub().config().gateway.first_list_wait);
        let mut news = self.hub().watch();
        loop {
            news.mark_unchanged();
            let Ok(sight) = self.sight(profile) else { return };
            let Some(deadline) = self.deadline(&sight, |waits| waits.list(wait)) else { return };
            tokio::select! {
                changed = news.changed() => if changed.is_err() { return },
                () = tokio::time::sleep_until(deadline) => return,
                () = client.gone.cancelled() => return,
            }
        }
    }

    /// The latest deadline of the servers that a client may know of and that have yet to answer for the first
    /// time; `None` if all have passed.
    pub(super) fn deadline(
        &self,
        sight: &Sight,
        of: impl Fn(&FirstWaits) -> Instant,
    ) -> Option<Instant> {
        let awaited = sight.shelf.awaited().filter(|server| sight.view.knows(server));
        let upstreams = awaited.filter_map(|server| self.hub().upstream(server));
        let latest = upstreams.map(|upstream| of(upstream.first_waits())).max();
        latest.filter(|deadline| *deadline > Instant::now())
    }

    /// How long a search waits.
    pub(super) fn patience(&self) -> Duration {
        seconds(self.hub().config().gateway.wait)
    }
}
