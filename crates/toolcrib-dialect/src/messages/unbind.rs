//! A request without thinking, for when its signatures no longer hold.
//!
//! Newer models bind a thought to all that stood before it, and refuse it anywhere else. Where a record is
//! lost, what stood before cannot be put back; then the thoughts go, and the rest stays as it is.

use toolcrib_text::json::Fields;

use super::content::{Message, blocks, list};
use super::history::{edit, without_thinking};
use crate::splice::{changed, place};

/// The same request without any thinking in its history; the same text where there is none. A message
/// that was nothing but thinking is left out.
pub fn strip_thinking(text: &str) -> String {
    let messages = Fields::read(text).and_then(|body| body.get("messages"));
    let Some((messages, entries)) = messages.and_then(|raw| Some((raw, blocks(raw)?))) else {
        return text.to_owned();
    };
    let stripped = |entry: &str| {
        Message::read(entry).filter(|message| message.role == "assistant")?;
        let left = without_thinking(entry);
        (left.as_deref() != Some(entry)).then_some(left)
    };
    match edit(&entries, stripped) {
        Some(left) => changed(text, vec![(place(text, messages), list(&left))]),
        None => text.to_owned(),
    }
}
