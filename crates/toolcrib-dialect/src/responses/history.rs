//! What the client never saw, put into the items of the Responses API.

use std::borrow::Cow;

use toolcrib_text::json::{self, Fields};

use super::item::Item;
use super::tools::deferred;
use crate::call_ids::{self, GeneratedId};
use crate::dialect::{CallIdMapper, ForwardedCall};
use crate::hidden_rounds::{HiddenAnswer, ReferencedTool};
use crate::mode::{Mode, ReferenceKind};
use crate::toolset::Toolset;

/// A call of a deferred tool, through `call` again.
pub(super) fn wrap_deferred_calls(
    entry: &str,
    deferred: &dyn Fn(&str) -> bool,
    call: &str,
) -> Option<String> {
    let (item, name) = deferred_call(entry, deferred)?;
    let arguments = item.fields.string("arguments");
    let arguments = arguments.as_deref().filter(|text| Fields::read(text).is_some());
    let inside =
        format!(r#"{{"name":{},"arguments":{}}}"#, json::quote(&name), arguments.unwrap_or("{}"));
    Some(item.fields.with(&[
        ("name", Some(json::quote(call))),
        ("arguments", Some(json::quote(&inside))),
        ("namespace", None),
    ]))
}

/// A call of a deferred tool, in the namespace that it has once it is loaded by an item.
pub(super) fn qualify_deferred_calls(
    entry: &str,
    deferred: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let (item, name) = deferred_call(entry, deferred)?;
    let there = item.fields.string("namespace").is_some_and(|space| space == name);
    // The client's own namespace is not where the tool is loaded to.
    (!there).then(|| item.fields.with(&[("namespace", Some(json::quote(&name)))]))
}

fn deferred_call<'a>(
    entry: &'a str,
    deferred: &dyn Fn(&str) -> bool,
) -> Option<(Item<'a>, String)> {
    let item = Item::read(entry).filter(|item| item.kind == "function_call")?;
    let name = item.name().filter(|name| deferred(name))?;
    Some((item, name))
}

/// Answers stand right after the calls, before anything the client says.
pub(super) fn insert_hidden_results<'a>(
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
                .filter_map(|tool| Fields::read(&tool.definition).map(|fields| deferred(&fields)))
                .collect();
            all.push(Cow::Owned(format!(
                r#"{{"type":"tool_search_output","execution":"client","call_id":{id},"status":"completed","tools":[{}]}}"#,
                tools.join(",")
            )));
            continue;
        }
        let text = match (answer.text.as_str(), answer.references.is_empty()) {
            // What is loaded stands below; an answer without a word looks like a failure.
            ("", false) => Cow::Borrowed("The tools are loaded."),
            (text, _) => Cow::Borrowed(text),
        };
        let text = json::quote(&text);
        all.push(Cow::Owned(format!(
            r#"{{"type":"{kind}_output","call_id":{id},"output":{text}}}"#
        )));
        for tool in &answer.references {
            // A tool is declared once.
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

/// An output under the id that the upstream knows its call by, if the client knows it by another or by none.
fn with_upstream_id<'a>(entry: &'a str, ids: &mut CallIdMapper<'_>) -> Cow<'a, str> {
    // Taking every entry apart costs, and few clients change ids.
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

/// A call with the id that was made for it, if it has none.
pub(super) fn with_generated_ids(entry: &str, generated: &mut Vec<GeneratedId>) -> Option<String> {
    let item = Item::read(entry)?;
    let call = item.client_call().filter(|call| call.id.is_none())?;
    let id = call_ids::take_for(generated, &call.name)?;
    Some(item.fields.with(&[("call_id", Some(json::quote(&id)))]))
}

/// The item that declares tools in the middle of a conversation.
pub(super) fn additional_tools_item(definitions: &[&str]) -> String {
    let tools = definitions.join(",");
    format!(r#"{{"type":"additional_tools","role":"developer","tools":[{tools}]}}"#)
}

/// The type of the call that an answer is for: of a function, of a custom tool, or of the API's own tool
/// search. If only the provider has the call, the mode of deferral decides.
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

/// A kept turn without its reasoning, where the client has dropped it: what another model thought is
/// refused. Ids go with it, since they say that a reasoning belongs to what follows.
pub(super) fn adapt_to_echo(stored: Vec<String>, echoed: &[&str]) -> Vec<String> {
    let thinks = |text: &str| Item::read(text).is_some_and(|item| item.kind == "reasoning");
    let refers = |text: &&str| Item::read(text).is_some_and(|item| item.kind == "item_reference");
    let dropped = stored.iter().any(|entry| thinks(entry))
        && !echoed.iter().any(|entry| thinks(entry) || refers(entry));
    if !dropped {
        return stored;
    }
    let left = stored.into_iter().filter(|entry| !thinks(entry));
    left.map(|entry| match Item::read(&entry) {
        Some(item) if item.speaker() == crate::request::Speaker::Model => {
            item.fields.with(&[("id", None)])
        }
        _ => entry,
    })
    .collect()
}
