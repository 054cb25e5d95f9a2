//! Inserts the announcement, which lists the deferred tools, into a user content.

use toolcrib_text::json;

use super::content::{GeminiContent, GeminiPart, PartKind};

/// Returns the content with `text` inserted before the user's own text, but after the function responses at its start.
/// Returns `None` if the entry is not a user content.
pub(super) fn insert_announcement(entry: &str, text: &str) -> Option<String> {
    let content = GeminiContent::read(entry).filter(|content| !content.is_model)?;
    let is_result = |raw: &&&str| {
        matches!(GeminiPart::read(raw), Some(GeminiPart { kind: PartKind::Result(_), .. }))
    };
    let results = content.parts.iter().take_while(is_result).count();
    let mut parts: Vec<String> = content.parts.iter().map(|part| (*part).to_owned()).collect();
    parts.insert(results, part(text));
    Some(content.with(&parts))
}

/// Returns a user content whose only part is `text`.
pub(super) fn user_message(text: &str) -> String {
    format!(r#"{{"role":"user","parts":[{}]}}"#, part(text))
}

fn part(text: &str) -> String {
    format!(r#"{{"text":{}}}"#, json::quote(text))
}
