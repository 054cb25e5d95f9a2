//! Rewrites requests of clients that defer tools themselves, for a backend that does not support deferral.
//!
//! Some clients declare the provider's search and mark their tools with `defer_loading`. Others search themselves and
//! return `tool_reference` blocks. A backend without deferral rejects such a request, or silently drops parts of it.
//! The rewritten request has the same meaning without these features.

use toolcrib_text::json::{self, Fields};

use super::content::{
    self, ContentBlock, Message, MessageContent, edit_items, items, json_list, referenced_tool,
};
use super::request::{client_deferral, is_deferred, is_tool_search, loaded_by, result_blocks};
use crate::request::{ClientDeferral, Request};
use crate::splice::{range_of, splice};

/// The text that replaces the content of a message that consisted only of calls and results of the provider's search.
const SEARCH_PLACEHOLDER: &str = "I searched for tools.";

/// Rewrites a request so that it does not use deferral. Returns `None` if the request does not use deferral.
///
/// If the client uses the provider's search, all tools are kept, so that they can be deferred in another way. If the
/// client uses references, only the tools that were loaded so far are kept, in the order in which they were loaded. So
/// `tools` only grows during a conversation.
pub fn without_deferral(text: &str) -> Option<String> {
    let body = Fields::read(text)?;
    rewrite(text, body.get("tools"), body.get("messages")?)
}

/// Like [`without_deferral`], but takes a parsed request, so that the body is not parsed again.
pub(crate) fn without_deferral_in(request: &Request) -> Option<String> {
    rewrite(&request.text, Some(request.tools()), request.history())
}

/// Rewrites the request in `text`. `tools` and `messages` are slices of `text`.
fn rewrite(text: &str, tools: Option<&str>, messages: &str) -> Option<String> {
    let kind = client_deferral(tools.unwrap_or("[]"), messages)?;
    let entries = items(messages)?;
    let mut changes = Vec::new();
    if let Some(history) = edit_items(&entries, |entry| plain_message(entry).map(Some)) {
        changes.push((range_of(text, messages), json_list(&history)));
    }
    if let Some(tools) = tools {
        let loaded: Vec<String> = entries.iter().flat_map(|entry| loaded_by(entry)).collect();
        changes.push((range_of(text, tools), loaded_tools(tools, kind, &loaded)?));
    }
    Some(splice(text, changes))
}

fn loaded_tools(tools: &str, kind: ClientDeferral, loaded: &[String]) -> Option<String> {
    let mut now = Vec::new();
    let mut later: Vec<(usize, String)> = Vec::new();
    for raw in items(tools)? {
        let Some(tool) = Fields::read(raw) else {
            now.push(raw.to_owned());
            continue;
        };
        if is_tool_search(&tool) {
            continue;
        }
        let unmarked = match tool.get("defer_loading") {
            Some(_) => tool.with(&[("defer_loading", None)]),
            None => raw.to_owned(),
        };
        if kind == ClientDeferral::Hosted || !is_deferred(&tool) {
            now.push(unmarked);
        } else if let Some(name) = tool.string("name")
            && let Some(at) = loaded.iter().position(|known| *known == name)
        {
            later.push((at, unmarked));
        }
    }
    later.sort_by_key(|(at, _)| *at);
    now.extend(later.into_iter().map(|(_, tool)| tool));
    Some(json_list(&now))
}

/// Returns the message with its references written as text, and without blocks of the provider's search. Returns `None`
/// if it has neither.
fn plain_message(entry: &str) -> Option<String> {
    let message = Message::read(entry)?;
    let MessageContent::Blocks(blocks) = message.content()? else { return None };
    let mut left = edit_items(&blocks, |raw| {
        let block = ContentBlock::read(raw)?;
        if block.is_search() {
            return Some(None);
        }
        let inner = edit_items(&result_blocks(&block)?, |raw| reference_as_text(raw).map(Some))?;
        Some(Some(block.fields.with(&[("content", Some(json_list(&inner)))])))
    })?;
    if left.is_empty() {
        left.push(content::text_block(SEARCH_PLACEHOLDER));
    }
    Some(message.with(&left))
}

/// Returns a `tool_reference` block as a text block. Other fields of the block, such as `cache_control`, are kept.
fn reference_as_text(raw: &str) -> Option<String> {
    let name = referenced_tool(raw)?;
    let text = json::quote(&format!("The tool {name} is loaded."));
    let edits = [("type", Some(r#""text""#.to_owned())), ("tool_name", None), ("text", Some(text))];
    Some(Fields::read(raw)?.with(&edits))
}
