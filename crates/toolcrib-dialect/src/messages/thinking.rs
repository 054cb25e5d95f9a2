//! Removes thinking from requests whose thought signatures have become invalid.
//!
//! Newer models bind a thought to everything before it and reject it elsewhere. If a record is lost, the
//! original prefix cannot be restored, so the thinking is removed and everything else is kept.

use toolcrib_text::json::Fields;

use super::content::{ContentBlock, Message, MessageContent, edit_items, items, json_list};
use crate::splice::{range_of, splice};

/// Returns the request without thinking in its history. A message that consisted only of thinking is removed.
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

/// Returns the message without thinking blocks; `None` if nothing is left.
pub(super) fn without_thinking(entry: &str) -> Option<String> {
    let Some(message) = Message::read(entry) else { return Some(entry.to_owned()) };
    let Some(MessageContent::Blocks(blocks)) = message.content() else {
        return Some(entry.to_owned());
    };
    let is_thinking = |raw: &str| ContentBlock::read(raw).is_some_and(|block| block.is_thinking());
    match edit_items(&blocks, |raw| is_thinking(raw).then_some(None)) {
        Some(left) if left.is_empty() => None,
        Some(left) => Some(message.with(&left)),
        None => Some(entry.to_owned()),
    }
}
