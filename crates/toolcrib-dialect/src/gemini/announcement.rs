//! Inserts the listing into a content of the user.

use toolcrib_text::json;

use super::content::{Content, Part, PartKind};

/// The content with the text before what the user says, and after answers to calls.
pub(super) fn insert_announcement(entry: &str, text: &str) -> Option<String> {
    let content = Content::read(entry).filter(|content| !content.is_model)?;
    let is_answer =
        |raw: &&&str| matches!(Part::read(raw), Some(Part { kind: PartKind::Result(_), .. }));
    let answers = content.parts.iter().take_while(is_answer).count();
    let mut parts: Vec<String> = content.parts.iter().map(|part| (*part).to_owned()).collect();
    parts.insert(answers, part(text));
    Some(content.with(&parts))
}

/// A content with the text alone.
pub(super) fn user_message(text: &str) -> String {
    format!(r#"{{"role":"user","parts":[{}]}}"#, part(text))
}

fn part(text: &str) -> String {
    format!(r#"{{"text":{}}}"#, json::quote(text))
}
