//! The fields of a tool, and the weight of a word in each field (BM25F).
//!
//! Field lengths are normalised by fixed pivots and not by averages over the catalog, so the weight of a word in a tool
//! does not depend on other tools. As a result, scores do not reveal hidden tools, and each weight is computed only
//! once, when the tool is indexed.

use crate::catalog::Catalog;
use crate::ingest::{Part, walk};
use crate::limits::Limits;
use crate::text::{is_stop, split_compound, words};
use crate::tool::Tool;

/// A field of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum IndexedField {
    /// The tool's name, without the name of its server.
    Name,
    /// The title.
    Title,
    /// The keywords that the tool's owner set.
    Keywords,
    /// The description.
    Description,
    /// The names of the tool's parameters, at any depth.
    Parameters,
    /// The descriptions of the tool's parameters.
    ParameterText,
    /// The values of enums in the tool's schema.
    Values,
    /// The name of the tool's server.
    Server,
    /// The instructions of the tool's server.
    Instructions,
}

/// All fields, in the order of the enum's variants.
pub(super) const FIELDS: [IndexedField; 9] = [
    IndexedField::Name,
    IndexedField::Title,
    IndexedField::Keywords,
    IndexedField::Description,
    IndexedField::Parameters,
    IndexedField::ParameterText,
    IndexedField::Values,
    IndexedField::Server,
    IndexedField::Instructions,
];

/// How words in a field are weighted.
struct FieldWeighting {
    /// The weight of the field.
    weight: f32,
    /// Strength of the length normalisation, from 0 (none) to 1 (full).
    b: f32,
    /// The field length, in words, at which the normalisation factor is 1.
    pivot: f32,
}

impl IndexedField {
    /// Returns the weighting of this field. The values were chosen on ten datasets with leave-one-out: see
    /// docs/ranking.md. The optimum is flat: most of these values can change by half without changing the mean nDCG by
    /// 0.002.
    fn weighting(self) -> FieldWeighting {
        let weighting = |weight, b, pivot| FieldWeighting { weight, b, pivot };
        match self {
            Self::Name => weighting(2.5, 0.4, 3.0),
            Self::Title => weighting(1.5, 0.4, 3.0),
            Self::Keywords => weighting(1.5, 0.4, 5.0),
            Self::Description => weighting(1.0, 0.4, 8.0),
            Self::Parameters => weighting(0.8, 0.5, 5.0),
            Self::ParameterText => weighting(0.6, 0.3, 25.0),
            Self::Values => weighting(0.5, 0.5, 5.0),
            Self::Server => weighting(1.5, 0.5, 2.0),
            Self::Instructions => weighting(0.3, 0.5, 25.0),
        }
    }
}

/// Saturation of the term frequency: the weighted frequency, over all fields, at which half of the maximum is reached.
const K1: f32 = 0.8;

/// The weighted term frequency of `count` occurrences in a field of `length` words.
///
/// The square root dampens repetition within a field, and [`saturate`] dampens it over all fields, so that a tool gains
/// little by repeating words.
pub(super) fn weighted_frequency(field: IndexedField, count: u32, length: u32) -> f32 {
    let FieldWeighting { weight, b, pivot } = field.weighting();
    weight * (count as f32).sqrt() / (1.0 - b + b * length as f32 / pivot)
}

/// Saturates the weighted frequency of a term, summed over all fields. The result is below `K1 + 1`.
pub(super) fn saturate(weight: f32) -> f32 {
    weight * (K1 + 1.0) / (weight + K1)
}

/// Calls `visit` with every indexed word of a tool. A compound word in the tool's name is passed as a whole, and its
/// parts are passed as well.
pub(super) fn each_word(
    catalog: &Catalog,
    tool: &Tool,
    limits: &Limits,
    visit: &mut impl FnMut(IndexedField, &str),
) {
    let mut left = limits.indexed_words;
    let mut take = |field: IndexedField, text: &str| {
        words::each(text, &mut |word| {
            if left > 0 && !is_stop(word) {
                left -= 1;
                visit(field, word);
                if field == IndexedField::Name {
                    for part in split_compound(word) {
                        visit(field, part);
                    }
                }
            }
        });
    };
    take(IndexedField::Name, tool.name_without_server());
    tool.title().into_iter().for_each(|title| take(IndexedField::Title, title));
    tool.keywords().for_each(|word| take(IndexedField::Keywords, word));
    let description = tool.description();
    let indexed = description.floor_char_boundary(limits.indexed_description_bytes);
    take(IndexedField::Description, &description[..indexed]);
    if let Some(server) = tool.server() {
        take(IndexedField::Server, server);
        let about = catalog.instructions(server).unwrap_or_default();
        // Only a few sentences are indexed, because all tools of the server have the same instructions, which therefore
        // do not distinguish them.
        take(IndexedField::Instructions, &about[..about.floor_char_boundary(400)]);
    }
    walk(&tool.schema_value(), &mut |part| match part {
        Part::Name(name) => take(IndexedField::Parameters, name),
        Part::Text(text) => {
            take(
                IndexedField::ParameterText,
                &text[..text.floor_char_boundary(limits.indexed_description_bytes)],
            );
        }
        Part::Value(value) => take(IndexedField::Values, value),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetition_saturates() {
        let once = saturate(weighted_frequency(IndexedField::Description, 1, 8));
        let stuffed = saturate(weighted_frequency(IndexedField::Description, 50, 60));
        assert!(stuffed < 2.0 * once, "{stuffed} against {once}");
        assert!(saturate(1e9) <= K1 + 1.0);
    }

    #[test]
    fn a_word_in_a_longer_field_weighs_less() {
        assert!(
            weighted_frequency(IndexedField::Name, 1, 2)
                > weighted_frequency(IndexedField::Name, 1, 6)
        );
    }
}
