//! Reads a Messages request, or a request that only counts tokens.

use toolcrib_text::json::Fields;

use super::content::{self, ContentBlock, Message, MessageContent, items, referenced_tool};
use crate::request::{
    ClientDeferral, HistoryBuilder, HistoryEntry, ParsedHistory, RequestOutline, SegmentBuilder,
    Speaker, ToolChoice,
};
use crate::splice::range_of;

/// Reads the top-level fields of a body.
pub(super) fn read_outline<'a>(body: &Fields<'a>) -> RequestOutline<'a> {
    let thinking = body.get("thinking").and_then(Fields::read);
    let wants_thinking =
        thinking.is_some_and(|thinking| thinking.string("type").as_deref() != Some("disabled"));
    RequestOutline {
        history: body.get("messages"),
        stream: body.get("stream") == Some("true"),
        choice: body.get("tool_choice").map_or(ToolChoice::Auto, choice),
        wants_thinking,
        ..RequestOutline::default()
    }
}

/// Reads the conversation in a body.
pub(super) fn read_conversation(text: &str, messages: &str) -> Option<ParsedHistory> {
    let mut rows = HistoryBuilder::default();
    for entry in items(messages)? {
        let message = Message::read(entry)?;
        let speaker = if message.role == "assistant" { Speaker::Model } else { Speaker::Client };
        let segment = rows.add(speaker, HistoryEntry::InBody(range_of(text, entry)));
        // System messages are not fingerprinted, because they may contain text that changes between requests, such as
        // the time or the working folder.
        let has_text = speaker == Speaker::Model || message.role == "user";
        add_to_fingerprint(&message, has_text, segment);
    }
    Some(rows.finish())
}

/// Adds a message to the fingerprint. Thinking blocks are left out, because some clients drop them from the history.
fn add_to_fingerprint(message: &Message<'_>, has_text: bool, segment: &mut SegmentBuilder) {
    if let (Some(MessageContent::Text(text)), true) = (message.content(), has_text) {
        segment.fingerprint.text(&text);
    }
    for block in message.blocks() {
        match block.kind.as_str() {
            "text" if has_text => {
                segment.fingerprint.text(&block.fields.string("text").unwrap_or_default());
            }
            "tool_result" => {
                segment.fingerprint.call(block.fields.string("tool_use_id").as_deref(), "", "");
            }
            _ => {
                if let Some((id, name, input)) = block.call() {
                    segment.call(id, name, input);
                }
            }
        }
    }
}

/// Parses `tool_choice`.
fn choice(text: &str) -> ToolChoice {
    let Some(fields) = Fields::read(text) else { return ToolChoice::Auto };
    match (fields.string("type").as_deref(), fields.string("name")) {
        (Some("none"), _) => ToolChoice::None,
        (Some("any"), _) => ToolChoice::Required,
        (Some("tool"), Some(name)) => ToolChoice::Named(vec![name]),
        _ => ToolChoice::Auto,
    }
}

/// Returns how the client defers tools itself, judging by its tool list and its history.
pub(super) fn client_deferral(tools: &str, messages: &str) -> Option<ClientDeferral> {
    // Few clients defer tools themselves. The tools are parsed only if their text suggests that this client does.
    let may_defer = tools.contains("tool_search") || tools.contains("defer_loading");
    let tools = if may_defer { items(tools).unwrap_or_default() } else { Vec::new() };
    let tools: Vec<Fields<'_>> = tools.into_iter().filter_map(Fields::read).collect();
    if tools.iter().any(is_tool_search) {
        return Some(ClientDeferral::Hosted);
    }
    let has_references = || {
        messages.contains("tool_reference")
            && items(messages)
                .unwrap_or_default()
                .into_iter()
                .any(|entry| !loaded_by(entry).is_empty())
    };
    // Tools that a client adds in a message are not in `tools` from the start, so the client defers them.
    let adds = || {
        let entries = items(messages).unwrap_or_default().into_iter();
        messages.contains("tool_addition")
            && entries.filter_map(Fields::read).any(|entry| adds_tools(&entry))
    };
    (tools.iter().any(is_deferred) || has_references() || adds())
        .then_some(ClientDeferral::References)
}

pub(super) fn is_tool_search(tool: &Fields<'_>) -> bool {
    tool.string("type").is_some_and(|kind| content::is_search_name(&kind))
}

/// Whether a message adds tools to the conversation.
fn adds_tools(message: &Fields<'_>) -> bool {
    let content = message.get("content").and_then(items).unwrap_or_default();
    let adds = |block: &Fields<'_>| block.string("type").as_deref() == Some("tool_addition");
    message.string("role").as_deref() == Some("system")
        && content.into_iter().filter_map(Fields::read).any(|block| adds(&block))
}

pub(super) fn is_deferred(tool: &Fields<'_>) -> bool {
    tool.get("defer_loading") == Some("true")
}

/// Returns the blocks in a `tool_result`, or `None` if the block is of another type or its content is a string.
pub(super) fn result_blocks<'a>(block: &ContentBlock<'a>) -> Option<Vec<&'a str>> {
    if block.kind != "tool_result" {
        return None;
    }
    items(block.fields.get("content")?)
}

/// Returns the names of the tools that the results in a message load.
pub(super) fn loaded_by(entry: &str) -> Vec<String> {
    let results = Message::read(entry).map(|message| message.blocks()).unwrap_or_default();
    let inner = results.iter().filter_map(result_blocks).flatten();
    inner.filter_map(referenced_tool).collect()
}
