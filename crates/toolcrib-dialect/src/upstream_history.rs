//! A conversation so far, as the upstream knows it.
//!
//! Where a record tells how a turn of the model stood, it stands so again, byte for byte. Where none
//! does, what can be worked out is: a call of a deferred tool goes through the bridge once more, and a
//! tool that was called is shown again, at the end of the history if the API has the words for it.

use std::borrow::Cow;

use crate::dialect::{Dialect, ForwardedCall};
use crate::hidden_rounds::Records;
use crate::mode::Mode;
use crate::request::{Request, Segment, Speaker, ToolChoice};
use crate::toolset::Toolset;

/// The tools that must be sent in full for this request, beside those that already are: one that the
/// client forces, since what is deferred cannot be forced; and one that was called before, of which
/// nothing is left that shows it, where the API cannot show it again at the end of the history.
pub(crate) fn tools_to_send_in_full(
    dialect: &dyn Dialect,
    request: &Request,
    past: &Records,
    toolset: &Toolset,
) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    if let ToolChoice::Named(forced) = &request.choice {
        // What was found stands in `tools` already, where finding a tool puts it there.
        let found = if toolset.mode().grows() { past.revealed() } else { Vec::new() };
        let hidden = |name: &&String| toolset.is_deferred(name) && !found.contains(name);
        names.extend(forced.iter().filter(hidden).cloned());
    }
    let unrecorded = tools_without_record(request, past, toolset);
    if !unrecorded.is_empty() && reload_entries(dialect, request, toolset, &unrecorded).is_none() {
        // One that was called blind was never shown, and nothing is lost.
        let accounted = past.accounted();
        names.extend(unrecorded.into_iter().filter(|name| !accounted.contains(name)));
    }
    names
}

/// Deferred tools that the history shows being called, and no record shows being found.
pub(crate) fn tools_without_record(
    request: &Request,
    past: &Records,
    toolset: &Toolset,
) -> Vec<String> {
    if !matches!(toolset.mode(), Mode::Reference(_) | Mode::Hosted(_)) {
        return Vec::new();
    }
    let mut known = past.revealed();
    let mut unrecorded = Vec::new();
    for name in called_tools(request) {
        if toolset.is_deferred(name) && !known.contains(name) {
            known.push(name.clone());
            unrecorded.push(name.clone());
        }
    }
    unrecorded
}

pub(crate) fn called_tools(request: &Request) -> impl Iterator<Item = &String> {
    request
        .segments
        .iter()
        .filter(|said| said.speaker == Speaker::Model)
        .flat_map(|said| &said.calls)
}

pub(crate) fn reload_entries(
    dialect: &dyn Dialect,
    request: &Request,
    toolset: &Toolset,
    unrecorded: &[String],
) -> Option<Vec<String>> {
    if !matches!(toolset.mode(), Mode::Reference(_)) {
        return None;
    }
    let tools: Vec<(&str, &str)> = unrecorded
        .iter()
        .filter_map(|name| Some((name.as_str(), toolset.definition(name)?)))
        .collect();
    dialect.reload_tools(request, toolset, &tools)
}

