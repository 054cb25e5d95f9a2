//! Reads a request of the Responses API.

use toolcrib_text::json::{self, Fields};

use super::item::{Item, callable_name};
use crate::request::{
    ClientDeferral, HistoryBuilder, HistoryEntry, ParsedHistory, RequestOutline, RewriteBlockers,
    Speaker, ToolChoice,
};
use crate::splice::range_of;

/// Reads the top-level fields of a body.
pub(super) fn read_outline<'a>(body: &Fields<'a>) -> RequestOutline<'a> {
    let given = |key: &str| body.get(key).filter(|raw| *raw != "null");
    let previous = given("previous_response_id");
    RequestOutline {
        history: body.get("input"),
        stream: body.get("stream") == Some("true"),
        choice: body.get("tool_choice").map_or(ToolChoice::Auto, choice),
        previous: previous.and_then(|raw| Some((serde_json::from_str(raw).ok()?, raw))),
        is_stored: body.get("store") != Some("false"),
        blockers: RewriteBlockers {
            background: given("background") == Some("true"),
            stored_conversation: given("conversation").is_some(),
            ..RewriteBlockers::default()
        },
        ..RequestOutline::default()
    }
}

/// Reads the conversation in a body. `input` is a JSON string or a list of items.
pub(super) fn read_conversation(text: &str, input: &str) -> Option<ParsedHistory> {
    let mut rows = HistoryBuilder::default();
    if let Ok(words) = serde_json::from_str::<String>(input) {
        let entry = format!(r#"{{"type":"message","role":"user","content":{}}}"#, input.trim());
        rows.add(Speaker::Client, HistoryEntry::Expanded(entry)).fingerprint.text(&words);
        return Some(rows.finish());
    }
    let mut loads_tools = false;
    for entry in json::items(input)? {
        let item = Item::read(entry.get())?;
        loads_tools |= matches!(
            item.kind.as_str(),
            "tool_search_call" | "tool_search_output" | "additional_tools"
        );
        add(&mut rows, &item, HistoryEntry::InBody(range_of(text, entry.get())));
    }
    Some(ParsedHistory { loads_tools, ..rows.finish() })
}

fn add(rows: &mut HistoryBuilder, item: &Item<'_>, entry: HistoryEntry) {
    let speaker = item.speaker();
    let segment = rows.add(speaker, entry);
    let user = item.fields.string("role").as_deref() == Some("user");
    // System messages are not fingerprinted, because they may contain text that changes between requests, such as the
    // time or the working folder.
    if speaker == Speaker::Model || user {
        item.texts(&mut |text| segment.fingerprint.text(text));
    }
    if let Some(call) = item.client_call() {
        segment.call(call.id, call.name, &call.arguments);
    }
    if let Some(id) = item.answered_call_id() {
        segment.fingerprint.call(Some(&id), "", "");
    }
}

/// Parses `tool_choice`.
fn choice(text: &str) -> ToolChoice {
    match text {
        r#""none""# => return ToolChoice::None,
        r#""required""# => return ToolChoice::Required,
        _ => {}
    }
    let Some(fields) = Fields::read(text) else { return ToolChoice::Auto };
    if fields.string("type").as_deref() == Some("allowed_tools") {
        let tools = fields.get("tools").and_then(json::items).unwrap_or_default();
        return ToolChoice::Named(
            tools.iter().filter_map(|tool| callable_name(tool.get())).collect(),
        );
    }
    callable_name(text).map_or(ToolChoice::Auto, |name| ToolChoice::Named(vec![name]))
}

/// Returns how the client defers tools itself, judging by its tool list.
pub(super) fn client_deferral(tools: &str) -> Option<ClientDeferral> {
    // Few clients defer tools themselves. The tools are parsed only if their text suggests that this client does.
    if !tools.contains("tool_search") {
        return None;
    }
    for tool in json::items(tools)? {
        let Some(fields) = Fields::read(tool.get()) else { continue };
        if is_tool_search(&fields) {
            let is_client_search = fields.string("execution").as_deref() == Some("client");
            return Some(if is_client_search {
                ClientDeferral::References
            } else {
                ClientDeferral::Hosted
            });
        }
    }
    None
}

/// Whether a tool is a tool search, under any of its names.
pub(super) fn is_tool_search(tool: &Fields<'_>) -> bool {
    let kind = tool.string("type").unwrap_or_default();
    matches!(kind.as_str(), "tool_search" | "openrouter:tool_search" | "orq:tool_search")
}
