//! Features that upstreams were found not to support.
//!
//! Entries expire, because providers add features, and because a wrong conclusion should not last. The number of
//! entries is bounded.

use std::collections::VecDeque;

use super::{UnsupportedFeature, normalise_host, normalise_model};
use crate::api::Api;

/// A feature that one upstream does not support for one model.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LearnedEntry {
    api: Api,
    host: String,
    /// The normalised id of the model.
    model: String,
    feature: UnsupportedFeature,
    /// When the upstream rejected the feature, in seconds on the caller's clock.
    learned_at: u64,
}

impl LearnedEntry {
    /// Whether both entries are about the same upstream, model and feature. Their times may differ.
    fn is_same(&self, other: &Self) -> bool {
        (self.api, &self.host, &self.model, self.feature)
            == (other.api, &other.host, &other.model, other.feature)
    }
}

/// Features that upstreams were found not to support, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnedUnsupported {
    entries: VecDeque<LearnedEntry>,
    /// How long an entry is valid, in seconds.
    valid_for: u64,
}

impl Default for LearnedUnsupported {
    fn default() -> Self {
        Self::new(Self::DEFAULT_HOURS)
    }
}

impl LearnedUnsupported {
    /// How long an entry is valid by default, in hours.
    pub const DEFAULT_HOURS: u64 = 24;
    /// Maximum number of entries. The oldest is dropped first.
    pub const MAX_ENTRIES: usize = 1_024;

    /// Creates an empty list whose entries are valid for this many hours.
    pub fn new(hours: u64) -> Self {
        Self { entries: VecDeque::new(), valid_for: hours.saturating_mul(3_600) }
    }

    /// Adds an unsupported feature. `now` is in seconds, on a clock that all users of this list share.
    pub fn learn(
        &mut self,
        api: Api,
        host: &str,
        model: &str,
        feature: UnsupportedFeature,
        now: u64,
    ) {
        let model = normalise_model(model).id().to_owned();
        self.add(LearnedEntry { api, host: normalise_host(host), model, feature, learned_at: now });
    }

    /// Returns the features that this upstream is known not to support for this model. Expired entries are ignored.
    pub fn unsupported(
        &self,
        api: Api,
        host: &str,
        model: &str,
        now: u64,
    ) -> impl Iterator<Item = UnsupportedFeature> {
        let (host, model) = (normalise_host(host), normalise_model(model));
        // An entry whose time is far in the future was recorded with a wrong clock. It is treated as expired; otherwise
        // it would never expire.
        let is_valid = move |entry: &&LearnedEntry| now.abs_diff(entry.learned_at) < self.valid_for;
        let applies = move |entry: &&LearnedEntry| {
            entry.api == api && entry.host == host && entry.model == model.id()
        };
        self.entries.iter().filter(applies).filter(is_valid).map(|entry| entry.feature)
    }

    /// Adds all entries of another list.
    pub fn merge(&mut self, other: Self) {
        for entry in other.entries {
            self.add(entry);
        }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn add(&mut self, mut entry: LearnedEntry) {
        if let Some(at) = self.entries.iter().position(|known| known.is_same(&entry)) {
            let known = self.entries.remove(at);
            let known_at = known.map_or(entry.learned_at, |known| known.learned_at);
            entry.learned_at = entry.learned_at.max(known_at);
        }
        let at = self.entries.partition_point(|known| known.learned_at <= entry.learned_at);
        self.entries.insert(at, entry);
        if self.entries.len() > Self::MAX_ENTRIES {
            self.entries.pop_front();
        }
    }
}
