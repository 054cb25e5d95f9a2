//! Restores hidden calls and answers in the items of the Responses API.

use std::borrow::Cow;

use toolcrib_text::json::{self, Fields};

use super::item::Item;
use super::tools::mark_deferred;
use crate::call_ids::{self, GeneratedId};
use crate::dialect::{CallIdMapper, ForwardedCall};
use crate::hidden_rounds::{HiddenAnswer, ReferencedTool};
use crate::mode::{Mode, ReferenceKind};
use crate::toolset::Toolset;

/// Rewrites a call to a deferred tool so that it goes through the bridge tool `call`.
pub(super) fn wrap_deferred_calls(
    entry: &str,
    deferred: &dyn Fn(&str) -> bool,
    call: &str,
) -> Option<String> {
    let (item, name) = deferred_call(entry, deferred)?;
    let arguments = item.fields.string("arguments");
    let arguments = arguments.as_deref().filter(|text| Fields::read(text).is_some());
    let bridge_arguments =
        format!(r#"{{"name":{},"arguments":{}}}"#, json::quote(&name), arguments.unwrap_or("{}"));
    Some(item.fields.with(&[
        ("name", Some(json::quote(call))),
        ("arguments", Some(json::quote(&bridge_arguments))),
        ("namespace", None),
    ]))
}

/// Sets the namespace of a call to a deferred tool to the namespace into which an item loads the tool.
pub(super) fn qualify_deferred_calls(
    entry: &str,
    deferred: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let (item, name) = deferred_call(entry, deferred)?;
    let has_namespace = item.fields.string("namespace").is_some_and(|space| space == name);
    // A namespace that the client set is replaced, because the tool is loaded into a namespace with the tool's own
    // name.
    (!has_namespace).then(|| item.fields.with(&[("namespace", Some(json::quote(&name)))]))
}

fn deferred_call<'a>(
    entry: &'a str,
    deferred: &dyn Fn(&str) -> bool,
) -> Option<(Item<'a>, String)> {
    let item = Item::read(entry).filter(|item| item.kind == "function_call")?;
    let name = item.name().filter(|name| deferred(name))?;
    Some((item, name))
}

/// Returns the items after a turn's calls: the hidden answers, then the client's own items.
pub(super) fn insert_hidden_answers<'a>(
    turn: &[Cow<'_, str>],
    entries: Vec<&'a str>,
    answers: &[HiddenAnswer],
    calls: &[ForwardedCall<'_>],
    toolset: &Toolset,
) -> Vec<Cow<'a, str>> {
    let mut all: Vec<Cow<'a, str>> = Vec::new();
    let mut loaded: Vec<&ReferencedTool> = Vec::new();
    for answer in answers {
        let id = json::quote(answer.id.as_deref().unwrap_or_default());
        let kind = call_type(turn, answer, toolset);
        if kind == "tool_search_call" {
            let tools: Vec<String> = answer
                .references
                .iter()
                .filter_map(|tool| {
                    Fields::read(&tool.definition).map(|fields| mark_deferred(&fields))
                })
                .collect();
            all.push(Cow::Owned(format!(
                r#"{{"type":"tool_search_output","execution":"client","call_id":{id},"status":"completed","tools":[{}]}}"#,
                tools.join(",")
            )));
            continue;
        }
        let text = match (answer.text.as_str(), answer.references.is_empty()) {
            // The tools are loaded by a later item. To the model, an empty result would look like a failure.
            ("", false) => Cow::Borrowed("The tools are loaded."),
            (text, _) => Cow::Borrowed(text),
        };
        let text = json::quote(&text);
        all.push(Cow::Owned(format!(
            r#"{{"type":"{kind}_output","call_id":{id},"output":{text}}}"#
        )));
        for tool in &answer.references {
            // The API allows each tool to be declared only once.
            if !loaded.iter().any(|known| known.name == tool.name) {
                loaded.push(tool);
            }
        }
    }
    if !loaded.is_empty() {
        let tools: Vec<&str> = loaded.iter().map(|tool| tool.definition.as_str()).collect();
        all.push(Cow::Owned(additional_tools_item(&tools)));
    }
    let mut ids = CallIdMapper::new(calls);
    all.extend(entries.into_iter().map(|entry| with_upstream_id(entry, &mut ids)));
    all
}

