//! A request of Chat Completions.

use toolcrib_core::json::{self, Fields};

use super::message::{self, Message};
use crate::request::{Bypass, Choice, Entry, Read, Rows, Who, place};

/// Reads a body.
pub(super) fn read(text: &str) -> Result<Read, Bypass> {
    let body = Fields::read(text).ok_or(Bypass::Malformed)?;
    let messages = body.get("messages").ok_or(Bypass::Malformed)?;
    let entries = json::items(messages).ok_or(Bypass::Malformed)?;
    let tools = match body.get("tools").map(|tools| (tools, json::is_empty_list(tools))) {
        Some((tools, Some(false))) => tools,
        _ if body.get("functions").is_some() => return Err(Bypass::LegacyFunctions),
        Some((_, None)) => return Err(Bypass::Malformed),
        _ => return Err(Bypass::NoTools),
    };
    if body.get("functions").is_some() || body.get("function_call").is_some() {
        return Err(Bypass::LegacyFunctions);
    }
    if body.get("n").is_some_and(|n| n != "1" && n != "null") {
        return Err(Bypass::SeveralAnswers);
    }
    let mut rows = Rows::default();
    for entry in entries {
        let entry = entry.get();
        let message = Message::read(entry).ok_or(Bypass::Malformed)?;
        let who = if message.role == "assistant" { Who::Model } else { Who::Client };
        let stretch = rows.add(who, Entry::At(place(text, entry)));
        // What a system says may change from one request to the next: the time, a folder.
        if who == Who::Model || message.role == "user" {
            message.texts(&mut |text| stretch.print.text(text));
        }
        for call in message.calls() {
            let arguments = call.arguments.as_deref().unwrap_or_default();
            stretch.print.call(call.id.as_deref(), &call.name, arguments);
            stretch.calls.push(call.name);
        }
        if let Some(id) = message.answers {
            stretch.print.call(Some(&id), "", "");
        }
    }
    Ok(Read {
        model: body.string("model").ok_or(Bypass::Malformed)?,
        stream: body.get("stream") == Some("true"),
        counts: false,
        choice: body.get("tool_choice").map_or(Choice::Auto, choice),
        tools: place(text, tools),
        history: place(text, messages),
        stretches: rows.done(),
        previous: None,
        keeps: false,
        defers: None,
    })
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
