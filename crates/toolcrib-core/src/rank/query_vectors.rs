//! The vectors of a query: those of the entire text, and those of each of its needs.
//!
//! Each of them comes from the table, and, if tools have deep vectors, also from the encoder. The encoder reads the query
//! once: the vector of a need is the mean of the states of its words.

use std::borrow::Cow;

use toolcrib_embed::QuantisedVector;

use super::deep_index::DeepIndex;
use super::deep_vectors::EncodedQuery;
use super::generality::{GeneralMatch, RequestTypes};
use super::needs::{self, Needs};
use super::vectors::{VectorView, Vectors};
use super::{Correction, Tier};
use crate::catalog::ToolId;

/// The weight of the deep cosine in the similarity. training/README.md shows how this constant and the next one were
/// chosen.
const DEEP_WEIGHT: f32 = 1.0;
/// The weight of the cosine of the table, for queries that also have a deep vector. The table still contributes, because
/// the encoder alone ranks worse.
const TABLE_WEIGHT: f32 = 0.4;
/// The weight of the cosine of the table in the similarity to a need, for the ranking. It is higher than for an entire query,
/// because requests with several needs then find more of their tools (training/README.md). Confidences were fitted with the
/// lower weight.
const NEED_TABLE_WEIGHT: f32 = 0.8;
/// Slope and base of the deep cosine as a linear function of the cosine of the table.
const ESTIMATE_SLOPE: f32 = 0.8;
const ESTIMATE_BASE: f32 = 0.05;

/// If the needs of a request are independent, this share of a tool's similarity comes from the need that the tool
/// serves best. The rest comes from the entire request. training/README.md shows how the value was chosen.
const NEED_WEIGHT: f32 = 0.5;

/// The vectors of a query.
pub(super) struct QueryVectors {
    table: TableVectors,
    /// `None` if the query is ranked with the table alone: no tool has a deep vector, or the encoder does not know the
    /// language of the query.
    deep: Option<EncodedQuery>,
    /// Which types of general tools the query needs.
    request_types: RequestTypes,
    /// Whether the needs are independent. If so, the similarity of a tool to the query includes its similarity to the
    /// need that the tool serves best.
    pub(super) needs_are_independent: bool,
}

/// The vectors of a query from the table.
struct TableVectors {
    whole: QuantisedVector,
    /// The vector of each need. Empty if the request cannot be split.
    needs: Vec<QuantisedVector>,
}

impl QueryVectors {
    pub(super) fn new(
        vectors: &Vectors,
        view: &VectorView<'_>,
        text: &str,
        corrections: &[Correction],
    ) -> Self {
        let text = apply_corrections(vectors, text, corrections);
        let vector = |text: &str| vectors.query(text);
        let Needs { ranges, independent } = needs::split(&text);
        let needs = ranges.iter().map(|need| vector(&text[need.clone()])).collect();
        // A query that has only filters has no text. The table gives it the zero vector, and an encoder would give it an
        // arbitrary one.
        let has_text = text.contains(char::is_alphanumeric);
        let index = view.deep.as_ref().filter(|_| has_text);
        let deep = index.and_then(|_| vectors.deep_query(&text, &ranges));
        let request_types = vectors
            .general_types()
            .zip(deep.as_ref())
            .map_or_else(RequestTypes::default, |(types, query)| RequestTypes::new(types, query));
        let table = TableVectors { whole: vector(&text), needs };
        Self { table, deep, request_types, needs_are_independent: independent }
    }

    /// Whether the similarities come from the encoder.
    pub(super) fn tier(&self) -> Tier {
        if self.deep.is_some() { Tier::Deep } else { Tier::Table }
    }

    /// The number of needs that the query was split into.
    pub(super) fn needs(&self) -> usize {
        self.table.needs.len()
    }

    /// Replaces the contents of `out` by the similarity of each tool to the entire query.
    pub(super) fn scan(&self, view: &VectorView<'_>, out: &mut Vec<f32>) {
        view.table.scan(&self.table.whole, out);
        let Some((query, index)) = self.deep.as_ref().zip(view.deep.as_ref()) else { return };
        let mut deep = Vec::new();
        index.vectors.scan(&query.whole, &mut deep);
        for ((out, deep), present) in out.iter_mut().zip(deep).zip(&index.present) {
            *out = combine(*out, present.then_some(deep));
        }
    }

