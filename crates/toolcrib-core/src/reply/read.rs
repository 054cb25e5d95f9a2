//! Reading replies of ours back from a transcript.

use crate::json::{self, Fields};

/// The tools that a reply of ours loaded, in whatever form it was written. Only for texts of ours:
/// what else looks like one is read as one.
pub(crate) fn names_in(text: &str) -> Vec<String> {
    if let Some(fields) = Fields::read(text) {
        if let Some(loaded) = loaded(&fields) {
            return loaded;
        }
        if let Some(items) = fields.get("matches").and_then(json::items) {
            return items.iter().filter_map(|item| described(&Fields::read(item.get())?)).collect();
        }
        // A refusal that carried the schema, or one tool described.
        let refused = fields.get("input_schema").and_then(|_| fields.string("tool"));
        return refused.or_else(|| described(&fields)).into_iter().collect();
    }
    let (mut names, mut heading, mut inside) = (Vec::new(), None, None);
    for line in text.lines() {
        if let Some(fence) = &inside {
            // In a block of code nothing is ours until its own fence ends it.
            if line == *fence {
                inside = None;
            }
        } else if let Some(text) = line.strip_prefix("### ") {
            heading = uncode(text);
        } else if line.starts_with("```") {
            // A signature is written in another language than a schema.
            let fence = line.trim_end_matches(char::is_alphabetic);
            names.extend(heading.take().filter(|_| line.ends_with("json")));
            inside = Some(fence.to_owned());
        } else if let Some(rest) = line.strip_prefix("<function>") {
            let json = rest.strip_suffix("</function>").and_then(Fields::read);
            names.extend(json.and_then(|fields| described(&fields)));
        } else if let Some(loaded) = Fields::read(line).as_ref().and_then(loaded) {
            return loaded;
        }
    }
    names
}

/// The name of a tool that stands there with its schema.
fn described(fields: &Fields<'_>) -> Option<String> {
    fields.get("parameters").and_then(|_| fields.string("name"))
}

/// The list of what is loaded, where there is one.
fn loaded(fields: &Fields<'_>) -> Option<Vec<String>> {
    serde_json::from_str(fields.get("loaded")?).ok()
}

/// What stands in inline code that `code` wrote.
fn uncode(text: &str) -> Option<String> {
    let ticks = text.len() - text.trim_start_matches('`').len();
    let inner = text.get(ticks..text.len().checked_sub(ticks)?).filter(|_| ticks > 0)?;
    let padded = inner.starts_with(" `") || inner.ends_with("` ");
    let inner = if padded { inner.strip_prefix(' ')?.strip_suffix(' ')? } else { inner };
    Some(inner.to_owned())
}
