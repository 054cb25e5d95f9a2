//! Edits text at known ranges.
//!
//! A request's JSON is never serialised again. Changes are inserted into the received text, so that all other bytes
//! stay the same.

use std::ops::Range;

/// Returns the range of `part` in `text`. `part` must be a slice of `text`.
pub(crate) fn range_of(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

/// Returns the text with the given ranges replaced.
pub(crate) fn splice(text: &str, changes: Vec<(Range<usize>, String)>) -> String {
    Edits::new(changes).apply(text)
}

/// Replacements in a text. Their ranges do not overlap.
#[derive(Debug)]
pub(crate) struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    pub(crate) fn new(mut changes: Vec<(Range<usize>, String)>) -> Self {
        changes.sort_by_key(|(range, _)| range.start);
        Self(changes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text with all replacements made.
    pub(crate) fn apply(&self, text: &str) -> String {
        let kept_bytes = self.0.iter().fold(text.len(), |left, (range, _)| left - range.len());
        let new_bytes: usize = self.0.iter().map(|(_, new)| new.len()).sum();
        let mut out = String::with_capacity(kept_bytes + new_bytes);
        let mut at = 0;
        for (range, new) in &self.0 {
            out.push_str(&text[at..range.start]);
            out.push_str(new);
            at = range.end;
        }
        out.push_str(&text[at..]);
        out
    }

    /// Returns the range that the text at `range` has after the replacements. `range` must not be only a part of a
    /// replaced range.
    pub(crate) fn range_after(&self, range: &Range<usize>) -> Range<usize> {
        let shift = |at: usize| {
            let before = self.0.iter().filter(|(changed, _)| changed.end <= at);
            before.fold(at, |at, (changed, new)| at + new.len() - changed.len())
        };
        shift(range.start)..shift(range.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_move_with_edits_before_them() {
        let text = "a bb ccc dd e";
        let edits = Edits::new(vec![(9..11, "D".into()), (2..4, "BBBB".into())]);
        let after = edits.apply(text);
        assert_eq!(after, "a BBBB ccc D e");
        for (before, expected) in
            [(0..1, "a"), (2..4, "BBBB"), (5..8, "ccc"), (9..11, "D"), (12..13, "e")]
        {
            assert_eq!(&after[edits.range_after(&before)], expected);
        }
    }
}
