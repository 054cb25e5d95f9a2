//! What the client never saw, put into its messages.
//!
//! The API wants all results of a turn in the one message after it, before anything else. So an
//! answer of ours goes to the front of the client's own message, and has one for itself only where
//! there is none.

use std::borrow::Cow;

use toolcrib_text::json::{self, Fields};

use super::content::{self, Block, Content, Message, json_list, referenced_tool, write_message};
use crate::call_ids::{self, GeneratedId};
use crate::dialect::{CallIdMapper, ForwardedCall};
use crate::hidden_rounds::HiddenAnswer;
use crate::toolset::Toolset;

/// What stands where every tool that an answer loaded is gone.
const TOOLS_UNAVAILABLE: &str = "The tools that were found are no longer available.";

/// A message whose calls of deferred tools go through `call` again.
pub(super) fn wrap_deferred_calls(
    entry: &str,
    deferred: &dyn Fn(&str) -> bool,
    call: &str,
) -> Option<String> {
    let message = Message::read(entry)?;
    let Content::Blocks(blocks) = message.content()? else { return None };
    let wrapped = |raw: &str| {
        let block = Block::read(raw)?;
        let (_, name, input) = block.call().filter(|(_, name, _)| deferred(name))?;
        let input = if Fields::read(input).is_some() { input } else { "{}" };
        let input = format!(r#"{{"name":{},"arguments":{input}}}"#, json::quote(&name));
        Some(block.fields.with(&[("name", Some(json::quote(call))), ("input", Some(input))]))
    };
    edit_items(&blocks, |raw| wrapped(raw).map(Some)).map(|blocks| message.with(&blocks))
}

/// Answers stand first in the message after the calls.
pub(super) fn insert_hidden_results<'a>(
    entries: Vec<&'a str>,
    answers: &[HiddenAnswer],
    calls: &[ForwardedCall<'_>],
    toolset: &Toolset,
) -> Vec<Cow<'a, str>> {
    let mut ids = CallIdMapper::new(calls);
    let mut entries: Vec<Cow<'a, str>> =
        entries.into_iter().map(|entry| with_upstream_id(entry, &mut ids)).collect();
    let mut blocks: Vec<String> =
        answers.iter().map(|answer| result_block(answer, toolset)).collect();
    let mut all: Vec<Cow<'a, str>> = Vec::with_capacity(entries.len() + 1);
    if !blocks.is_empty() {
        let user = entries.first().and_then(|entry| Message::read(entry));
        let user = user.filter(|message| message.role == "user");
        match user.and_then(|message| Some((message.content()?, message))) {
            Some((theirs, user)) => {
                match theirs {
                    Content::Text(text) if text.is_empty() => {}
                    Content::Text(text) => blocks.push(content::text_block(&text)),
                    Content::Blocks(theirs) => blocks.extend(theirs.into_iter().map(str::to_owned)),
                }
                all.push(Cow::Owned(user.with(&blocks)));
                entries.remove(0);
            }
            None => all.push(Cow::Owned(write_message("user", &blocks))),
        }
    }
    all.append(&mut entries);
    all
}

/// A message with its results under the ids that the upstream knows their calls by, if the client knows them by
/// others or by none.
fn with_upstream_id<'a>(entry: &'a str, ids: &mut CallIdMapper<'_>) -> Cow<'a, str> {
    // Taking every message apart costs, and few clients change ids.
    if ids.is_empty() {
        return Cow::Borrowed(entry);
    }
    let renamed = |raw: &str| {
        let block = Block::read(raw).filter(|block| block.kind == "tool_result")?;
        let id = ids.upstream_id_for(block.fields.string("tool_use_id").as_deref(), None)?;
        Some(Some(block.fields.with(&[("tool_use_id", Some(json::quote(id)))])))
    };
    edit_blocks(entry, renamed).map_or(Cow::Borrowed(entry), Cow::Owned)
}

/// A message whose calls without an id have those that were made for them.
pub(super) fn with_generated_ids(entry: &str, generated: &mut Vec<GeneratedId>) -> Option<String> {
    edit_blocks(entry, |raw| {
        let block = Block::read(raw)?;
        let (id, name, _) = block.call()?;
        if id.is_some_and(|id| !id.is_empty()) {
            return None;
        }
        let id = call_ids::take_for(generated, &name)?;
        Some(Some(block.fields.with(&[("id", Some(json::quote(&id)))])))
    })
}

/// A message of which some blocks are changed; `None` where none is.
fn edit_blocks(entry: &str, change: impl FnMut(&str) -> Option<Option<String>>) -> Option<String> {
    let message = Message::read(entry)?;
    let Content::Blocks(blocks) = message.content()? else { return None };
    Some(message.with(&edit_items(&blocks, change)?))
}