    /// The type of general tools that best matches both the query and the tool. `None` if the query is ranked with the table
    /// alone, or if the encoder knows no types.
    pub(super) fn general_match(&self, view: &VectorView<'_>, id: ToolId) -> Option<GeneralMatch> {
        view.deep.as_ref()?.tool_types.best_match(id.index(), &self.request_types)
    }

    /// The similarities, plus the maximum bonuses of general tools. `None` if no tool can get such a bonus.
    pub(super) fn with_general_bonuses(
        &self,
        view: &VectorView<'_>,
        similarities: &[f32],
    ) -> Option<Vec<f32>> {
        let index = view.deep.as_ref().filter(|_| !self.request_types.is_empty())?;
        let with_bonus = |(tool, similarity): (usize, &f32)| {
            let general = index.tool_types.best_match(tool, &self.request_types);
            similarity + general.map_or(0.0, |general| general.bonus(0.0, 0.0))
        };
        Some(similarities.iter().enumerate().map(with_bonus).collect())
    }

    /// The similarity of a tool to the entire query, and the cosines from which it is computed.
    pub(super) fn whole_similarity(&self, view: &VectorView<'_>, id: ToolId) -> WholeSimilarity {
        let table = view.table.dot(id.index(), &self.table.whole);
        let tool = self.deep_tool(view, id);
        let deep = tool.map(|(query, index)| index.vectors.dot(id.index(), &query.whole));
        let combined = if self.deep.is_some() { combine(table, deep) } else { table };
        WholeSimilarity { table, deep, combined }
    }

    /// The similarity of a tool to each need.
    pub(super) fn need_similarities(
        &self,
        view: &VectorView<'_>,
        id: ToolId,
    ) -> Vec<NeedSimilarity> {
        let tool = self.deep_tool(view, id);
        let similarity = |(at, need): (usize, &QuantisedVector)| {
            let table = view.table.dot(id.index(), need);
            let deep = tool.and_then(|(query, index)| {
                Some(index.vectors.dot(id.index(), query.needs.get(at)?.as_ref()?))
            });
            if self.deep.is_none() {
                return NeedSimilarity { for_ranking: table, for_confidence: table };
            }
            let similarity = combine(table, deep);
            let for_ranking = similarity + (NEED_TABLE_WEIGHT - TABLE_WEIGHT) * table;
            NeedSimilarity { for_ranking, for_confidence: similarity }
        };
        self.table.needs.iter().enumerate().map(similarity).collect()
    }

    /// The deep vectors of the query, and the index that contains the deep vector of the tool. `None` if one of the two
    /// vectors is missing.
    fn deep_tool<'a>(
        &'a self,
        view: &'a VectorView<'_>,
        id: ToolId,
    ) -> Option<(&'a EncodedQuery, &'a DeepIndex)> {
        let index = view.deep.as_deref().filter(|index| index.present[id.index()])?;
        Some((self.deep.as_ref()?, index))
    }

    /// The similarity of a tool to the query, computed from its similarity to the entire text and to each need.
    pub(super) fn similarity(&self, whole: f32, needs: impl Iterator<Item = f32>) -> f32 {
        let needs = needs.filter(|_| self.needs_are_independent);
        needs
            .reduce(f32::max)
            .map_or(whole, |need| (1.0 - NEED_WEIGHT) * whole + NEED_WEIGHT * need)
    }
}

/// The similarity of a tool to one need of a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NeedSimilarity {
    pub(super) for_ranking: f32,
    pub(super) for_confidence: f32,
}

/// The similarity of a tool to a query as a whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WholeSimilarity {
    /// The cosine of the vectors from the table.
    pub(super) table: f32,
    /// The cosine of the deep vectors, if both exist.
    pub(super) deep: Option<f32>,
    pub(super) combined: f32,
}

/// Combines the cosines of the two tiers. No other function decides how they are combined. If the tool has no deep
/// vector yet, the deep cosine is estimated from the cosine of the table.
fn combine(table: f32, deep: Option<f32>) -> f32 {
    let deep = deep.unwrap_or(ESTIMATE_SLOPE * table + ESTIMATE_BASE);
    DEEP_WEIGHT * deep + TABLE_WEIGHT * table
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
