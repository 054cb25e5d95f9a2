//! Combines word score and vector similarity into one score.
//!
//! A cosine similarity means the same in every query and catalog, so it is added without normalisation. The word score
//! is normalised in two ways: by the weight of the entire query, which shows how much of the query the tool matches,
//! and by the best word score of any tool, which shows whether other tools match better. In long requests, words have
//! more weight: the vector of a long request is an average of many things, while each matching word remains equally
//! meaningful.
//!
//! No quantity here is computed over the entire catalog, so hidden tools cannot influence a score.

/// Weight of the query coverage. This constant and the next three were chosen in trials on catalogs that the vector
/// table was not trained on, at the values where the results levelled off: see training/README.md.
const COVERAGE_WEIGHT: f32 = 0.12;
/// Maximum query coverage. The coverage exceeds 1 if a tool contains words several times or gets bonuses. Coverage
/// beyond this maximum is no further evidence that the tool fits.
pub(super) const MAX_COVERAGE: f32 = 1.5;
/// Weight of the ratio of a tool's word score to the best word score.
const BEST_SCORE_WEIGHT: f32 = 0.12;
/// The number of words in a query at which the word signal has weight 1.
const REFERENCE_QUERY_WORDS: f32 = 16.0;

/// The quantities by which the signals of a query are normalised.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct QueryNorms {
    /// The total weight of the query's words.
    pub(super) query_weight: f32,
    /// The best word score of any candidate.
    pub(super) best_word_score: f32,
    /// The number of words of the query.
    pub(super) query_words: usize,
}

/// The contribution of each signal to the score.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct FusedScore {
    pub(super) words: f32,
    pub(super) vectors: f32,
    /// The bonus of a general tool.
    pub(super) general: f32,
}

impl FusedScore {
    /// The complete score. The summands are always added in the same order, so that search and `explain` get exactly
    /// the same float.
    pub(super) fn total(self, exact: f32) -> f32 {
        self.words + self.vectors + self.general + exact
    }

    /// This score with the bonus of a general tool.
    pub(super) fn with_general(self, bonus: f32) -> Self {
        Self { general: bonus, ..self }
    }

    /// The score without any bonus of a general tool or of a tool that the query mentions by name.
    pub(super) fn without_bonuses(self) -> f32 {
        self.words + self.vectors
    }
}

impl QueryNorms {
    /// The weight of the word signal. It grows from 0.25 for queries of up to seven words to 3 for queries of 119 words
    /// or more.
    fn word_signal_weight(&self) -> f32 {
        1.0 + (self.query_words.max(1) as f32 / REFERENCE_QUERY_WORDS).ln().clamp(-0.75, 2.0)
    }
}

/// The share of the query's weight that a word score covers, from 0 to [`MAX_COVERAGE`].
pub(super) fn query_coverage(word_score: f32, query_weight: f32) -> f32 {
    if query_weight > 0.0 { (word_score / query_weight).min(MAX_COVERAGE) } else { 0.0 }
}

/// Combines the two signals. No other function decides how they are combined.
pub(super) fn fuse(word_score: f32, similarity: f32, norms: &QueryNorms) -> FusedScore {
    let of_best =
        if norms.best_word_score > 0.0 { word_score / norms.best_word_score } else { 0.0 };
    let coverage = query_coverage(word_score, norms.query_weight);
    let words =
        norms.word_signal_weight() * (COVERAGE_WEIGHT * coverage + BEST_SCORE_WEIGHT * of_best);
    FusedScore { words, vectors: similarity, general: 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn norms(query_weight: f32, best_word_score: f32, query_words: usize) -> QueryNorms {
        QueryNorms { query_weight, best_word_score, query_words }
    }

    #[test]
    fn the_score_grows_with_either_signal() {
        let score = |words, cosine| fuse(words, cosine, &norms(9.0, 8.0, 8)).total(0.0);
        assert!(score(8.0, 0.25) > score(4.0, 0.25) && score(4.0, 0.3) > score(4.0, 0.2));
        assert!((fuse(0.0, 0.7, &norms(9.0, 8.0, 8)).total(1_000.0) - 1_000.7).abs() < 1e-3);
    }

    #[test]
    fn low_coverage_scores_low_even_for_the_best_tool() {
        let full = fuse(8.0, 0.0, &norms(8.0, 8.0, 16));
        let slight = fuse(2.0, 0.0, &norms(8.0, 2.0, 16));
        assert!((full.words - 0.24).abs() < 1e-6 && (slight.words - 0.15).abs() < 1e-6);
        let stuffed = fuse(80.0, 0.0, &norms(8.0, 80.0, 16));
        assert!((stuffed.words - 0.3).abs() < 1e-6, "{}", stuffed.words);
    }

    #[test]
    fn words_have_more_weight_in_a_long_request() {
        let words = |query_words| fuse(8.0, 0.0, &norms(8.0, 8.0, query_words)).words;
        assert_eq!((words(0), words(1), words(16)), (0.06, 0.06, 0.24));
        assert!(words(8) < 0.08 && words(48) > 0.5 && (words(1_000) - 0.72).abs() < 1e-6);
    }

    #[test]
    fn a_zero_signal_adds_nothing() {
        assert_eq!(
            fuse(0.0, 0.5, &norms(0.0, 0.0, 3)),
            FusedScore { vectors: 0.5, ..FusedScore::default() }
        );
        assert_eq!(fuse(0.0, 0.0, &norms(4.0, 2.0, 3)), FusedScore::default());
    }
}
