//! `tool_search_regex`: search in names, descriptions and parameters with a regular expression.
//!
//! The time to match grows with the size of the text and with the size of the compiled pattern, and a short pattern can
//! compile to megabytes. So there are limits on the length of the pattern, on its compiled size, and on the amount of
//! catalog text that is searched. When the last limit is reached, the reply is partial and says so.

use regex::{Regex, RegexBuilder};

use crate::catalog::{Catalog, ToolId};
use crate::ingest::{Part, walk};
use crate::limits::Limits;
use crate::scope::Scope;

/// The reason why a pattern cannot be used, worded for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InvalidPattern {
    pub(crate) message: String,
}

/// The field in which a pattern was found. The variants are ordered from the most to the least relevant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MatchedField {
    Name,
    Description,
    Parameters,
}

/// The tools that a pattern matched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Matches {
    /// The tools, sorted by matched field and then by name.
    pub(crate) tools: Vec<(ToolId, MatchedField)>,
    /// Whether part of the catalog was not searched because `pattern_scan_bytes` was reached.
    pub(crate) partial: bool,
}

pub(crate) fn compile(pattern: &str, limits: &Limits) -> Result<Regex, InvalidPattern> {
    let invalid = |message| Err(InvalidPattern { message });
    if pattern.is_empty() {
        return invalid("the pattern is empty".into());
    }
    if pattern.len() > limits.pattern_bytes {
        let (is, may) = (pattern.len(), limits.pattern_bytes);
        return invalid(format!("the pattern has {is} bytes, the limit is {may}"));
    }
    let built = RegexBuilder::new(pattern)
        .case_insensitive(true)
        .size_limit(limits.pattern_compiled_bytes)
        // A generous cache for the lazy DFA, because with a cache that is too small, matching falls back to a slow
        // engine.
        .dfa_size_limit(2 << 20)
        .nest_limit(50)
        .build();
    match built {
        Ok(regex) => Ok(regex),
        Err(regex::Error::CompiledTooBig(_)) => {
            invalid("the pattern is too large once compiled".into())
        }
        Err(error) => {
            let error = error.to_string();
            let last = error.lines().last().unwrap_or_default();
            invalid(toolcrib_text::shorten(last.trim_start_matches("error: "), 200).into_owned())
        }
    }
}

pub(crate) fn matches(regex: &Regex, catalog: &Catalog, scope: &Scope, limits: &Limits) -> Matches {
    let mut found = Matches::default();
    let mut is_match = |text: &str| regex.is_match(text);
    // The tools are sorted by name, so that the same tools are left out every time the limit is reached.
    let mut ids: Vec<ToolId> = scope.ids().collect();
    ids.sort_unstable_by_key(|id| catalog.tool(*id).name());
    let mut remaining = limits.pattern_scan_bytes;
    for id in ids {
        let tool = catalog.tool(id);
        let Some(rest) = remaining.checked_sub(tool.definition().len()) else {
            found.partial = true;
            break;
        };
        remaining = rest;
        let field = if is_match(tool.name()) {
            MatchedField::Name
        } else if is_match(tool.description()) || tool.title().is_some_and(&mut is_match) {
            MatchedField::Description
        } else if in_parameters(&tool.schema_value(), &mut is_match) {
            MatchedField::Parameters
        } else {
            continue;
        };
        found.tools.push((id, field));
    }
    found.tools.sort_by_key(|(_, field)| *field);
    found
}

fn in_parameters(schema: &serde_json::Value, is_match: &mut impl FnMut(&str) -> bool) -> bool {
    let mut found = false;
    walk(schema, &mut |part| {
        let (Part::Name(text) | Part::Text(text) | Part::Value(text)) = part;
        found = found || is_match(text);
    });
    found
}
