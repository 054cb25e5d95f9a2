//! A request without thinking, for when its signatures no longer hold.
//!
//! Newer models bind a thought to all that stood before it, and refuse it anywhere else. Where a record is
//! lost, what stood before cannot be put back; then the thoughts go, and the rest stays as it is.

use toolcrib_text::json::Fields;

use super::content::{Message, items, json_list};
use super::history::{edit_items, without_thinking};
use crate::splice::{range_of, splice};

/// The same request without any thinking in its history; the same text where there is none. A message
/// that was nothing but thinking is left out.
pub fn strip_thinking(text: &str) -> String {
    let messages = Fields::read(text).and_then(|body| body.get("messages"));
    let Some((messages, entries)) = messages.and_then(|raw| Some((raw, items(raw)?))) else {
        return text.to_owned();
    };
    let stripped = |entry: &str| {
        Message::read(entry).filter(|message| message.role == "assistant")?;
        let left = without_thinking(entry);
        (left.as_deref() != Some(entry)).then_some(left)
    };
    match edit_items(&entries, stripped) {
        Some(left) => splice(text, vec![(range_of(text, messages), json_list(&left))]),
        None => text.to_owned(),
    }
}
