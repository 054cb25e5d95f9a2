//! Whether a request needs a general tool, and which tools are general.
//!
//! A web search, a shell or a database serves requests that say nothing about searching, commands or SQL: "train strikes
//! in Italy" names only its subject. So such a request is not similar to the tool that serves it. The file of the encoder
//! contains classifiers for a few types of general tools. If a request probably needs a tool of a type, and a tool is of
//! that type, the tool gets a bonus, and a higher confidence.

use serde::Serialize;
use toolcrib_embed::{FlatIndex, GeneralType, QuantisedVector};

use super::deep_vectors::EncodedQuery;

/// The maximum bonus. This constant and the next one are the best of those in training/README.md.
const MAX_BONUS: f32 = 0.6;
/// If a tool is at least this similar to the request, general tools get no bonus: the request probably needs that tool.
const SIMILAR: f32 = 0.7;

/// How probably a request needs a tool of each type.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RequestTypes(Box<[f32]>);

impl RequestTypes {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// If a request has several needs, one of them may need a general tool, so the highest probability counts.
    pub(super) fn new(types: &[GeneralType], query: &EncodedQuery) -> Self {
        let probability = |one: &GeneralType| {
            let of = |vector: &QuantisedVector| {
                one.request.probability(vector.dot(one.request.direction()))
            };
            query.needs.iter().flatten().map(of).fold(of(&query.whole), f32::max)
        };
        Self(types.iter().map(probability).collect())
    }
}

/// How probably each tool of a catalog is of each type.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolTypes {
    types: usize,
    /// The probabilities of the first tool, then those of the second, and so on.
    probabilities: Box<[f32]>,
}

impl ToolTypes {
    /// Number of bytes for each tool.
    pub(super) fn bytes_per_tool(types: usize) -> usize {
        types * size_of::<f32>()
    }

    /// Classifies all tools. Tools without a vector are of no type.
    pub(super) fn new(types: &[GeneralType], tools: &FlatIndex, present: &[bool]) -> Self {
        let mut probabilities = vec![0.0; types.len() * tools.len()].into_boxed_slice();
        let mut cosines = Vec::new();
        for (at, one) in types.iter().enumerate() {
            tools.scan(one.tool.direction(), &mut cosines);
            let rows = probabilities.chunks_exact_mut(types.len());
            for ((row, cosine), present) in rows.zip(&cosines).zip(present) {
                if *present {
                    row[at] = one.tool.probability(*cosine);
                }
            }
        }
        Self { types: types.len(), probabilities }
    }

    /// The type for which both the tool and the request have a high probability.
    pub(super) fn best_match(&self, tool: usize, request: &RequestTypes) -> Option<GeneralMatch> {
        let start = tool * self.types;
        let row = self.probabilities.get(start..start + self.types)?;
        let pairs = row.iter().zip(&request.0).enumerate();
        let matches = pairs.map(|(of_type, (tool, request))| GeneralMatch {
            of_type,
            request: *request,
            tool: *tool,
        });
        matches.max_by(|a, b| a.strength().total_cmp(&b.strength()))
    }
}

/// A request and a tool of the same type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct GeneralMatch {
    /// The position of the type.
    pub(super) of_type: usize,
    pub(super) request: f32,
    pub(super) tool: f32,
}

impl GeneralMatch {
    /// The probability that both are of the type, from 0 to 1.
    pub(super) fn strength(&self) -> f32 {
        self.request * self.tool
    }

    /// The bonus that the tool gets. The more similar some tool is to the request, the lower it is.
    pub(super) fn bonus(&self, highest_similarity: f32) -> f32 {
        MAX_BONUS * self.strength() * (1.0 - highest_similarity / SIMILAR).clamp(0.0, 1.0)
    }

    /// The match, for explanations.
    pub(super) fn explained(&self, types: &[GeneralType], bonus: f32) -> Option<GeneralTool> {
        let name = types.get(self.of_type)?.name.clone();
        Some(GeneralTool { name, request: self.request, tool: self.tool, bonus })
    }
}

/// The type of general tools that best matches both the request and the tool. A tool that serves requests about any subject
/// gets a bonus although the request is not similar to it. The probabilities and the bonus may be 0.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GeneralTool {
    /// The name of the type, for example `info` for tools that search the web.
    #[serde(rename = "type")]
    pub name: String,
    /// The probability that the request needs a tool of this type.
    pub request: f32,
    /// The probability that the tool is of this type.
    pub tool: f32,
    /// The bonus.
    pub bonus: f32,
}
