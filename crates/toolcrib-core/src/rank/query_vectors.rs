//! The vectors of a query: one for the entire text, and one for each of its needs.

use std::borrow::Cow;

use toolcrib_embed::{FlatIndex, QuantisedVector};

use super::Correction;
use super::needs::{self, Needs};
use super::vectors::Vectors;
use crate::catalog::ToolId;

/// If the needs of a request are independent, this share of a tool's similarity comes from the need that the tool
/// serves best. The rest comes from the entire request. training/README.md shows how the value was chosen.
const NEED_WEIGHT: f32 = 0.5;

/// The vectors of a query.
pub(super) struct QueryVectors {
    pub(super) whole: QuantisedVector,
    /// The vector of each need. Empty if the request cannot be split.
    pub(super) needs: Vec<QuantisedVector>,
    /// Whether the needs are independent. If so, the similarity of a tool to the query includes its similarity to the
    /// need that the tool serves best.
    pub(super) needs_are_independent: bool,
}

impl QueryVectors {
    pub(super) fn new(vectors: &Vectors, text: &str, corrections: &[Correction]) -> Self {
        let text = apply_corrections(vectors, text, corrections);
        let vector = |text: &str| vectors.query(text);
        let Needs { ranges, independent } = needs::split(&text);
        let needs = ranges.into_iter().map(|need| vector(&text[need])).collect();
        Self { whole: vector(&text), needs, needs_are_independent: independent }
    }

    /// The cosine of a tool with each need.
    pub(super) fn need_similarities(&self, index: &FlatIndex, id: ToolId) -> Vec<f32> {
        self.needs.iter().map(|need| index.dot(id.index(), need)).collect()
    }

    /// The similarity of a tool to the query, computed from its cosine with the entire text and with each need.
    pub(super) fn similarity(&self, whole: f32, need_similarities: &[f32]) -> f32 {
        let needs = need_similarities.iter().copied().filter(|_| self.needs_are_independent);
        needs
            .reduce(f32::max)
            .map_or(whole, |need| (1.0 - NEED_WEIGHT) * whole + NEED_WEIGHT * need)
    }
}

/// Replaces misspelled words in the text, because a misspelled word has no useful vector. A word that the vector table
/// has is not replaced, even if the catalog does not have it. The rest of the text stays unchanged, because line breaks
/// and full stops separate the needs.
fn apply_corrections<'a>(
    vectors: &Vectors,
    text: &'a str,
    corrections: &[Correction],
) -> Cow<'a, str> {
    let mut result = Cow::Borrowed(text);
    for correction in corrections.iter().filter(|found| !vectors.has_word(&found.word)) {
        let mut from = 0;
        while let Some(at) = find_word(&result, from, &correction.word) {
            result.to_mut().replace_range(at..at + correction.word.len(), &correction.read_as);
            from = at + correction.read_as.len();
        }
    }
    result
}

/// Returns the position of `word`, which is in lower case, as an entire word in the text. Case is ignored, and the
/// search starts at `from`. Corrected words are always ASCII, so changing the case does not change their length.
fn find_word(text: &str, from: usize, word: &str) -> Option<usize> {
    let (text, length) = (text.as_bytes(), word.len());
    let is_boundary =
        |at: Option<&u8>| at.is_none_or(|byte| byte.is_ascii() && !byte.is_ascii_alphanumeric());
    (from..=text.len().checked_sub(length)?).find(|at| {
        text[*at..at + length].eq_ignore_ascii_case(word.as_bytes())
            && is_boundary(at.checked_sub(1).and_then(|before| text.get(before)))
            && is_boundary(text.get(at + length))
    })
}

#[cfg(all(test, feature = "vectors"))]
mod tests {
    use super::*;

    #[test]
    fn misspelled_words_are_replaced_and_the_rest_is_kept() {
        let vectors = Vectors::default();
        let found = |word: &str| Correction { word: word.into(), read_as: "issue".into() };
        let read = |text| {
            apply_corrections(&vectors, text, &[found("isuee"), found("invoice")]).into_owned()
        };
        // `invoice` is not replaced although there is a correction for it, because the vector table has it.
        assert_eq!(
            read("Close the Isuee.\nMail the invoice"),
            "Close the issue.\nMail the invoice"
        );
        assert_eq!(read("isueesque é isuee"), "isueesque é issue");
        assert_eq!(read("isuee: isuee"), "issue: issue");
        assert_eq!(read(""), "");
    }
}
