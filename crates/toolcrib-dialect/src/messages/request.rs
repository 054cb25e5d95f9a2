//! A request of Messages, or one that only counts its tokens.

use toolcrib_core::json::Fields;

use super::content::{Content, Message, blocks};
use crate::request::{Choice, Conversation, Entry, Outline, Rows, Stretch, Who};
use crate::splice::place;

/// Reads the top of a body.
pub(super) fn outline<'a>(body: &Fields<'a>) -> Outline<'a> {
    let thinking = body.get("thinking").and_then(Fields::read);
    let thinks =
        thinking.is_some_and(|thinking| thinking.string("type").as_deref() != Some("disabled"));
    Outline {
        history: body.get("messages"),
        stream: body.get("stream") == Some("true"),
        choice: body.get("tool_choice").map_or(Choice::Auto, choice),
        thinks,
        ..Outline::default()
    }
}

/// Reads the conversation in a body.
pub(super) fn conversation(text: &str, messages: &str) -> Option<Conversation> {
    let mut rows = Rows::default();
    for entry in blocks(messages)? {
        let message = Message::read(entry)?;
        let who = if message.role == "assistant" { Who::Model } else { Who::Client };
        let stretch = rows.add(who, Entry::At(place(text, entry)));
        // What a system says may change from one request to the next: the time, a folder.
        let says = who == Who::Model || message.role == "user";
        note(&message, says, stretch);
    }
    Some(rows.done())
}

/// Notes what a message says. Thinking is not part of it: clients drop it as they like.
fn note(message: &Message<'_>, says: bool, stretch: &mut Stretch) {
    if let (Some(Content::Text(text)), true) = (message.content(), says) {
        stretch.print.text(&text);
    }
    for block in message.blocks() {
        match block.kind.as_str() {
            "text" if says => {
                stretch.print.text(&block.fields.string("text").unwrap_or_default());
            }
            "tool_result" => {
                stretch.print.call(block.fields.string("tool_use_id").as_deref(), "", "");
            }
            _ => {
                if let Some((id, name, input)) = block.call() {
                    stretch.print.call(id.as_deref(), &name, input);
                    stretch.calls.push(name);
                }
            }
        }
    }
}

/// What `tool_choice` says.
fn choice(text: &str) -> Choice {
    let Some(fields) = Fields::read(text) else { return Choice::Auto };
    match (fields.string("type").as_deref(), fields.string("name")) {
        (Some("none"), _) => Choice::None,
        (Some("any"), _) => Choice::Required,
        (Some("tool"), Some(name)) => Choice::Named(vec![name]),
        _ => Choice::Auto,
    }
}
