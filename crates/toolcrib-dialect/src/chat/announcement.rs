//! Inserts the listing into a message of the user.
//!
//! It stands inside the user's own message: some servers accept only turns that alternate, so a message of
//! its own could be refused.

use toolcrib_text::json;

use super::message::ChatMessage;

/// The message with the text first.
pub(super) fn insert_announcement(entry: &str, text: &str) -> Option<String> {
    let message = ChatMessage::read(entry).filter(|message| message.role == "user")?;
    let content = message.fields().get("content")?;
    let content = match (message.fields().string("content"), json::items(content)) {
        (Some(said), _) => json::quote(&format!("{text}\n\n{said}")),
        (None, Some(parts)) => {
            let mut all = vec![format!(r#"{{"type":"text","text":{}}}"#, json::quote(text))];
            all.extend(parts.iter().map(|part| part.get().to_owned()));
            format!("[{}]", all.join(","))
        }
        (None, None) => return None,
    };
    Some(message.fields().with(&[("content", Some(content))]))
}

/// A message with the text alone.
pub(super) fn user_message(text: &str) -> String {
    format!(r#"{{"role":"user","content":{}}}"#, json::quote(text))
}
