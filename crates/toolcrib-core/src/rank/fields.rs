//! Where in a tool a word stands, and what that is worth.
//!
//! Lengths are measured against fixed pivots and not against the catalog's averages. A tool then
//! weighs the same whatever stands beside it: a scope cannot be told from its scores, and a weight
//! is computed once, when the tool comes in.

use crate::catalog::Catalog;
use crate::ingest::{Part, walk};
use crate::limits::Limits;
use crate::text::{is_stop, split_compound, words};
use crate::tool::Tool;

/// A field of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Field {
    /// Its name, without its server's.
    Name,
    /// Its title.
    Title,
    /// Its owner's keywords.
    Keywords,
    /// Its description.
    Description,
    /// Names of its parameters, at any depth.
    Parameters,
    /// What its schema says about them.
    ParameterText,
    /// Values of its enums.
    Values,
    /// Its server's name.
    Server,
    /// What its server says about itself.
    Instructions,
}

/// All fields, in order.
pub(super) const FIELDS: [Field; 9] = [
    Field::Name,
    Field::Title,
    Field::Keywords,
    Field::Description,
    Field::Parameters,
    Field::ParameterText,
    Field::Values,
    Field::Server,
    Field::Instructions,
];

/// What a word in a field is worth.
struct FieldWeighting {
    /// Its weight.
    weight: f32,
    /// How much of the weight a long field loses.
    b: f32,
    /// The length, in words, at which it loses nothing.
    pivot: f32,
}

impl Field {
    /// Chosen on ten retrieval sets, each left out in turn: docs/ranking.md. The plateau is broad;
    /// most of these may change by half without moving the mean by .002.
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

/// The point at which more of a term adds little.
const K1: f32 = 0.8;

/// What `count` occurrences in a field of `length` words are worth.
///
/// The square root makes repetition pay little within a field, the saturation below makes it pay
/// little over all of them: a description stuffed with words does not win.
pub(super) fn weighted_frequency(field: Field, count: u32, length: u32) -> f32 {
    let FieldWeighting { weight, b, pivot } = field.weighting();
    weight * (count as f32).sqrt() / (1.0 - b + b * length as f32 / pivot)
}

/// The weights of one term over all fields, saturated. At most `K1 + 1`.
pub(super) fn saturate(weight: f32) -> f32 {
    weight * (K1 + 1.0) / (weight + K1)
}

/// Calls `visit` for every word of a tool that is indexed. A run-together name counts as itself and
/// as its words.
pub(super) fn each_word(
    catalog: &Catalog,
    tool: &Tool,
    limits: &Limits,
    visit: &mut impl FnMut(Field, &str),
) {
    let mut left = limits.indexed_words;
    let mut take = |field: Field, text: &str| {
        words::each(text, &mut |word| {
            if left > 0 && !is_stop(word) {
                left -= 1;
                visit(field, word);
                if field == Field::Name {
                    for part in split_compound(word) {
                        visit(field, part);
                    }
                }
            }
        });
    };
    take(Field::Name, tool.name_without_server());
    tool.title().into_iter().for_each(|title| take(Field::Title, title));
    tool.keywords().for_each(|word| take(Field::Keywords, word));
    let description = tool.description();
    let indexed = description.floor_char_boundary(limits.indexed_description_bytes);
    take(Field::Description, &description[..indexed]);
    if let Some(server) = tool.server() {
        take(Field::Server, server);
        let about = catalog.instructions(server).unwrap_or_default();
        // A few sentences: the same words stand on every tool of the server.
        take(Field::Instructions, &about[..about.floor_char_boundary(400)]);
    }
    walk(&tool.schema_value(), &mut |part| match part {
        Part::Name(name) => take(Field::Parameters, name),
        Part::Text(text) => {
            take(
                Field::ParameterText,
                &text[..text.floor_char_boundary(limits.indexed_description_bytes)],
            );
        }
        Part::Value(value) => take(Field::Values, value),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetition_saturates() {
        let once = saturate(weighted_frequency(Field::Description, 1, 8));
        let stuffed = saturate(weighted_frequency(Field::Description, 50, 60));
        assert!(stuffed < 2.0 * once, "{stuffed} against {once}");
        assert!(saturate(1e9) <= K1 + 1.0);
    }

    #[test]
    fn a_long_field_says_less_with_each_word() {
        assert!(weighted_frequency(Field::Name, 1, 2) > weighted_frequency(Field::Name, 1, 6));
    }
}