/// The history as the upstream knows it: what the client sent, with what it never saw in its place.
pub(crate) fn upstream_history(
    dialect: &dyn Dialect,
    request: &Request,
    past: Records,
    toolset: &Toolset,
) -> String {
    let mut out = String::new();
    let mut push = |entry: &str| {
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(entry);
    };
    let mut announcement = pending_announcement(request, &past, toolset);
    let mut records = past.turns.into_iter();
    let mut answers = past.previous.map(|record| record.answers).unwrap_or_default();
    let mut said: Vec<Cow<'_, str>> = Vec::new();
    // The ids of the calls in it, as they were given, and the turn as the client has it.
    let (mut upstream_ids, mut echoed): (Vec<Option<String>>, Option<&Segment>) =
        (Vec::new(), None);
    for segment in &request.segments {
        let echo: Vec<&str> = segment.entries.iter().map(|entry| request.entry(entry)).collect();
        match segment.speaker {
            Speaker::Client => {
                let calls = calls_with_changed_ids(&upstream_ids, echoed);
                let mut followed =
                    dialect.insert_hidden_results(&said, echo, &answers, &calls, toolset);
                for entry in &mut followed {
                    if let Some(told) =
                        announcement.and_then(|text| dialect.insert_announcement(entry, text))
                    {
                        (*entry, announcement) = (Cow::Owned(told), None);
                    }
                }
                for entry in &followed {
                    push(entry);
                }
                // There is no user message yet. The next one may come after a turn of the model, and an
                // announcement must stay where it was first sent.
                if let Some(text) = announcement.take() {
                    push(&dialect.user_message(text));
                }
                (said, answers, upstream_ids) = (Vec::new(), Vec::new(), Vec::new());
            }
            Speaker::Model => {
                echoed = Some(segment);
                said = match records.next().flatten() {
                    Some(record) => {
                        upstream_ids = record.upstream_ids();
                        answers = record.answers;
                        let kept = record.entries.iter().map(|raw| raw.get().to_owned()).collect();
                        dialect
                            .adapt_to_echo(kept, &echo, toolset)
                            .into_iter()
                            .map(Cow::Owned)
                            .collect()
                    }
                    None => echo
                        .into_iter()
                        .map(|entry| rewrite_unrecorded_entry(dialect, entry, toolset))
                        .collect(),
                };
                for entry in &said {
                    push(entry);
                }
            }
        }
    }
    if !answers.is_empty() {
        let joined = dialect.insert_hidden_results(&said, Vec::new(), &answers, &[], toolset);
        for entry in &joined {
            push(entry);
        }
    }
    if let Some(text) = announcement {
        push(&dialect.user_message(text));
    }
    out
}

/// The announcement to send with this request. An API that keeps the conversation has it already, unless the tools
/// have changed since; if nothing is known of the conversation, the model may have seen no listing at all.
fn pending_announcement<'a>(
    request: &Request,
    past: &Records,
    toolset: &'a Toolset,
) -> Option<&'a str> {
    let text = toolset.announcement()?;
    let last = past.previous.as_ref().and_then(|record| record.announced.as_ref());
    let is_known = request.previous.is_some() && last == Some(&announcement_hash(text));
    (!is_known).then_some(text)
}

/// A hash of an announcement, to know it again.
pub(crate) fn announcement_hash(announcement: &str) -> String {
    blake3::hash(announcement.as_bytes()).to_hex()[..32].to_owned()
}

/// The calls of a turn, if the client knows any of them by another id than it was given.
fn calls_with_changed_ids<'a>(
    upstream_ids: &'a [Option<String>],
    echoed: Option<&'a Segment>,
) -> Vec<ForwardedCall<'a>> {
    let echoed = echoed.into_iter().flat_map(|said| said.call_ids.iter().zip(&said.calls));
    let calls: Vec<ForwardedCall<'_>> = upstream_ids
        .iter()
        .zip(echoed)
        .map(|(upstream_id, (client_id, name))| ForwardedCall {
            upstream_id: upstream_id.as_deref(),
            client_id: client_id.as_deref(),
            name,
        })
        .collect();
    let differs = calls.iter().any(|call| call.upstream_id != call.client_id);
    if differs { calls } else { Vec::new() }
}

/// An entry of the model's of which nothing is kept.
fn rewrite_unrecorded_entry<'a>(
    dialect: &dyn Dialect,
    entry: &'a str,
    toolset: &Toolset,
) -> Cow<'a, str> {
    let deferred = |name: &str| toolset.is_deferred(name);
    let again = match toolset.mode() {
        Mode::Bridge => dialect.wrap_deferred_calls(entry, &deferred, toolset.names().call),
        Mode::Reference(_) => dialect.qualify_deferred_calls(entry, &deferred),
        Mode::Reveal | Mode::Terse | Mode::Append | Mode::Hosted(_) => None,
    };
    again.map_or(Cow::Borrowed(entry), Cow::Owned)
}
