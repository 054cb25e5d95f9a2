//! Warnings about the lists of servers, for the log.
//!
//! A snapshot is built whenever a list changes, and most of its warnings are the same as before. Only new warnings are
//! logged, up to a maximum for each server, because a server determines how many warnings there are and which names
//! they contain.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use toolcrib_text::shorten;

/// Maximum number of warnings about one server that are logged for one snapshot.
const MAX_WARNINGS: usize = 20;
/// Maximum length of a warning, in characters.
const MAX_CHARS: usize = 300;

/// The warnings of one snapshot.
#[derive(Debug, Default)]
pub(crate) struct ListWarnings {
    /// Hashes of all warnings of this snapshot, by server.
    known: HashMap<Arc<str>, HashSet<u64>>,
    /// Warnings that the previous snapshot did not have, by server.
    new: BTreeMap<Arc<str>, NewWarnings>,
}

#[derive(Debug, Default)]
struct NewWarnings {
    lines: Vec<String>,
    /// The number of new warnings beyond the maximum.
    more: usize,
}

/// Collects the warnings of one snapshot.
#[derive(Debug)]
pub(super) struct ListWarningsBuilder<'a> {
    before: Option<&'a ListWarnings>,
    warnings: ListWarnings,
}

impl<'a> ListWarningsBuilder<'a> {
    pub(super) fn after(before: Option<&'a ListWarnings>) -> Self {
        Self { before, warnings: ListWarnings::default() }
    }

    pub(super) fn add(&mut self, server: &Arc<str>, line: &str) {
        let mut hasher = DefaultHasher::new();
        line.hash(&mut hasher);
        let hash = hasher.finish();
        let is_known = |warnings: &ListWarnings| {
            warnings.known.get(server).is_some_and(|known| known.contains(&hash))
        };
        let was_known = self.before.is_some_and(is_known);
        let is_first = self.warnings.known.entry(Arc::clone(server)).or_default().insert(hash);
        if was_known || !is_first {
            return;
        }
        let new = self.warnings.new.entry(Arc::clone(server)).or_default();
        if new.lines.len() < MAX_WARNINGS {
            new.lines.push(shorten(line, MAX_CHARS).into_owned());
        } else {
            new.more += 1;
        }
    }

    pub(super) fn finish(self) -> ListWarnings {
        self.warnings
    }
}

impl ListWarnings {
    /// Returns the lines to log, each with its server.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&Arc<str>, String)> {
        self.new.iter().flat_map(|(server, new)| {
            let rest =
                (new.more > 0).then(|| format!("and {} more warnings about its lists", new.more));
            new.lines.iter().cloned().chain(rest).map(move |line| (server, line))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(before: Option<&ListWarnings>, lines: &[String]) -> ListWarnings {
        let mut collector = ListWarningsBuilder::after(before);
        for line in lines {
            collector.add(&Arc::from("shop"), line);
        }
        collector.finish()
    }

    fn logged(warnings: &ListWarnings) -> Vec<String> {
        warnings.lines().map(|(_, line)| line).collect()
    }

    #[test]
    fn only_new_warnings_are_logged_up_to_a_maximum() {
        let lines: Vec<String> =
            (0..MAX_WARNINGS + 5).map(|number| format!("line {number}")).collect();
        let first = warnings(None, &lines);
        let shown = logged(&first);
        assert_eq!(shown.len(), MAX_WARNINGS + 1);
        assert_eq!(shown.last().unwrap(), "and 5 more warnings about its lists");
        let next = warnings(Some(&first), &[lines[3].clone(), "x".repeat(1_000_000)]);
        let shown = logged(&next);
        assert!(shown.len() == 1 && shown[0].chars().count() == MAX_CHARS, "{shown:?}");
        assert_eq!(logged(&warnings(Some(&next), &lines[3..5])), ["line 4"]);
    }
}
