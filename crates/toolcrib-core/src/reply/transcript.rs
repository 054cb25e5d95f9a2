//! Reading replies of ours back from a transcript.

use toolcrib_text::json::{self, Fields};

/// The tools that a reply of ours loaded, in order, in whatever form it was written; `None` for a
/// text that is no reply. What looks like one of ours is read as one.
pub(crate) fn names_in(text: &str) -> Option<Vec<String>> {
    if let Some(fields) = Fields::read(text) {
        return read_object(&fields);
    }
    let (mut names, mut heading, mut inside) = (Vec::new(), None, None);
    let mut ours = false;
    for line in text.lines() {
        if let Some(fence) = &inside {
            // In a block of code nothing is ours until its own fence ends it.
            if line == *fence {
                inside = None;
            }
        } else if let Some(text) = line.strip_prefix("### ") {
            heading = uncode(text);
            ours |= heading.is_some();
        } else if line.starts_with("```") {
            // A signature is written in another language than a schema.
            let fence = line.trim_end_matches(char::is_alphabetic);
            names.extend(heading.take().filter(|_| line.ends_with("json")));
            inside = Some(fence.to_owned());
        } else if let Some(rest) = line.strip_prefix("<function>") {
            let json = rest.strip_suffix("</function>").and_then(Fields::read);
            names.extend(json.and_then(|fields| described(&fields)));
            ours = true;
        } else if let Some(fields) = Fields::read(line) {
            ours |= is_rest(&fields);
            if let Some(loaded) = loaded(&fields) {
                names = loaded;
            }
        }
    }
    ours.then_some(names)
}

/// Whether it is what stands beside the tools of a reply.
fn is_rest(fields: &Fields<'_>) -> bool {
    REST.iter().any(|key| fields.get(key).is_some())
}

/// Keys of what is no tool in a reply.
const REST: [&str; 7] =
    ["loaded", "missing", "omitted", "available", "did_you_mean", "connecting", "down"];

fn read_object(fields: &Fields<'_>) -> Option<Vec<String>> {
    if let Some(loaded) = loaded(fields) {
        return Some(loaded);
    }
    if let Some(items) = fields.get("matches").and_then(json::items) {
        let shown = items.iter().filter_map(|item| described(&Fields::read(item.get())?));
        return Some(shown.collect());
    }
    // A refusal that carried the schema, or one tool described.
    let refused = fields.get("input_schema").and_then(|_| fields.string("tool"));
    if let Some(name) = refused.or_else(|| described(fields)) {
        return Some(vec![name]);
    }
    is_rest(fields).then(Vec::new)
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
    let padded = inner.starts_with(' ') && inner.ends_with(' ') && !inner.trim().is_empty();
    let inner = if padded { inner.strip_prefix(' ')?.strip_suffix(' ')? } else { inner };
    Some(inner.to_owned())
}
