//! Restores hidden calls and answers in the messages of a conversation.
//!
//! The API requires all results of a turn at the beginning of the next user message. So hidden answers are put at the
//! front of the client's message. If the client sent no message, they get a message of their own.

use std::borrow::Cow;

use toolcrib_text::json::{self, Fields};

use super::content::{
    self, ContentBlock, Message, MessageContent, edit_items, json_list, referenced_tool,
    write_message,
};
use super::thinking::without_thinking;
use crate::call_ids::{self, GeneratedId};
use crate::dialect::{CallIdMapper, ForwardedCall};
use crate::hidden_rounds::HiddenAnswer;
use crate::toolset::Toolset;

/// The text of a search result if none of the tools that it loaded exists any more.
const TOOLS_UNAVAILABLE: &str = "The tools that were found are no longer available.";

/// Rewrites a message so that its calls to deferred tools go through the bridge tool `call`.
pub(super) fn wrap_deferred_calls(
    entry: &str,
    deferred: &dyn Fn(&str) -> bool,
    call: &str,
) -> Option<String> {
    let message = Message::read(entry)?;
    let MessageContent::Blocks(blocks) = message.content()? else { return None };
    let wrapped = |raw: &str| {
        let block = ContentBlock::read(raw)?;
        let (_, name, input) = block.call().filter(|(_, name, _)| deferred(name))?;
        let input = if Fields::read(input).is_some() { input } else { "{}" };
        let input = format!(r#"{{"name":{},"arguments":{input}}}"#, json::quote(&name));
        Some(block.fields.with(&[("name", Some(json::quote(call))), ("input", Some(input))]))
    };
    edit_items(&blocks, |raw| wrapped(raw).map(Some)).map(|blocks| message.with(&blocks))
}

/// Inserts hidden answers at the front of the user message that follows the calls.
pub(super) fn insert_hidden_answers<'a>(
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
            Some((client_content, user)) => {
                match client_content {
                    MessageContent::Text(text) if text.is_empty() => {}
                    MessageContent::Text(text) => blocks.push(content::text_block(&text)),
                    MessageContent::Blocks(client_content) => {
                        blocks.extend(client_content.into_iter().map(str::to_owned));
                    }
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

/// Replaces the call ids in a message's results with the upstream's ids of the calls, if the client sent different ids
/// or none.
fn with_upstream_id<'a>(entry: &'a str, ids: &mut CallIdMapper<'_>) -> Cow<'a, str> {
    // Parsing every message is expensive, and few clients change ids. So messages are parsed only if an id may have
    // changed.
    if ids.is_empty() {
        return Cow::Borrowed(entry);
    }
    let renamed = |raw: &str| {
        let block = ContentBlock::read(raw).filter(|block| block.kind == "tool_result")?;
        let id = ids.upstream_id_for(block.fields.string("tool_use_id").as_deref(), None)?;
        Some(Some(block.fields.with(&[("tool_use_id", Some(json::quote(id)))])))
    };
    edit_blocks(entry, renamed).map_or(Cow::Borrowed(entry), Cow::Owned)
}

/// Adds generated ids to those calls of a message that have no id.
pub(super) fn with_generated_ids(entry: &str, generated: &mut Vec<GeneratedId>) -> Option<String> {
    edit_blocks(entry, |raw| {
        let block = ContentBlock::read(raw)?;
        let (id, name, _) = block.call()?;
        if id.is_some_and(|id| !id.is_empty()) {
            return None;
        }
        let id = call_ids::take_for(generated, &name)?;
        Some(Some(block.fields.with(&[("id", Some(json::quote(&id)))])))
    })
}

/// Returns the message with `change` applied to its blocks, or `None` if no block changed.
fn edit_blocks(entry: &str, change: impl FnMut(&str) -> Option<Option<String>>) -> Option<String> {
    let message = Message::read(entry)?;
    let MessageContent::Blocks(blocks) = message.content()? else { return None };
    Some(message.with(&edit_items(&blocks, change)?))
}

/// Returns a hidden answer as a `tool_result` block.
pub(super) fn result_block(answer: &HiddenAnswer, toolset: &Toolset) -> String {
    let declared = answer.references.iter().filter(|tool| toolset.is_declared(&tool.name));
    let mut blocks: Vec<String> = declared
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

/// Adapts a stored turn to the version that the client sends back, and to the tools that still exist.
pub(super) fn adapt_to_echo(
    stored: Vec<String>,
    echoed: &[&str],
    toolset: &Toolset,
) -> Vec<String> {
    let echoed: Vec<Message<'_>> = echoed.iter().filter_map(|entry| Message::read(entry)).collect();
    let echoed_blocks = || echoed.iter().flat_map(Message::blocks);
    let has_thinking = echoed_blocks().any(|block| block.is_thinking());
    let breakpoint_of = |block: ContentBlock<'_>| {
        block.fields.get("cache_control").filter(|raw| *raw != "null").map(str::to_owned)
    };
    let breakpoint = echoed_blocks().filter_map(breakpoint_of).next_back();
    let adapt = |entry: String| {
        let entry = if has_thinking { entry } else { without_thinking(&entry)? };
        let known =
            Message::read(&entry).and_then(|message| without_missing_references(&message, toolset));
        Some(known.unwrap_or(entry))
    };
    let mut stored: Vec<String> = stored.into_iter().filter_map(adapt).collect();
    if let (Some(breakpoint), Some(last)) = (breakpoint, stored.last_mut())
        && let Some(edited) = with_breakpoint(last, breakpoint)
    {
        *last = edited;
    }
    stored
}

/// Returns the message without references to tools that no longer exist, because the API rejects a request with even
/// one such reference. Returns `None` if the message has no such references.
fn without_missing_references(message: &Message<'_>, toolset: &Toolset) -> Option<String> {
    let MessageContent::Blocks(blocks) = message.content()? else { return None };
    let is_missing =
        |raw: &str| referenced_tool(raw).is_some_and(|name| !toolset.is_declared(&name));
    let known = |raw: &str| {
        let block = ContentBlock::read(raw)?;
        let inner = block.fields.get("content")?;
        let left = match block.kind.as_str() {
            "tool_result" => {
                let mut left =
                    edit_items(&content::items(inner)?, |raw| is_missing(raw).then_some(None))?;
                if left.is_empty() {
                    left.push(content::text_block(TOOLS_UNAVAILABLE));
                }
                json_list(&left)
            }
            // The API accepts a result of the provider's search without any tools, so no replacement text is needed.
            "tool_search_tool_result" => {
                let inner = Fields::read(inner)?;
                let found = content::items(inner.get("tool_references")?)?;
                let left = edit_items(&found, |raw| is_missing(raw).then_some(None))?;
                inner.with(&[("tool_references", Some(json_list(&left)))])
            }
            _ => return None,
        };
        Some(block.fields.with(&[("content", Some(left))]))
    };
    edit_items(&blocks, |raw| known(raw).map(Some)).map(|blocks| message.with(&blocks))
}

/// Returns the message with a cache breakpoint on the last block that can have one.
fn with_breakpoint(entry: &str, breakpoint: String) -> Option<String> {
    let message = Message::read(entry)?;
    let MessageContent::Blocks(blocks) = message.content()? else { return None };
    let can_have_breakpoint =
        |raw: &&str| ContentBlock::read(raw).is_some_and(|block| !block.is_thinking());
    let at = blocks.iter().rposition(can_have_breakpoint)?;
    let mut blocks: Vec<String> = blocks.into_iter().map(str::to_owned).collect();
    let block = Fields::read(&blocks[at])?.with(&[("cache_control", Some(breakpoint))]);
    blocks[at] = block;
    Some(message.with(&blocks))
}
