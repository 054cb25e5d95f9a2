//! Rebuilds the history that the upstream has seen.
//!
//! If there is a record of a turn, the turn is restored byte for byte, including its hidden rounds. Otherwise the turn
//! is rewritten as far as possible: calls of deferred tools go through the bridge again, and tools that were called are
//! loaded again at the end of the history, if the API allows it.

use std::borrow::Cow;

use crate::dialect::{Dialect, ForwardedCall};
use crate::hidden_rounds::Records;
use crate::mode::Mode;
use crate::request::{Request, Segment, Speaker, ToolChoice};
use crate::toolset::Toolset;

/// Returns the tools that this request must send in full, in addition to those that are sent in full anyway.
///
/// There are two kinds. Tools that the client forces must be sent in full, because a deferred tool cannot be forced.
/// Tools that were called before but have no record must be sent in full if the API cannot load them again at the end
/// of the history.
pub(crate) fn tools_to_send_in_full(
    dialect: &dyn Dialect,
    request: &Request,
    records: &Records,
    toolset: &Toolset,
) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    if let ToolChoice::Named(forced) = &request.choice {
        // In modes that add found tools to `tools`, the found tools are already sent in full.
        let found = if toolset.mode().grows() { records.revealed() } else { Vec::new() };
        let hidden = |name: &&String| toolset.is_deferred(name) && !found.contains(name);
        names.extend(forced.iter().filter(hidden).cloned());
    }
    let unrecorded = tools_without_record(request, records, toolset);
    if !unrecorded.is_empty() && reload_entries(dialect, request, toolset, &unrecorded).is_none() {
        // A tool that the model called without having been shown its schema was never loaded, so it need not be loaded
        // again.
        let revealed_or_called = records.revealed_or_called();
        names.extend(unrecorded.into_iter().filter(|name| !revealed_or_called.contains(name)));
    }
    names
}

/// Returns the deferred tools that are called in the history although no record shows that they were found. Returns an
/// empty list in all modes other than reference and hosted.
pub(crate) fn tools_without_record(
    request: &Request,
    records: &Records,
    toolset: &Toolset,
) -> Vec<String> {
    if !matches!(toolset.mode(), Mode::Reference(_) | Mode::Hosted(_)) {
        return Vec::new();
    }
    let mut known = records.revealed();
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
        .filter(|segment| segment.speaker == Speaker::Model)
        .flat_map(|segment| &segment.calls)
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

/// Returns the history for the upstream: the client's entries, with the hidden rounds restored.
pub(crate) fn upstream_history(
    dialect: &dyn Dialect,
    request: &Request,
    records: Records,
    toolset: &Toolset,
) -> String {
    let mut out = String::new();
    let mut push = |entry: &str| {
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(entry);
    };
    let mut announcement = pending_announcement(request, &records, toolset);
    let mut turn_records = records.turns.into_iter();
    let mut answers = records.previous.map(|record| record.answers).unwrap_or_default();
    let mut turn: Vec<Cow<'_, str>> = Vec::new();
    // The upstream's ids of the calls in the model's last turn so far, and the client's version of that turn.
    let (mut upstream_ids, mut client_turn): (Vec<Option<String>>, Option<&Segment>) =
        (Vec::new(), None);
    for segment in &request.segments {
        let entries: Vec<&str> = segment.entries.iter().map(|entry| request.entry(entry)).collect();
        match segment.speaker {
            Speaker::Client => {
                let calls = calls_with_changed_ids(&upstream_ids, client_turn);
                let mut client_entries =
                    dialect.insert_hidden_answers(&turn, entries, &answers, &calls, toolset);
                for entry in &mut client_entries {
                    if let Some(announced) =
                        announcement.and_then(|text| dialect.insert_announcement(entry, text))
                    {
                        (*entry, announcement) = (Cow::Owned(announced), None);
                    }
                }
                for entry in &client_entries {
                    push(entry);
                }
                // There was no user message so far, so the announcement becomes a separate message. It cannot wait for
                // the next user message, which may come after a turn of the model, because it must stay at the position
                // where it was first sent.
                if let Some(text) = announcement.take() {
                    push(&dialect.user_message(text));
                }
                (turn, answers, upstream_ids) = (Vec::new(), Vec::new(), Vec::new());
            }
            Speaker::Model => {
                client_turn = Some(segment);
                turn = match turn_records.next().flatten() {
                    Some(record) => {
                        upstream_ids = record.upstream_ids();
                        answers = record.answers;
                        let stored =
                            record.entries.iter().map(|raw| raw.get().to_owned()).collect();
                        dialect
                            .adapt_to_echo(stored, &entries, toolset)
                            .into_iter()
                            .map(Cow::Owned)
                            .collect()
                    }
                    None => entries
                        .into_iter()
                        .map(|entry| rewrite_unrecorded_entry(dialect, entry, toolset))
                        .collect(),
                };
                for entry in &turn {
                    push(entry);
                }
            }
        }
    }
    if !answers.is_empty() {
        let results = dialect.insert_hidden_answers(&turn, Vec::new(), &answers, &[], toolset);
        for entry in &results {
            push(entry);
        }
    }
    if let Some(text) = announcement {
        push(&dialect.user_message(text));
    }
    out
}

/// Returns the announcement to send with this request, if any.
///
/// If the API stores the conversation, the conversation already contains the announcement, unless the tools have
/// changed after it was sent. If there is no record of the conversation, the announcement is sent again, because the
/// model may never have seen the listing.
fn pending_announcement<'a>(
    request: &Request,
    records: &Records,
    toolset: &'a Toolset,
) -> Option<&'a str> {
    let text = toolset.announcement()?;
    let last = records.previous.as_ref().and_then(|record| record.announced.as_ref());
    let is_known = request.previous.is_some() && last == Some(&announcement_hash(text));
    (!is_known).then_some(text)
}

/// Returns a hash that identifies an announcement.
pub(crate) fn announcement_hash(announcement: &str) -> String {
    blake3::hash(announcement.as_bytes()).to_hex()[..32].to_owned()
}

/// Returns all calls of a turn if the client changed the id of at least one of them. Otherwise returns an empty list.
fn calls_with_changed_ids<'a>(
    upstream_ids: &'a [Option<String>],
    client_turn: Option<&'a Segment>,
) -> Vec<ForwardedCall<'a>> {
    let client_turn =
        client_turn.into_iter().flat_map(|segment| segment.call_ids.iter().zip(&segment.calls));
    let calls: Vec<ForwardedCall<'_>> = upstream_ids
        .iter()
        .zip(client_turn)
        .map(|(upstream_id, (client_id, name))| ForwardedCall {
            upstream_id: upstream_id.as_deref(),
            client_id: client_id.as_deref(),
            name,
        })
        .collect();
    let differs = calls.iter().any(|call| call.upstream_id != call.client_id);
    if differs { calls } else { Vec::new() }
}

/// Rewrites an entry of a turn that has no record, as the current mode requires.
fn rewrite_unrecorded_entry<'a>(
    dialect: &dyn Dialect,
    entry: &'a str,
    toolset: &Toolset,
) -> Cow<'a, str> {
    let deferred = |name: &str| toolset.is_deferred(name);
    let rewritten = match toolset.mode() {
        Mode::Bridge => dialect.wrap_deferred_calls(entry, &deferred, toolset.names().call),
        Mode::Reference(_) => dialect.qualify_deferred_calls(entry, &deferred),
        Mode::Reveal | Mode::Terse | Mode::Append | Mode::Hosted(_) => None,
    };
    rewritten.map_or(Cow::Borrowed(entry), Cow::Owned)
}
