//! A request of Chat Completions.

use toolcrib_text::json::{self, Fields};

use super::message::{self, ChatMessage};
use crate::request::{Choice, Conversation, Entry, Features, Outline, Rows, Who};
use crate::splice::range_of;

/// Reads the top of a body.
pub(super) fn read_outline<'a>(body: &Fields<'a>) -> Outline<'a> {
    let has = |key: &str| body.get(key).is_some();
    Outline {
        history: body.get("messages"),
        stream: body.get("stream") == Some("true"),
        choice: body.get("tool_choice").map_or(Choice::Auto, choice),
        features: Features {
            legacy_functions: has("functions") || has("function_call"),
            several_answers: body.get("n").is_some_and(|n| n != "1" && n != "null"),
            ..Features::default()
        },
        ..Outline::default()
    }
}

/// Reads the conversation in a body.
pub(super) fn read_conversation(text: &str, messages: &str) -> Option<Conversation> {
    let mut rows = Rows::default();
    for entry in json::items(messages)? {
        let entry = entry.get();
        let message = ChatMessage::read(entry)?;
        let who = if message.role == "assistant" { Who::Model } else { Who::Client };
        let stretch = rows.add(who, Entry::At(range_of(text, entry)));
        // What a system says may change from one request to the next: the time, a folder.
        if who == Who::Model || message.role == "user" {
            message.texts(&mut |text| stretch.print.text(text));
        }
        for call in message.calls() {
            let arguments = call.arguments.as_deref().unwrap_or_default();
            stretch.call(call.id, call.name, arguments);
        }
        if let Some(id) = message.tool_call_id {
            stretch.print.call(Some(&id), "", "");
        }
    }
    Some(rows.done())
}

/// What `tool_choice` says.
fn choice(text: &str) -> Choice {
    match text {
        r#""none""# => return Choice::None,
        r#""required""# => return Choice::Required,
        _ => {}
    }
    let Some(fields) = Fields::read(text) else { return Choice::Auto };
    let allowed = fields.get("allowed_tools").and_then(Fields::read);
    let named = match &allowed {
        Some(allowed) => allowed.get("tools").and_then(json::items).unwrap_or_default(),
        None => return message::name(text).map_or(Choice::Auto, |name| Choice::Named(vec![name])),
    };
    Choice::Named(named.iter().filter_map(|tool| message::name(tool.get())).collect())
}
