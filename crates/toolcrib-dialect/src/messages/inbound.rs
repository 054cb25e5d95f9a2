//! Clients that defer by themselves, for a backend that knows nothing of it.
//!
//! Some declare the provider's search and mark their tools; some search by themselves and answer with
//! `tool_reference` blocks. A backend without the words for it refuses such a request, or drops half of
//! it without a word. What is written here says the same without them.

use toolcrib_core::json::{self, Fields};

use super::content::{self, Block, Content, Message, blocks, list, reference};
use super::history::edit;
use crate::request::Defers;
use crate::splice::{changed, place};

/// What stands where a turn was nothing but a search of the provider's.
const SEARCHED: &str = "I searched for tools.";

/// How a client defers, by its tools and its history.
pub(super) fn defers(tools: &str, messages: &str) -> Option<Defers> {
    // Few clients do, and the tools of all others need not be taken apart to see it.
    let may = tools.contains("tool_search") || tools.contains("defer_loading");
    let tools = if may { blocks(tools).unwrap_or_default() } else { Vec::new() };
    let tools: Vec<Fields<'_>> = tools.into_iter().filter_map(Fields::read).collect();
    if tools.iter().any(is_search) {
        return Some(Defers::Hosted);
    }
    let refers = || {
        messages.contains("tool_reference")
            && blocks(messages)
                .unwrap_or_default()
                .into_iter()
                .any(|entry| !loads(entry).is_empty())
    };
    // Tools that are added on the way are nowhere else, and whoever adds them defers.
    let adds = || {
        let entries = blocks(messages).unwrap_or_default().into_iter();
        messages.contains("tool_addition")
            && entries.filter_map(Fields::read).any(|entry| is_addition(&entry))
    };
    (tools.iter().any(is_deferred) || refers() || adds()).then_some(Defers::References)
}

/// The same request in words that every backend knows; `None` where there is nothing to say
/// otherwise. With a search of the provider's all tools stay, for who searches in its stead; with
/// references those stay that are loaded by now, each at the end once it is, so that `tools` only grows.
pub fn translate(text: &str) -> Option<String> {
    let body = Fields::read(text)?;
    let messages = body.get("messages")?;
    let tools = body.get("tools").unwrap_or("[]");
    let kind = defers(tools, messages)?;
    let entries = blocks(messages)?;
    let mut changes = Vec::new();
    if let Some(history) = edit(&entries, |entry| plain(entry).map(Some)) {
        changes.push((place(text, messages), list(&history)));
    }
    if body.get("tools").is_some() {
        let loaded: Vec<String> = entries.iter().flat_map(|entry| loads(entry)).collect();
        changes.push((place(text, tools), loaded_tools(tools, kind, &loaded)?));
    }
    Some(changed(text, changes))
}

fn is_search(tool: &Fields<'_>) -> bool {
    tool.string("type").is_some_and(|kind| content::is_search_name(&kind))
}

/// Whether a message adds tools to the conversation.
fn is_addition(message: &Fields<'_>) -> bool {
    let content = message.get("content").and_then(blocks).unwrap_or_default();
    let adds = |block: &Fields<'_>| block.string("type").as_deref() == Some("tool_addition");
    message.string("role").as_deref() == Some("system")
        && content.into_iter().filter_map(Fields::read).any(|block| adds(&block))
}

fn is_deferred(tool: &Fields<'_>) -> bool {
    tool.get("defer_loading") == Some("true")
}

fn loaded_tools(tools: &str, kind: Defers, loaded: &[String]) -> Option<String> {
    let mut now = Vec::new();
    let mut later: Vec<(usize, String)> = Vec::new();
    for raw in blocks(tools)? {
        let Some(tool) = Fields::read(raw) else {
            now.push(raw.to_owned());
            continue;
        };
        if is_search(&tool) {
            continue;
        }
        let unmarked = match tool.get("defer_loading") {
            Some(_) => tool.with(&[("defer_loading", None)]),
            None => raw.to_owned(),
        };
        if kind == Defers::Hosted || !is_deferred(&tool) {
            now.push(unmarked);
        } else if let Some(name) = tool.string("name")
            && let Some(at) = loaded.iter().position(|known| *known == name)
        {
            later.push((at, unmarked));
        }
    }
    later.sort_by_key(|(at, _)| *at);
    now.extend(later.into_iter().map(|(_, tool)| tool));
    Some(list(&now))
}

/// The content of a result, where it is made of blocks.
fn inside<'a>(block: &Block<'a>) -> Option<Vec<&'a str>> {
    if block.kind != "tool_result" {
        return None;
    }
    blocks(block.fields.get("content")?)
}

/// The tools that the results in a message load.
fn loads(entry: &str) -> Vec<String> {
    let results = Message::read(entry).map(|message| message.blocks()).unwrap_or_default();
    let inner = results.iter().filter_map(inside).flatten();
    inner.filter_map(reference).collect()
}

/// A message without references and without what the provider's search said; `None` where it has
/// neither.
fn plain(entry: &str) -> Option<String> {
    let message = Message::read(entry)?;
    let Content::Blocks(blocks) = message.content()? else { return None };
    let mut left = edit(&blocks, |raw| {
        let block = Block::read(raw)?;
        if block.is_search() {
            return Some(None);
        }
        let inner = edit(&inside(&block)?, |raw| told(raw).map(Some))?;
        Some(Some(block.fields.with(&[("content", Some(list(&inner)))])))
    })?;
    if left.is_empty() {
        left.push(content::text(SEARCHED));
    }
    Some(message.with(&left))
}

/// A reference in words, with whatever mark it bears.
fn told(raw: &str) -> Option<String> {
    let name = reference(raw)?;
    let text = json::quote(&format!("The tool {name} is loaded."));
    let edits = [("type", Some(r#""text""#.to_owned())), ("tool_name", None), ("text", Some(text))];
    Some(Fields::read(raw)?.with(&edits))
}
