//! Reads the names of loaded tools back from the texts of our replies in a transcript.

use toolcrib_text::json::{self, Fields};

/// The names of the tools that a reply loaded, in order. The reply may be in any of our formats. Returns `None` for a
/// text that is not a reply. Any text that looks like one of our replies is read as a reply.
pub(crate) fn names_in(text: &str) -> Option<Vec<String>> {
    if let Some(fields) = Fields::read(text) {
        return read_object(&fields);
    }
    let (mut names, mut heading, mut inside) = (Vec::new(), None, None);
    let mut ours = false;
    for line in text.lines() {
        if let Some(fence) = &inside {
            // The content of a code block is skipped up to the closing fence.
            if line == *fence {
                inside = None;
            }
        } else if let Some(text) = line.strip_prefix("### ") {
            heading = uncode(text);
            ours |= heading.is_some();
        } else if line.starts_with("```") {
            // The language of a code block is `json` for a schema and `ts` for a signature. Only a tool whose schema is
            // shown counts as loaded.
            let fence = line.trim_end_matches(char::is_alphabetic);
            names.extend(heading.take().filter(|_| line.ends_with("json")));
            inside = Some(fence.to_owned());
        } else if let Some(rest) = line.strip_prefix("<function>") {
            let json = rest.strip_suffix("</function>").and_then(Fields::read);
            names.extend(json.and_then(|fields| described(&fields)));
            ours = true;
        } else if let Some(fields) = Fields::read(line) {
            ours |= is_metadata(&fields);
            if let Some(loaded) = loaded(&fields) {
                names = loaded;
            }
        } else {
            ours |= line.starts_with(NO_FIT);
        }
    }
    ours.then_some(names)
}

/// Whether an object is the metadata of a reply.
fn is_metadata(fields: &Fields<'_>) -> bool {
    METADATA_KEYS.iter().any(|key| fields.get(key).is_some())
}

/// The beginning of the note that no tool fits a query. A reply may consist of this note alone.
pub(crate) const NO_FIT: &str = "No tool here fits ";

/// Keys that show that an object is the metadata of a reply.
const METADATA_KEYS: [&str; 7] =
    ["loaded", "missing", "omitted", "available", "did_you_mean", "connecting", "down"];

fn read_object(fields: &Fields<'_>) -> Option<Vec<String>> {
    if let Some(loaded) = loaded(fields) {
        return Some(loaded);
    }
    if let Some(items) = fields.get("matches").and_then(json::items) {
        let shown = items.iter().filter_map(|item| described(&Fields::read(item.get())?));
        return Some(shown.collect());
    }
    // The object may be a refusal that contains a schema, or the description of one tool.
    let refused = fields.get("input_schema").and_then(|_| fields.string("tool"));
    if let Some(name) = refused.or_else(|| described(fields)) {
        return Some(vec![name]);
    }
    is_metadata(fields).then(Vec::new)
}

/// The name of a tool, if the object also contains the tool's schema.
fn described(fields: &Fields<'_>) -> Option<String> {
    fields.get("parameters").and_then(|_| fields.string("name"))
}

/// The list of loaded tools, if there is one.
fn loaded(fields: &Fields<'_>) -> Option<Vec<String>> {
    serde_json::from_str(fields.get("loaded")?).ok()
}

/// Reads inline code that the function `code` wrote.
fn uncode(text: &str) -> Option<String> {
    let ticks = text.len() - text.trim_start_matches('`').len();
    let inner = text.get(ticks..text.len().checked_sub(ticks)?).filter(|_| ticks > 0)?;
    let padded = inner.starts_with(' ') && inner.ends_with(' ') && !inner.trim().is_empty();
    let inner = if padded { inner.strip_prefix(' ')?.strip_suffix(' ')? } else { inner };
    Some(inner.to_owned())
}
