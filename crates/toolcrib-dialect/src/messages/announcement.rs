//! Inserts the listing into a message of the user.
//!
//! It stands inside the user's own message, since the API joins messages of one role anyway. Results of calls
//! must come first in a message, so the text stands after those.

use toolcrib_text::json;

use super::content::{self, Block, Content, Message, write_message};

/// The message with the text before what the user says.
pub(super) fn insert_announcement(entry: &str, text: &str) -> Option<String> {
    let user = Message::read(entry).filter(|message| message.role == "user")?;
    match user.content()? {
        Content::Text(said) => {
            let said = json::quote(&format!("{text}\n\n{said}"));
            Some(user.fields.with(&[("content", Some(said))]))
        }
        Content::Blocks(blocks) => {
            let is_result =
                |raw: &&&str| Block::read(raw).is_some_and(|block| block.kind == "tool_result");
            let results = blocks.iter().take_while(is_result).count();
            let mut blocks: Vec<String> = blocks.into_iter().map(str::to_owned).collect();
            blocks.insert(results, content::text_block(text));
            Some(user.with(&blocks))
        }
    }
}

/// A message with the text alone.
pub(super) fn user_message(text: &str) -> String {
    write_message("user", &[content::text_block(text)])
}
