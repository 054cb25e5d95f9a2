//! Stops a model that goes in circles.
//!
//! Weak models search nine times without calling anything, or send the same invalid call thirty
//! times. The guard counts, and says when a reply should nudge and when it should stop asking and
//! hand over the answer.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

/// Searches in a row after which a reply nudges.
const NUDGE_AFTER: u32 = 3;
/// Searches in a row after which the best hit is described without being asked.
const DESCRIBE_AFTER: u32 = 5;
/// Queries and failures that are remembered.
const REMEMBERED: usize = 8;

/// What a reply should add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoopWarning {
    /// Nothing.
    None,
    /// A word that searching goes nowhere.
    Nudge(u32),
    /// That, and the full schema of the best hit.
    Describe(u32),
}

/// Counts of one conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LoopGuard {
    searches: u32,
    queries: VecDeque<String>,
    failures: VecDeque<(u64, u32)>,
}

impl LoopGuard {
    /// A search was made; loading by name is no search.
    pub(crate) fn searched(&mut self, query: &str) -> LoopWarning {
        self.searches = self.searches.saturating_add(1);
        if self.queries.len() == REMEMBERED {
            self.queries.pop_front();
        }
        self.queries.push_back(toolcrib_text::shorten(query, 80).into_owned());
        match self.searches {
            n if n >= DESCRIBE_AFTER => LoopWarning::Describe(n),
            n if n >= NUDGE_AFTER => LoopWarning::Nudge(n),
            _ => LoopWarning::None,
        }
    }

    /// The queries of the current streak, oldest first.
    pub(crate) fn queries(&self) -> impl Iterator<Item = &str> {
        self.queries.iter().map(String::as_str)
    }

    /// A tool was called: the streak is over.
    pub(crate) fn called(&mut self) {
        self.searches = 0;
        self.queries.clear();
    }

    /// A call failed; returns how often this very call has.
    pub(crate) fn failed(&mut self, name: &str, arguments: &str) -> u32 {
        let mut hasher = FxHasher::default();
        (name, arguments).hash(&mut hasher);
        let key = hasher.finish();
        let seen = self.failures.iter().position(|(known, _)| *known == key);
        let times =
            seen.and_then(|at| self.failures.remove(at)).map_or(1, |(_, n)| n.saturating_add(1));
        if self.failures.len() == REMEMBERED {
            self.failures.pop_front();
        }
        self.failures.push_back((key, times));
        times
    }
}
