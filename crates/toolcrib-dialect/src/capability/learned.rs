//! What upstreams have refused.
//!
//! A refusal holds for a while and no longer: providers add features, and a wrong lesson should not
//! last. The value is bounded, and it can be written out, so that replicas learn from each other.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{UnsupportedFeature, host_of, normalise};
use crate::api::Api;

/// Hours a refusal holds, unless told otherwise.
pub const HOURS: u64 = 24;
/// Refusals that are kept; the oldest makes room.
pub const REFUSALS: usize = 1_024;

/// One refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LearnedEntry {
    api: Api,
    host: String,
    /// In its normal form.
    model: String,
    missing: UnsupportedFeature,
    /// Seconds, on the clock of whoever learned it.
    at: u64,
}

impl LearnedEntry {
    fn is_like(&self, other: &Self) -> bool {
        (self.api, &self.host, &self.model, self.missing)
            == (other.api, &other.host, &other.model, other.missing)
    }
}

/// What upstreams have refused, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<LearnedEntry>", into = "Vec<LearnedEntry>")]
pub struct LearnedUnsupported {
    refused: VecDeque<LearnedEntry>,
    /// Seconds a refusal holds.
    holds: u64,
}

impl Default for LearnedUnsupported {
    fn default() -> Self {
        Self::new(HOURS)
    }
}

impl LearnedUnsupported {
    /// Nothing yet; what is learned holds for this many hours.
    pub fn new(hours: u64) -> Self {
        Self { refused: VecDeque::new(), holds: hours.saturating_mul(3_600) }
    }

    /// Takes a refusal in. `now` is in seconds, since whenever all that share this value agree on.
    pub fn learn(
        &mut self,
        api: Api,
        host: &str,
        model: &str,
        missing: UnsupportedFeature,
        now: u64,
    ) {
        let model = normalise(model).id().to_owned();
        self.take(LearnedEntry { api, host: host_of(host), model, missing, at: now });
    }

    /// What is missing there, as far as that is still to be believed.
    pub fn missing(
        &self,
        api: Api,
        host: &str,
        model: &str,
        now: u64,
    ) -> impl Iterator<Item = UnsupportedFeature> {
        let (host, model) = (host_of(host), normalise(model));
        // A time far ahead is a broken clock's, and would hold for ever.
        let holds = move |at: u64| now.abs_diff(at) < self.holds;
        let here = move |refused: &&LearnedEntry| {
            refused.api == api && refused.host == host && refused.model == model.id()
        };
        self.refused.iter().filter(here).filter(move |r| holds(r.at)).map(|r| r.missing)
    }

    /// Takes in what another has learned.
    pub fn merge(&mut self, other: Self) {
        for refused in other.refused {
            self.take(refused);
        }
    }

    /// How many refusals there are.
    pub fn len(&self) -> usize {
        self.refused.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.refused.is_empty()
    }

    fn take(&mut self, mut refused: LearnedEntry) {
        if let Some(at) = self.refused.iter().position(|known| known.is_like(&refused)) {
            let known = self.refused.remove(at);
            refused.at = known.map_or(refused.at, |known| known.at.max(refused.at));
        }
        let place = self.refused.partition_point(|known| known.at <= refused.at);
        self.refused.insert(place, refused);
        if self.refused.len() > REFUSALS {
            self.refused.pop_front();
        }
    }
}

impl From<Vec<LearnedEntry>> for LearnedUnsupported {
    fn from(list: Vec<LearnedEntry>) -> Self {
        let mut learned = Self::default();
        for refused in list {
            learned.take(refused);
        }
        learned
    }
}

impl From<LearnedUnsupported> for Vec<LearnedEntry> {
    fn from(learned: LearnedUnsupported) -> Self {
        learned.refused.into()
    }
}
