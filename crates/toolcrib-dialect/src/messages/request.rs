//! A request of Messages, or one that only counts its tokens.

use toolcrib_core::json::{self, Fields};

use super::content::{Content, Message, blocks};
use super::inbound;
use crate::api::Api;
use crate::request::{Bypass, Choice, Entry, Read, Rows, Stretch, Who, place};
use crate::turn::counts_at;

/// Reads a body.
pub(super) fn read(text: &str, target: &str) -> Result<Read, Bypass> {
    let body = Fields::read(text).ok_or(Bypass::Malformed)?;
    let messages = body.get("messages").ok_or(Bypass::Malformed)?;
    let entries = blocks(messages).ok_or(Bypass::Malformed)?;
    let tools = body.get("tools").filter(|raw| *raw != "null").ok_or(Bypass::NoTools)?;
    if json::is_empty_list(tools).ok_or(Bypass::Malformed)? {
        return Err(Bypass::NoTools);
    }
    let mut rows = Rows::default();
    for entry in entries {
        let message = Message::read(entry).ok_or(Bypass::Malformed)?;
        let who = if message.role == "assistant" { Who::Model } else { Who::Client };
        let stretch = rows.add(who, Entry::At(place(text, entry)));
        // What a system says may change from one request to the next: the time, a folder.
        let says = who == Who::Model || message.role == "user";
        note(&message, says, stretch);
    }
    let path = target.split('?').next().unwrap_or_default();
    Ok(Read {
        model: body.string("model").ok_or(Bypass::Malformed)?,
        stream: body.get("stream") == Some("true"),
        counts: counts_at(Api::Messages, path),
        choice: body.get("tool_choice").map_or(Choice::Auto, choice),
        tools: place(text, tools),
        history: place(text, messages),
        stretches: rows.done(),
        previous: None,
        keeps: false,
        defers: inbound::defers(tools, messages),
    })
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
