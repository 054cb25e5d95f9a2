//! Inserts the announcement, which lists the deferred tools, into a user message.
//!
//! It goes into the user's own message, because some servers require user and assistant messages to alternate and would
//! reject a separate message.

use toolcrib_text::json;

use super::message::ChatMessage;

/// Returns the message with `text` inserted before the user's own text, or `None` if the entry is not a user message.
pub(super) fn insert_announcement(entry: &str, text: &str) -> Option<String> {
    let message = ChatMessage::read(entry).filter(|message| message.role == "user")?;
    let content = message.fields().get("content")?;
    let content = match (message.fields().string("content"), json::items(content)) {
        (Some(own_text), _) => json::quote(&format!("{text}\n\n{own_text}")),
        (None, Some(parts)) => {
            let mut all = vec![format!(r#"{{"type":"text","text":{}}}"#, json::quote(text))];
            all.extend(parts.iter().map(|part| part.get().to_owned()));
            format!("[{}]", all.join(","))
        }
        (None, None) => return None,
    };
    Some(message.fields().with(&[("content", Some(content))]))
}

/// Returns a user message whose only content is `text`.
pub(super) fn user_message(text: &str) -> String {
    format!(r#"{{"role":"user","content":{}}}"#, json::quote(text))
}
