//! `tool_search_regex`: a pattern over names, descriptions and parameters.
//!
//! The engine is linear in the text it reads. That alone does not bound it: a small pattern can
//! compile to megabytes that each byte is then led through. So the pattern has a length, its
//! compiled form a size, and the catalog text it may read a budget; over the budget the answer is
//! partial and says so.

use regex::{Regex, RegexBuilder};

use crate::catalog::{Catalog, ToolId};
use crate::ingest::{Part, walk};
use crate::limits::Limits;
use crate::scope::Scope;

/// Why a pattern cannot be used: for the model, which can write another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadPattern {
    pub(crate) message: String,
}

/// Where a pattern was found, the best place first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MatchedField {
    Name,
    Description,
    Parameters,
}

/// What a pattern found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Matches {
    /// The tools, by place and then by name.
    pub(crate) tools: Vec<(ToolId, MatchedField)>,
    /// Whether the budget ran out before the catalog did.
    pub(crate) partial: bool,
}

pub(crate) fn compile(pattern: &str, limits: &Limits) -> Result<Regex, BadPattern> {
    let bad = |message| Err(BadPattern { message });
    if pattern.is_empty() {
        return bad("the pattern is empty".into());
    }
    if pattern.len() > limits.pattern_bytes {
        let (is, may) = (pattern.len(), limits.pattern_bytes);
        return bad(format!("the pattern has {is} bytes, the limit is {may}"));
    }
    let built = RegexBuilder::new(pattern)
        .case_insensitive(true)
        .size_limit(limits.pattern_compiled_bytes)
        // The cache of the lazy automaton: too small, and matching falls back to a slow engine.
        .dfa_size_limit(2 << 20)
        .nest_limit(50)
        .build();
    match built {
        Ok(regex) => Ok(regex),
        Err(regex::Error::CompiledTooBig(_)) => {
            bad("the pattern is too large once compiled".into())
        }
        Err(error) => {
            let error = error.to_string();
            let last = error.lines().last().unwrap_or_default();
            bad(toolcrib_text::shorten(last.trim_start_matches("error: "), 200).into_owned())
        }
    }
}

pub(crate) fn matches(regex: &Regex, catalog: &Catalog, scope: &Scope, limits: &Limits) -> Matches {
    let mut found = Matches::default();
    let mut reads = |text: &str| regex.is_match(text);
    // By name, so that a budget that runs out leaves out the same tools every time.
    let mut ids: Vec<ToolId> = scope.ids().collect();
    ids.sort_unstable_by_key(|id| catalog.tool(*id).name());
    let mut left = limits.pattern_scan_bytes;
    for id in ids {
        let tool = catalog.tool(id);
        let Some(rest) = left.checked_sub(tool.definition().len()) else {
            found.partial = true;
            break;
        };
        left = rest;
        let place = if reads(tool.name()) {
            MatchedField::Name
        } else if reads(tool.description()) || tool.title().is_some_and(&mut reads) {
            MatchedField::Description
        } else if in_parameters(&tool.schema_value(), &mut reads) {
            MatchedField::Parameters
        } else {
            continue;
        };
        found.tools.push((id, place));
    }
    found.tools.sort_by_key(|(_, place)| *place);
    found
}

fn in_parameters(schema: &serde_json::Value, reads: &mut impl FnMut(&str) -> bool) -> bool {
    let mut found = false;
    walk(schema, &mut |part| {
        let (Part::Name(text) | Part::Text(text) | Part::Value(text)) = part;
        found = found || reads(text);
    });
    found
}
