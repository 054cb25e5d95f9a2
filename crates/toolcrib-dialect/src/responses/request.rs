//! A request of the Responses API.

use toolcrib_core::json::{self, Fields};

use super::item::{Item, named};
use crate::api::Api;
use crate::request::{Bypass, Choice, Defers, Entry, Previous, Read, Rows, Who, place};
use crate::turn;

/// Reads a body.
pub(super) fn read(text: &str, target: &str) -> Result<Read, Bypass> {
    let body = Fields::read(text).ok_or(Bypass::Malformed)?;
    let input = body.get("input").ok_or(Bypass::Malformed)?;
    let said = |key: &str| body.get(key).filter(|raw| *raw != "null");
    let tools = match said("tools").map(|tools| (tools, json::is_empty_list(tools))) {
        Some((tools, Some(false))) => tools,
        Some((_, None)) => return Err(Bypass::Malformed),
        _ => return Err(Bypass::NoTools),
    };
    if said("background") == Some("true") {
        return Err(Bypass::Background);
    }
    if said("conversation").is_some() {
        return Err(Bypass::Conversation);
    }
    let mut rows = Rows::default();
    let mut loads = false;
    if let Ok(words) = serde_json::from_str::<String>(input) {
        let entry = format!(r#"{{"type":"message","role":"user","content":{}}}"#, input.trim());
        rows.add(Who::Client, Entry::Made(entry)).print.text(&words);
    } else {
        for entry in json::items(input).ok_or(Bypass::Malformed)? {
            let item = Item::read(entry.get()).ok_or(Bypass::Malformed)?;
            loads |= matches!(
                item.kind.as_str(),
                "tool_search_call" | "tool_search_output" | "additional_tools"
            );
            add(&mut rows, &item, Entry::At(place(text, entry.get())));
        }
    }
    let previous = said("previous_response_id").and_then(|raw| {
        let id = serde_json::from_str(raw).ok()?;
        Some(Previous { id, place: place(text, raw) })
    });
    let path = target.split('?').next().unwrap_or_default();
    Ok(Read {
        model: body.string("model").ok_or(Bypass::Malformed)?,
        stream: body.get("stream") == Some("true"),
        counts: turn::counts_at(Api::Responses, path),
        choice: body.get("tool_choice").map_or(Choice::Auto, choice),
        tools: place(text, tools),
        history: place(text, input),
        stretches: rows.done(),
        previous,
        keeps: body.get("store") != Some("false"),
        defers: defers(tools).or(loads.then_some(Defers::References)),
    })
}

fn add(rows: &mut Rows, item: &Item<'_>, entry: Entry) {
    let who = item.who();
    let stretch = rows.add(who, entry);
    let user = item.fields.string("role").as_deref() == Some("user");
    // What a system says may change from one request to the next: the time, a folder.
    if who == Who::Model || user {
        item.texts(&mut |text| stretch.print.text(text));
    }
    if let Some(asked) = item.asks() {
        stretch.print.call(asked.id.as_deref(), &asked.name, &asked.arguments);
        stretch.calls.push(asked.name);
    }
    if let Some(id) = item.answers() {
        stretch.print.call(Some(&id), "", "");
    }
}

/// What `tool_choice` says.
fn choice(text: &str) -> Choice {
    match text {
        r#""none""# => return Choice::None,
        r#""required""# => return Choice::Required,
        _ => {}
    }
    let Some(fields) = Fields::read(text) else { return Choice::Auto };
    if fields.string("type").as_deref() == Some("allowed_tools") {
        let tools = fields.get("tools").and_then(json::items).unwrap_or_default();
        return Choice::Named(tools.iter().filter_map(|tool| named(tool.get())).collect());
    }
    named(text).map_or(Choice::Auto, |name| Choice::Named(vec![name]))
}

/// How the client defers by itself, if its tools say so.
fn defers(tools: &str) -> Option<Defers> {
    // Few clients do, and the tools of all others need not be taken apart to see it.
    if !tools.contains("tool_search") {
        return None;
    }
    for tool in json::items(tools)? {
        let Some(fields) = Fields::read(tool.get()) else { continue };
        if is_search(&fields) {
            let own = fields.string("execution").as_deref() == Some("client");
            return Some(if own { Defers::References } else { Defers::Hosted });
        }
    }
    None
}

/// Whether a tool is a search of tools, under any of its names.
pub(super) fn is_search(tool: &Fields<'_>) -> bool {
    let kind = tool.string("type").unwrap_or_default();
    matches!(kind.as_str(), "tool_search" | "openrouter:tool_search" | "orq:tool_search")
}
