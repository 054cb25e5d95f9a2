//! Inserts the announcement, which lists the deferred tools, into a user message.
//!
//! It goes into the user's own message, because the API joins consecutive messages of one role anyway. Tool results
//! must come first in a message, so the announcement is inserted after them.

use toolcrib_text::json;

use super::content::{self, ContentBlock, Message, MessageContent, write_message};

/// Returns the message with `text` inserted before the user's own text, or `None` if the entry is not a user message.
pub(super) fn insert_announcement(entry: &str, text: &str) -> Option<String> {
    let user = Message::read(entry).filter(|message| message.role == "user")?;
    match user.content()? {
        MessageContent::Text(own_text) => {
            let content = json::quote(&format!("{text}\n\n{own_text}"));
            Some(user.fields.with(&[("content", Some(content))]))
        }
        MessageContent::Blocks(blocks) => {
            let is_result = |raw: &&&str| {
                ContentBlock::read(raw).is_some_and(|block| block.kind == "tool_result")
            };
            let results = blocks.iter().take_while(is_result).count();
            let mut blocks: Vec<String> = blocks.into_iter().map(str::to_owned).collect();
            blocks.insert(results, content::text_block(text));
            Some(user.with(&blocks))
        }
    }
}

/// Returns a user message whose only content is `text`.
pub(super) fn user_message(text: &str) -> String {
    write_message("user", &[content::text_block(text)])
}
