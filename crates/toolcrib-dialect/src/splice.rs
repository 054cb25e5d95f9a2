//! Edits of a text at known places.
//!
//! A request's JSON is never serialised again: what changes is spliced into the text that came, so that
//! everything else keeps its bytes.

use std::ops::Range;

/// The place of a part in a text. The part must be a slice of the text.
pub(crate) fn range_of(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

/// A text with some places changed.
pub(crate) fn splice(text: &str, changes: Vec<(Range<usize>, String)>) -> String {
    Edits::new(changes).apply(text)
}

/// Changes to one text, at places that do not overlap.
#[derive(Debug)]
pub(crate) struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    pub(crate) fn new(mut changes: Vec<(Range<usize>, String)>) -> Self {
        changes.sort_by_key(|(place, _)| place.start);
        Self(changes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text after the changes.
    pub(crate) fn apply(&self, text: &str) -> String {
        let kept = self.0.iter().fold(text.len(), |left, (place, _)| left - place.len());
        let new: usize = self.0.iter().map(|(_, new)| new.len()).sum();
        let mut out = String::with_capacity(kept + new);
        let mut at = 0;
        for (place, new) in &self.0 {
            out.push_str(&text[at..place.start]);
            out.push_str(new);
            at = place.end;
        }
        out.push_str(&text[at..]);
        out
    }

    /// The place after the changes of what was at `place` before. A changed place must be asked about as a
    /// whole, not for a part of it.
    pub(crate) fn range_after(&self, place: &Range<usize>) -> Range<usize> {
        let moved = |at: usize| {
            let before = self.0.iter().filter(|(changed, _)| changed.end <= at);
            before.fold(at, |at, (changed, new)| at + new.len() - changed.len())
        };
        moved(place.start)..moved(place.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_move_with_what_changes_before_them() {
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