/// Replaces the call id in an output item with the upstream's id of the call, if the client sent a different id or
/// none.
fn with_upstream_id<'a>(entry: &'a str, ids: &mut CallIdMapper<'_>) -> Cow<'a, str> {
    // Parsing every entry is expensive, and few clients change ids. So entries are parsed only if an id may have
    // changed.
    if ids.is_empty() {
        return Cow::Borrowed(entry);
    }
    let item = Item::read(entry).filter(|item| item.kind.ends_with("_output"));
    let new = item.and_then(|item| {
        let id = ids.upstream_id_for(item.call_id().as_deref(), None)?;
        Some(item.fields.with(&[("call_id", Some(json::quote(id)))]))
    });
    new.map_or(Cow::Borrowed(entry), Cow::Owned)
}

/// Adds a generated id to the entry, if it is a call without an id.
pub(super) fn with_generated_ids(entry: &str, generated: &mut Vec<GeneratedId>) -> Option<String> {
    let item = Item::read(entry)?;
    let call = item.client_call().filter(|call| call.id.is_none())?;
    let id = call_ids::take_for(generated, &call.name)?;
    Some(item.fields.with(&[("call_id", Some(json::quote(&id)))]))
}

/// Returns an item that declares these tools in the middle of a conversation.
pub(super) fn additional_tools_item(definitions: &[&str]) -> String {
    let tools = definitions.join(",");
    format!(r#"{{"type":"additional_tools","role":"developer","tools":[{tools}]}}"#)
}

/// Returns the type of the call that `answer` belongs to: a function call, a custom tool call, or a call of the API's
/// own tool search. If the call is not in `turn`, because only the provider stores it, the mode determines its type.
fn call_type(turn: &[Cow<'_, str>], answer: &HiddenAnswer, toolset: &Toolset) -> &'static str {
    let call = turn.iter().rev().filter_map(|entry| Item::read(entry)).find(|item| {
        item.kind.ends_with("_call") && item.call_id().as_deref() == answer.id.as_deref()
    });
    let is_search = toolset.mode() == Mode::Reference(ReferenceKind::SearchOutput)
        && answer.name == toolset.names().search;
    match call.as_ref().map(|call| call.kind.as_str()) {
        Some("tool_search_call") => "tool_search_call",
        None if is_search => "tool_search_call",
        Some("custom_tool_call") => "custom_tool_call",
        _ => "function_call",
    }
}

/// Removes reasoning items from a stored turn if the client removed them. Clients do so when they switch to another
/// model, because the API rejects the reasoning of a different model. Item ids are removed too, because they tie a
/// reasoning item to the item after it.
pub(super) fn adapt_to_echo(stored: Vec<String>, echoed: &[&str]) -> Vec<String> {
    let is_reasoning = |text: &str| Item::read(text).is_some_and(|item| item.kind == "reasoning");
    let is_reference =
        |text: &&str| Item::read(text).is_some_and(|item| item.kind == "item_reference");
    let dropped = stored.iter().any(|entry| is_reasoning(entry))
        && !echoed.iter().any(|entry| is_reasoning(entry) || is_reference(entry));
    if !dropped {
        return stored;
    }
    let left = stored.into_iter().filter(|entry| !is_reasoning(entry));
    left.map(|entry| match Item::read(&entry) {
        Some(item) if item.speaker() == crate::request::Speaker::Model => {
            item.fields.with(&[("id", None)])
        }
        _ => entry,
    })
    .collect()
}
