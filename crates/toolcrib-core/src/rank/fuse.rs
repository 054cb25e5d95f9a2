//! One score from two signals.
//!
//! A cosine means the same in every query and every catalog, so it counts as it is. What the words found
//! is set against two things: against all that was asked, since half of a query's words is weak proof, and
//! against the best that any tool has, since it is that one which a rare word points at. In a long
//! request words count for more: its vector is a mean of many things, while each word that fits still
//! fits.
//!
//! No number here is taken over the catalog, so nothing of a tool that is hidden can show.

/// What having all that was asked adds. This and the next three are where trials on catalogs that the
/// table had not seen levelled off: training/README.md.
const COVERAGE: f32 = 0.12;
/// A name and a description may say a word several times over; from here on more is no more proof.
pub(super) const MOST_COVERED: f32 = 1.5;
/// What having the most of all tools adds.
const BEST_WORDS: f32 = 0.12;
/// A query of this many words lets both signals speak as they are.
const USUAL: f32 = 16.0;

/// What a query's signals are measured against.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Yardstick {
    /// What the query's words weigh.
    pub(super) asked: f32,
    /// The best word score.
    pub(super) best_words: f32,
    /// How many words the query has.
    pub(super) length: usize,
}

/// What each signal gave.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Fused {
    pub(super) words: f32,
    pub(super) vectors: f32,
}

impl Fused {
    /// The score, in one fixed order, so that every reader gets the same float.
    pub(super) fn total(self, exact: f32) -> f32 {
        self.words + self.vectors + exact
    }
}

impl Yardstick {
    /// How loud the words speak: from a quarter in queries of up to seven words to three times from 119
    /// words on.
    fn voice(&self) -> f32 {
        1.0 + (self.length.max(1) as f32 / USUAL).ln().clamp(-0.75, 2.0)
    }
}

/// How much of what was asked a word score covers.
pub(super) fn coverage(words: f32, asked: f32) -> f32 {
    if asked > 0.0 { (words / asked).min(MOST_COVERED) } else { 0.0 }
}

/// The one decision on how the two signals are mixed.
pub(super) fn fuse(words: f32, cosine: f32, by: &Yardstick) -> Fused {
    let of_best = if by.best_words > 0.0 { words / by.best_words } else { 0.0 };
    let words = by.voice() * (COVERAGE * coverage(words, by.asked) + BEST_WORDS * of_best);
    Fused { words, vectors: cosine }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(asked: f32, best_words: f32, length: usize) -> Yardstick {
        Yardstick { asked, best_words, length }
    }

    #[test]
    fn more_of_either_is_a_better_score() {
        let score = |words, cosine| fuse(words, cosine, &by(9.0, 8.0, 8)).total(0.0);
        assert!(score(8.0, 0.25) > score(4.0, 0.25) && score(4.0, 0.3) > score(4.0, 0.2));
        assert!((fuse(0.0, 0.7, &by(9.0, 8.0, 8)).total(1_000.0) - 1_000.7).abs() < 1e-3);
    }

    #[test]
    fn words_that_cover_little_say_little_though_they_be_the_best() {
        let full = fuse(8.0, 0.0, &by(8.0, 8.0, 16));
        let slight = fuse(2.0, 0.0, &by(8.0, 2.0, 16));
        assert!((full.words - 0.24).abs() < 1e-6 && (slight.words - 0.15).abs() < 1e-6);
        let stuffed = fuse(80.0, 0.0, &by(8.0, 80.0, 16));
        assert!((stuffed.words - 0.3).abs() < 1e-6, "{}", stuffed.words);
    }

    #[test]
    fn words_speak_louder_in_a_long_request() {
        let words = |length| fuse(8.0, 0.0, &by(8.0, 8.0, length)).words;
        assert_eq!((words(0), words(1), words(16)), (0.06, 0.06, 0.24));
        assert!(words(8) < 0.08 && words(48) > 0.5 && (words(1_000) - 0.72).abs() < 1e-6);
    }

    #[test]
    fn a_signal_that_says_nothing_adds_nothing() {
        assert_eq!(fuse(0.0, 0.5, &by(0.0, 0.0, 3)), Fused { words: 0.0, vectors: 0.5 });
        assert_eq!(fuse(0.0, 0.0, &by(4.0, 2.0, 3)), Fused::default());
    }
}
