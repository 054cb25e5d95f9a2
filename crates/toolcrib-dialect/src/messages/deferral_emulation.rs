//! Clients that defer by themselves, for a backend that knows nothing of it.
//!
//! Some declare the provider's search and mark their tools; some search by themselves and answer with
//! `tool_reference` blocks. A backend without the words for it refuses such a request, or drops half of
//! it without a word. What is written here says the same without them.

use toolcrib_text::json::{self, Fields};

use super::content::{self, Block, Content, Message, items, json_list, referenced_tool};
use super::history::edit_items;
use super::request::{client_deferral, is_deferred, is_tool_search, loaded_by, result_blocks};
use crate::request::{ClientDeferral, Request};
use crate::splice::{range_of, splice};

/// What stands where a turn was nothing but a search of the provider's.
const SEARCH_PLACEHOLDER: &str = "I searched for tools.";

/// The same request in words that every backend knows; `None` where there is nothing to say
/// otherwise. With a search of the provider's all tools stay, for who searches in its stead; with
/// references those stay that are loaded by now, each at the end once it is, so that `tools` only grows.
pub fn without_deferral(text: &str) -> Option<String> {
    let body = Fields::read(text)?;
    rewrite(text, body.get("tools"), body.get("messages")?)
}

/// The same for a request that was read: its body need not be parsed again.
pub(crate) fn without_deferral_in(request: &Request) -> Option<String> {
    rewrite(&request.text, Some(request.tools()), request.history())
}

/// `tools` and `messages` are slices of `text`.
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

/// A message without references and without what the provider's search said; `None` where it has
/// neither.
fn plain_message(entry: &str) -> Option<String> {
    let message = Message::read(entry)?;
    let Content::Blocks(blocks) = message.content()? else { return None };
    let mut left = edit_items(&blocks, |raw| {
        let block = Block::read(raw)?;
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

/// A reference in words, with whatever mark it bears.
fn reference_as_text(raw: &str) -> Option<String> {
    let name = referenced_tool(raw)?;
    let text = json::quote(&format!("The tool {name} is loaded."));
    let edits = [("type", Some(r#""text""#.to_owned())), ("tool_name", None), ("text", Some(text))];
    Some(Fields::read(raw)?.with(&edits))
}
