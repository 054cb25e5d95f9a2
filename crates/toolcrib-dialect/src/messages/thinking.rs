//! Removes thinking blocks from requests if their signatures have become invalid.
//!
//! With newer models, the signature covers everything before the thinking block, and the API rejects the block if any
//! of that has changed. If a record is lost, the original text before the block cannot be restored. Then all thinking
//! blocks are removed and everything else is kept.

use toolcrib_text::json::Fields;

use super::content::{ContentBlock, Message, MessageContent, edit_items, items, json_list};
use crate::splice::{range_of, splice};

/// Returns the request without thinking blocks in its history. A message that consists only of thinking is removed.
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

/// Returns the message without thinking blocks, or `None` if no other blocks are left.
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
