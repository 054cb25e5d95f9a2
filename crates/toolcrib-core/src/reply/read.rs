//! Reading replies of ours back from a transcript.

use crate::json::{self, Fields};

/// The tools that a reply of ours loaded, in whatever form it was written. Only for texts of ours:
/// what else looks like one is read as one.
pub(crate) fn names_in(text: &str) -> Vec<String> {
    if let Some(fields) = Fields::read(text) {
        let loaded = fields.get("loaded").and_then(|raw| serde_json::from_str(raw).ok());
        if let Some(loaded) = loaded {
            return loaded;
        }
        if let Some(items) = fields.get("matches").and_then(json::items) {
            return items.iter().filter_map(|item| described(&Fields::read(item.get())?)).collect();
        }
        // A refusal that carried the schema, or one tool described.
        let refused = fields.get("input_schema").and_then(|_| fields.string("tool"));
        return refused.or_else(|| described(&fields)).into_iter().collect();
    }
    let functions = text.lines().filter_map(|line| {
        let json = line.strip_prefix("<function>")?.strip_suffix("</function>")?;
        described(&Fields::read(json)?)
    });
    functions.chain(headings(text)).collect()
}

/// The headings that a block of code follows: a tool without one is only described.
fn headings(text: &str) -> Vec<String> {
    let (mut names, mut last) = (Vec::new(), None);
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            last = uncode(heading);
        } else if line.starts_with("```") {
            names.extend(last.take());
        }
    }
    names
}

/// The name of a tool that stands there with its schema or its signature.
fn described(fields: &Fields<'_>) -> Option<String> {
    let shown = fields.get("parameters").or(fields.get("signature"));
    shown.and_then(|_| fields.string("name"))
}

/// What stands in inline code that `code` wrote.
fn uncode(text: &str) -> Option<String> {
    let ticks = text.len() - text.trim_start_matches('`').len();
    let inner = text.get(ticks..text.len().checked_sub(ticks)?).filter(|_| ticks > 0)?;
    let padded = inner.starts_with(" `") || inner.ends_with("` ");
    let inner = if padded { inner.strip_prefix(' ')?.strip_suffix(' ')? } else { inner };
    Some(inner.to_owned())
}
