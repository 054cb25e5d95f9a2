//! Inserts the announcement, which lists the deferred tools, into a user message.

use toolcrib_text::json;

use super::item::Item;

/// Returns the message with `text` inserted before the user's own text, or `None` if the entry is not a user message.
pub(super) fn insert_announcement(entry: &str, text: &str) -> Option<String> {
    let item = Item::read(entry).filter(|item| item.kind == "message")?;
    if item.fields.string("role").as_deref() != Some("user") {
        return None;
    }
    let content = item.fields.get("content")?;
    let content = match (item.fields.string("content"), json::items(content)) {
        (Some(own_text), _) => json::quote(&format!("{text}\n\n{own_text}")),
        (None, Some(parts)) => {
            let mut all = vec![part(text)];
            all.extend(parts.iter().map(|part| part.get().to_owned()));
            format!("[{}]", all.join(","))
        }
        (None, None) => return None,
    };
    Some(item.fields.with(&[("content", Some(content))]))
}

/// Returns a user message whose only content is `text`.
pub(super) fn user_message(text: &str) -> String {
    format!(r#"{{"type":"message","role":"user","content":[{}]}}"#, part(text))
}

fn part(text: &str) -> String {
    format!(r#"{{"type":"input_text","text":{}}}"#, json::quote(text))
}
