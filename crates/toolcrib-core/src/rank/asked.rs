//! What is asked, as vectors: of the whole request, and of each of its needs.

use std::borrow::Cow;

use toolcrib_embed::{FlatIndex, QuantisedVector};

use super::Correction;
use super::needs::{self, Needs};
use super::vectors::Vectors;
use crate::catalog::ToolId;

/// How much of a tool's nearness is that to the need it serves best, and not to the whole request:
/// training/README.md.
const NEED: f32 = 0.5;

/// A query's vectors.
pub(super) struct Asked {
    pub(super) whole: QuantisedVector,
    pub(super) needs: Vec<QuantisedVector>,
    /// Whether the nearest need counts as the whole does.
    pub(super) apart: bool,
}

impl Asked {
    pub(super) fn new(vectors: &Vectors, text: &str, corrections: &[Correction]) -> Self {
        let text = corrected(vectors, text, corrections);
        let vector = |text: &str| vectors.query(text);
        let Needs { texts, apart } = needs::of(&text);
        Self { whole: vector(&text), needs: texts.iter().map(|need| vector(need)).collect(), apart }
    }

    /// How near a tool is to each need.
    pub(super) fn to_needs(&self, rows: &FlatIndex, id: ToolId) -> Vec<f32> {
        self.needs.iter().map(|need| rows.dot(id.index(), need)).collect()
    }

    /// How near a tool is, given its cosine with the whole and with each need.
    pub(super) fn nearness(&self, whole: f32, to_needs: &[f32]) -> f32 {
        let needs = to_needs.iter().copied().filter(|_| self.apart);
        needs.reduce(f32::max).map_or(whole, |need| (1.0 - NEED) * whole + NEED * need)
    }
}

/// The query as it was read: what was misspelled has no vector worth asking. A word that the table has
/// is no misspelling, though the catalog does not know it. All else stays, since lines and full stops part
/// the needs, and each need has its own words.
fn corrected<'a>(vectors: &Vectors, text: &'a str, corrections: &[Correction]) -> Cow<'a, str> {
    let mut read = Cow::Borrowed(text);
    for correction in corrections.iter().filter(|found| !vectors.knows(&found.word)) {
        let mut from = 0;
        while let Some(at) = place_of(&read, from, &correction.word) {
            read.to_mut().replace_range(at..at + correction.word.len(), &correction.read_as);
            from = at + correction.read_as.len();
        }
    }
    read
}

/// Where a word in lower case stands in a text by itself, from there on. Words that are misspelled are in ASCII here: in
/// another script a letter may change its length with its case.
fn place_of(text: &str, from: usize, word: &str) -> Option<usize> {
    let (text, length) = (text.as_bytes(), word.len());
    let ends =
        |at: Option<&u8>| at.is_none_or(|byte| byte.is_ascii() && !byte.is_ascii_alphanumeric());
    (from..=text.len().checked_sub(length)?).find(|at| {
        text[*at..at + length].eq_ignore_ascii_case(word.as_bytes())
            && ends(at.checked_sub(1).and_then(|before| text.get(before)))
            && ends(text.get(at + length))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_word_is_read_right_and_the_rest_stays_as_it_was() {
        let vectors = Vectors::default();
        let found = |word: &str| Correction { word: word.into(), read_as: "issue".into() };
        let read =
            |text| corrected(&vectors, text, &[found("isuee"), found("invoice")]).into_owned();
        // The table has `invoice`: that is another word and no typo.
        assert_eq!(
            read("Close the Isuee.\nMail the invoice"),
            "Close the issue.\nMail the invoice"
        );
        assert_eq!(read("isueesque é isuee"), "isueesque é issue");
        assert_eq!(read("isuee: isuee"), "issue: issue");
        assert_eq!(read(""), "");
    }
}
