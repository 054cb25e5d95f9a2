//! Whether a request needs a general tool, and which tools are general.
//!
//! A web search, a shell or a database serves requests that say nothing about searching, commands or SQL: "train strikes
//! in Italy" names only its subject. So such a request is not similar to the tool that serves it. The file of the encoder
//! contains classifiers for a few types of general tools. If a request probably needs a tool of a type, and a tool is of
//! that type, the tool gets a bonus, and a higher confidence.

use serde::Serialize;
use toolcrib_embed::{FlatIndex, GeneralTypes};

use super::deep_vectors::EncodedQuery;

/// The maximum bonus. training/README.md has the figures for other values of this constant and the next ones.
const MAX_BONUS: f32 = 1.2;
/// If a tool is at least this similar to the request, a general tool does not come before it: the request probably needs
/// that tool.
const SIMILAR: f32 = 0.55;
/// The maximum bonus of a general tool that stays behind the best other tool. It falls between these similarities of some
/// tool to the request, so that a request with several needs keeps the places for the tools of all its needs.
const MAX_LIFT: f32 = 0.8;
const FULL_LIFT_UP_TO: f32 = 0.25;
const NO_LIFT_FROM: f32 = 0.6;
/// By how much the score of a lifted tool is at least below the best score.
const LIFT_GAP: f32 = 0.01;

/// How probably a request needs a tool of each type.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RequestTypes(Box<[f32]>);

impl RequestTypes {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// If a request has several needs, one of them may need a general tool, so the highest probability counts.
    pub(super) fn new(types: &GeneralTypes, query: &EncodedQuery) -> Self {
        let mut highest = types.request_probabilities(&query.whole);
        for need in query.needs.iter().flatten() {
            for (highest, found) in highest.iter_mut().zip(types.request_probabilities(need)) {
                *highest = highest.max(found);
            }
        }
        Self(highest.into())
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
    pub(super) fn new(types: &GeneralTypes, tools: &FlatIndex, present: &[bool]) -> Self {
        let types = types.as_slice();
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
    /// How probably the request needs a tool of the type and the tool is one, from 0 to 1. The probability of the tool is
    /// squared, because the request is the same for all tools: the more tools a catalog has, the more of them could be
    /// taken for a general tool by mistake.
    pub(super) fn strength(&self) -> f32 {
        self.request * self.tool * self.tool
    }

    /// The bonus that the tool gets. The more similar some tool is to the request, the lower it is. A lower bonus could be too
    /// little to be among the first hits, so the tool may also be lifted to a place behind the best tool, whose score is
    /// `room` higher than the score of this tool.
    pub(super) fn bonus(&self, highest_similarity: f32, room: f32) -> f32 {
        let strength = self.strength();
        let bonus = MAX_BONUS * strength * (1.0 - highest_similarity / SIMILAR);
        let share = (NO_LIFT_FROM - highest_similarity) / (NO_LIFT_FROM - FULL_LIFT_UP_TO);
        let lift = MAX_LIFT * strength * share.clamp(0.0, 1.0);
        bonus.max(lift.min(room - LIFT_GAP)).max(0.0)
    }

    /// The match, for explanations.
    pub(super) fn explained(&self, types: &GeneralTypes, bonus: f32) -> Option<GeneralTool> {
        let name = types.as_slice().get(self.of_type)?.name.clone();
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