/// An answer as a block.
pub(super) fn result_block(answer: &HiddenAnswer, toolset: &Toolset) -> String {
    let here = answer.references.iter().filter(|tool| toolset.is_declared(&tool.name));
    let mut blocks: Vec<String> = here
        .map(|tool| {
            let name = json::quote(&tool.name);
            format!(r#"{{"type":"tool_reference","tool_name":{name}}}"#)
        })
        .collect();
    let content = if blocks.is_empty() {
        json::quote(if answer.text.is_empty() { TOOLS_UNAVAILABLE } else { &answer.text })
    } else {
        if !answer.text.is_empty() {
            blocks.push(content::text_block(&answer.text));
        }
        json_list(&blocks)
    };
    let id = json::quote(answer.id.as_deref().unwrap_or_default());
    let error = if answer.refused { r#","is_error":true"# } else { "" };
    format!(r#"{{"type":"tool_result","tool_use_id":{id},"content":{content}{error}}}"#)
}

/// A kept turn, fitted to what the client echoes of it and to the tools that still are.
pub(super) fn adapt_to_echo(stored: Vec<String>, echo: &[&str], toolset: &Toolset) -> Vec<String> {
    let echo: Vec<Message<'_>> = echo.iter().filter_map(|entry| Message::read(entry)).collect();
    let echoed = || echo.iter().flat_map(Message::blocks);
    let thinks = echoed().any(|block| block.is_thinking());
    let marks = |block: Block<'_>| {
        block.fields.get("cache_control").filter(|raw| *raw != "null").map(str::to_owned)
    };
    let mark = echoed().filter_map(marks).next_back();
    let fitted = |entry: String| {
        let entry = if thinks { entry } else { without_thinking(&entry)? };
        let known =
            Message::read(&entry).and_then(|message| without_missing_references(&message, toolset));
        Some(known.unwrap_or(entry))
    };
    let mut stored: Vec<String> = stored.into_iter().filter_map(fitted).collect();
    if let (Some(mark), Some(last)) = (mark, stored.last_mut())
        && let Some(marked) = with_breakpoint(last, mark)
    {
        *last = marked;
    }
    stored
}

/// A message without thinking; `None` where nothing is left.
pub(super) fn without_thinking(entry: &str) -> Option<String> {
    let Some(message) = Message::read(entry) else { return Some(entry.to_owned()) };
    let Some(Content::Blocks(blocks)) = message.content() else { return Some(entry.to_owned()) };
    let thinks = |raw: &str| Block::read(raw).is_some_and(|block| block.is_thinking());
    match edit_items(&blocks, |raw| thinks(raw).then_some(None)) {
        Some(left) if left.is_empty() => None,
        Some(left) => Some(message.with(&left)),
        None => Some(entry.to_owned()),
    }
}

/// A message without references to tools that are gone: one of them would fail the whole request.
fn without_missing_references(message: &Message<'_>, toolset: &Toolset) -> Option<String> {
    let Content::Blocks(blocks) = message.content()? else { return None };
    let gone = |raw: &str| referenced_tool(raw).is_some_and(|name| !toolset.is_declared(&name));
    let known = |raw: &str| {
        let block = Block::read(raw)?;
        let inner = block.fields.get("content")?;
        let left = match block.kind.as_str() {
            "tool_result" => {
                let mut left =
                    edit_items(&content::items(inner)?, |raw| gone(raw).then_some(None))?;
                if left.is_empty() {
                    left.push(content::text_block(TOOLS_UNAVAILABLE));
                }
                json_list(&left)
            }
            // The provider's own: what it found may be nothing.
            "tool_search_tool_result" => {
                let inner = Fields::read(inner)?;
                let found = content::items(inner.get("tool_references")?)?;
                let left = edit_items(&found, |raw| gone(raw).then_some(None))?;
                inner.with(&[("tool_references", Some(json_list(&left)))])
            }
            _ => return None,
        };
        Some(block.fields.with(&[("content", Some(left))]))
    };
    edit_items(&blocks, |raw| known(raw).map(Some)).map(|blocks| message.with(&blocks))
}

/// A message with the client's mark on its last block that can bear one.
fn with_breakpoint(entry: &str, mark: String) -> Option<String> {
    let message = Message::read(entry)?;
    let Content::Blocks(blocks) = message.content()? else { return None };
    let bears = |raw: &&str| Block::read(raw).is_some_and(|block| !block.is_thinking());
    let at = blocks.iter().rposition(bears)?;
    let mut blocks: Vec<String> = blocks.into_iter().map(str::to_owned).collect();
    let block = Fields::read(&blocks[at])?.with(&[("cache_control", Some(mark))]);
    blocks[at] = block;
    Some(message.with(&blocks))
}

/// Items of which some are changed or, for `Some(None)`, left out; `None` where none is.
pub(super) fn edit_items(
    items: &[&str],
    mut change: impl FnMut(&str) -> Option<Option<String>>,
) -> Option<Vec<String>> {
    let mut changed = false;
    let mut left = Vec::with_capacity(items.len());
    for item in items {
        match change(item) {
            Some(new) => {
                changed = true;
                left.extend(new);
            }
            None => left.push((*item).to_owned()),
        }
    }
    changed.then_some(left)
}
