//! Reads a Chat Completions request.

use toolcrib_text::json::{self, Fields};

use super::message::{self, ChatMessage};
use crate::request::{
    HistoryBuilder, HistoryEntry, ParsedHistory, RequestOutline, RewriteBlockers, Speaker,
    ToolChoice,
};
use crate::splice::range_of;

/// Reads the top-level fields of a body.
pub(super) fn read_outline<'a>(body: &Fields<'a>) -> RequestOutline<'a> {
    let has = |key: &str| body.get(key).is_some();
    RequestOutline {
        history: body.get("messages"),
        stream: body.get("stream") == Some("true"),
        choice: body.get("tool_choice").map_or(ToolChoice::Auto, choice),
        blockers: RewriteBlockers {
            legacy_functions: has("functions") || has("function_call"),
            multiple_choices: body.get("n").is_some_and(|n| n != "1" && n != "null"),
            ..RewriteBlockers::default()
        },
        ..RequestOutline::default()
    }
}

/// Reads the conversation in a body.
pub(super) fn read_conversation(text: &str, messages: &str) -> Option<ParsedHistory> {
    let mut rows = HistoryBuilder::default();
    for entry in json::items(messages)? {
        let entry = entry.get();
        let message = ChatMessage::read(entry)?;
        let speaker = if message.role == "assistant" { Speaker::Model } else { Speaker::Client };
        let segment = rows.add(speaker, HistoryEntry::InBody(range_of(text, entry)));
        // System messages are not fingerprinted, because they may contain text that changes between requests, such as
        // the time or the working folder.
        if speaker == Speaker::Model || message.role == "user" {
            message.texts(&mut |text| segment.fingerprint.text(text));
        }
        for call in message.calls() {
            let arguments = call.arguments.as_deref().unwrap_or_default();
            segment.call(call.id, call.name, arguments);
        }
        if let Some(id) = message.tool_call_id {
            segment.fingerprint.call(Some(&id), "", "");
        }
    }
    Some(rows.finish())
}

/// Parses `tool_choice`.
fn choice(text: &str) -> ToolChoice {
    match text {
        r#""none""# => return ToolChoice::None,
        r#""required""# => return ToolChoice::Required,
        _ => {}
    }
    let Some(fields) = Fields::read(text) else { return ToolChoice::Auto };
    let allowed = fields.get("allowed_tools").and_then(Fields::read);
    let named = match &allowed {
        Some(allowed) => allowed.get("tools").and_then(json::items).unwrap_or_default(),
        None => {
            return message::name(text)
                .map_or(ToolChoice::Auto, |name| ToolChoice::Named(vec![name]));
        }
    };
    ToolChoice::Named(named.iter().filter_map(|tool| message::name(tool.get())).collect())
}
