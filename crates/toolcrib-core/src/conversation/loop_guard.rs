//! Detects a model that repeats itself.
//!
//! Weak models may search nine times without calling anything, or send the same invalid call thirty times. The guard
//! counts searches and failures. It decides when a reply should warn the model and when it should also describe the
//! best hit.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

/// From this number of consecutive searches on, replies contain a warning.
const NUDGE_FROM: u32 = 3;
/// From this number of consecutive searches on, replies also describe the best hit.
const DESCRIBE_FROM: u32 = 5;
/// Maximum number of recent queries to keep, and of recent failed calls.
const MAX_REMEMBERED: usize = 8;

/// What a reply should add because the model keeps searching. The number is the count of consecutive searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoopWarning {
    /// The reply adds nothing.
    None,
    /// The reply adds a note that more searches will not help.
    Nudge(u32),
    /// The reply adds the note and the full schema of the best hit.
    Describe(u32),
}

/// Counts the searches and failures of one conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LoopGuard {
    searches: u32,
    queries: VecDeque<String>,
    failures: VecDeque<(u64, u32)>,
}

impl LoopGuard {
    /// Counts a search, and returns what the reply to this search should add. Loading a tool by name does not count as
    /// a search.
    pub(crate) fn searched(&mut self, query: &str) -> LoopWarning {
        self.searches = self.searches.saturating_add(1);
        if self.queries.len() == MAX_REMEMBERED {
            self.queries.pop_front();
        }
        self.queries.push_back(toolcrib_text::shorten(query, 80).into_owned());
        match self.searches {
            n if n >= DESCRIBE_FROM => LoopWarning::Describe(n),
            n if n >= NUDGE_FROM => LoopWarning::Nudge(n),
            _ => LoopWarning::None,
        }
    }

    /// Returns the most recent queries since the last tool call, oldest first.
    pub(crate) fn queries(&self) -> impl Iterator<Item = &str> {
        self.queries.iter().map(String::as_str)
    }

    /// Resets the count of searches because a tool was called.
    pub(crate) fn called(&mut self) {
        self.searches = 0;
        self.queries.clear();
    }

    /// Counts a failed call. Returns how often a call with this name and these arguments has failed.
    pub(crate) fn failed(&mut self, name: &str, arguments: &str) -> u32 {
        let mut hasher = FxHasher::default();
        (name, arguments).hash(&mut hasher);
        let key = hasher.finish();
        let seen = self.failures.iter().position(|(known, _)| *known == key);
        let times =
            seen.and_then(|at| self.failures.remove(at)).map_or(1, |(_, n)| n.saturating_add(1));
        if self.failures.len() == MAX_REMEMBERED {
            self.failures.pop_front();
        }
        self.failures.push_back((key, times));
        times
    }
}
