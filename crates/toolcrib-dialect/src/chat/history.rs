//! Restores hidden calls and answers in the messages of Chat Completions.

use std::borrow::Cow;

use toolcrib_text::json::{self, Fields};

use super::message::{ChatCall, ChatMessage};
use crate::call_ids::{self, GeneratedId};
use crate::dialect::{CallIdMapper, ForwardedCall};
use crate::hidden_rounds::HiddenAnswer;

/// Rewrites a message so that its calls to deferred tools go through the bridge tool `call`.
pub(super) fn wrap_deferred_calls(
    entry: &str,
    deferred: &dyn Fn(&str) -> bool,
    call: &str,
) -> Option<String> {
    let message = ChatMessage::read(entry)?;
    let calls = json::items(message.fields().get("tool_calls")?)?;
    let mut wrapped = false;
    let calls: Vec<String> = calls
        .into_iter()
        .map(|raw| match ChatCall::read(raw.get()).filter(|known| deferred(&known.name)) {
            Some(known) => {
                wrapped = true;
                known.with_function(
                    call,
                    &wrapped_arguments(&known.name, known.arguments.as_deref()),
                )
            }
            None => raw.get().to_owned(),
        })
        .collect();
    let list = format!("[{}]", calls.join(","));
    wrapped.then(|| message.fields().with(&[("tool_calls", Some(list))]))
}

/// Returns the arguments of the bridge call that wraps a call to `name`.
fn wrapped_arguments(name: &str, arguments: Option<&str>) -> String {
    let arguments = arguments.filter(|text| Fields::read(text).is_some()).unwrap_or("{}");
    format!(r#"{{"name":{},"arguments":{arguments}}}"#, json::quote(name))
}

/// Returns the messages after a turn's calls: the hidden answers, then the client's own messages.
pub(super) fn insert_hidden_answers<'a>(
    entries: Vec<&'a str>,
    answers: &[HiddenAnswer],
    calls: &[ForwardedCall<'_>],
) -> Vec<Cow<'a, str>> {
    let hidden = answers.iter().map(|answer| {
        let id = json::quote(answer.id.as_deref().unwrap_or_default());
        let text = json::quote(&answer.text);
        Cow::Owned(format!(r#"{{"role":"tool","tool_call_id":{id},"content":{text}}}"#))
    });
    let mut ids = CallIdMapper::new(calls);
    hidden.chain(entries.into_iter().map(|entry| with_upstream_id(entry, &mut ids))).collect()
}

/// Replaces the call id in a tool message with the upstream's id of the call, if the client sent a different id or
/// none.
fn with_upstream_id<'a>(entry: &'a str, ids: &mut CallIdMapper<'_>) -> Cow<'a, str> {
    // Parsing every entry is expensive, and few clients change ids. So entries are parsed only if an id may have
    // changed.
    if ids.is_empty() {
        return Cow::Borrowed(entry);
    }
    let message = ChatMessage::read(entry).filter(|message| message.role == "tool");
    let new = message.and_then(|message| {
        let name = message.fields().string("name");
        let id = ids.upstream_id_for(message.tool_call_id.as_deref(), name.as_deref())?;
        Some(message.fields().with(&[("tool_call_id", Some(json::quote(id)))]))
    });
    new.map_or(Cow::Borrowed(entry), Cow::Owned)
}

/// Adds generated ids to those calls of a message that have no id.
pub(super) fn with_generated_ids(entry: &str, generated: &mut Vec<GeneratedId>) -> Option<String> {
    let message = ChatMessage::read(entry)?;
    let calls = json::items(message.fields().get("tool_calls")?)?;
    let calls = calls.into_iter().map(|raw| {
        let has_no_id = |call: &ChatCall<'_>| call.id.as_ref().is_none_or(String::is_empty);
        let call = ChatCall::read(raw.get()).filter(has_no_id);
        let new = call.and_then(|call| {
            let id = call_ids::take_for(generated, &call.name)?;
            Some(call.fields.with(&[("id", Some(json::quote(&id)))]))
        });
        new.unwrap_or_else(|| raw.get().to_owned())
    });
    let list = format!("[{}]", calls.collect::<Vec<_>>().join(","));
    Some(message.fields().with(&[("tool_calls", Some(list))]))
}
