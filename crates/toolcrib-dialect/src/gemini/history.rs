//! What the client never saw, put into the contents of Gemini.
//!
//! The API wants as many answers as there were calls, in one content. Ids are optional in both, so
//! that an answer may have to find its call by name and order.

use std::borrow::Cow;

use toolcrib_text::json::{self, Fields};

use super::content::{Content, Part, PartKind, signature};
use crate::dialect::ForwardedCall;
use crate::hidden_rounds::HiddenAnswer;

/// What stands for a signature that is lost: the API's own word for a call that the model did not make.
const SKIP_SIGNATURE_CHECK: &str = r#""skip_thought_signature_validator""#;

/// A content whose calls of deferred tools go through `call` again. The signature of a turn stands on its
/// first call; where that was a hidden one, it is gone with the record.
pub(super) fn wrap_deferred_calls(
    entry: &str,
    deferred: &dyn Fn(&str) -> bool,
    call: &str,
) -> Option<String> {
    let content = Content::read(entry)?;
    let mut wrapped = false;
    let parts: Vec<String> = content
        .parts
        .iter()
        .map(|raw| {
            let part = Part::read(raw);
            let new = part.as_ref().and_then(|part| match &part.kind {
                PartKind::Call(known) if deferred(&known.name) => {
                    let inside = format!(
                        r#"{{"name":{},"arguments":{}}}"#,
                        json::quote(&known.name),
                        known.args
                    );
                    part.with_call(call, Some(&inside)).map(|new| with_signature(new, wrapped))
                }
                _ => None,
            });
            wrapped |= new.is_some();
            new.unwrap_or_else(|| (*raw).to_owned())
        })
        .collect();
    wrapped.then(|| content.with(&parts))
}

/// A call that goes up in other words, with a signature if it is the first.
fn with_signature(part: String, is_later: bool) -> String {
    match Fields::read(&part) {
        Some(fields) if !is_later && signature(&fields).is_none() => {
            fields.with(&[("thoughtSignature", Some(SKIP_SIGNATURE_CHECK.to_owned()))])
        }
        _ => part,
    }
}

/// A call that waits for its answer.
struct AwaitedCall {
    /// The id that the upstream gave it, and the one that the client knows it by.
    id: Option<String>,
    client_id: Option<String>,
    /// The name that the upstream knows it by, and the one that the client does.
    name: String,
    client_name: Option<String>,
    /// Whether it goes through the bridge.
    bridged: bool,
    has_result: bool,
}

/// The calls at the end of a turn, in order.
fn awaited_calls(turn: &[Cow<'_, str>], call: &str) -> Vec<AwaitedCall> {
    let contents: Vec<Content<'_>> = turn.iter().filter_map(|entry| Content::read(entry)).collect();
    // What comes before a content that is not the model's was answered in it.
    let first = contents.iter().rposition(|content| !content.is_model).map_or(0, |at| at + 1);
    let parts = contents[first..].iter().flat_map(|content| &content.parts);
    let calls = parts.filter_map(|raw| match Part::read(raw)?.kind {
        PartKind::Call(known) => {
            let bridged = known.name == call;
            let inner = Fields::read(known.args).and_then(|args| args.string("name"));
            let client_name = if bridged { inner } else { Some(known.name.clone()) };
            let client_id = known.id.clone();
            Some(AwaitedCall {
                id: known.id,
                client_id,
                name: known.name,
                client_name,
                bridged,
                has_result: false,
            })
        }
        _ => None,
    });
    calls.collect()
}

/// The call that an answer of the client's is for: by id, by name, by the id of one that has its answer
/// already (clients repeat themselves), or, where the model misspelled the name, the next that goes
/// through the bridge.
fn find_call(calls: &[AwaitedCall], id: Option<&str>, name: &str) -> Option<usize> {
    let find = |fits: &dyn Fn(&AwaitedCall) -> bool| {
        calls.iter().position(|call| !call.has_result && fits(call))
    };
    let again = |id: &str| {
        calls.iter().position(|call| call.has_result && call.client_id.as_deref() == Some(id))
    };
    id.and_then(|id| find(&|call| call.client_id.as_deref() == Some(id)))
        .or_else(|| find(&|call| call.client_name.as_deref() == Some(name)))
        .or_else(|| id.and_then(again))
        .or_else(|| find(&|call| call.bridged))
}

/// What follows a turn: the client's answers under the names that the upstream called, and those that
/// the client knows nothing of among them, each at the place of its call.
pub(super) fn insert_hidden_results<'a>(
    turn: &[Cow<'_, str>],
    entries: Vec<&'a str>,
    answers: &[HiddenAnswer],
    forwarded: &[ForwardedCall<'_>],
    call: &str,
) -> Vec<Cow<'a, str>> {
    let mut calls = awaited_calls(turn, call);
    let mut ordered = OrderedResults::default();
    for answer in answers {
        if let Some(call) = calls.get_mut(answer.at) {
            call.has_result = true;
        }
        ordered.add(answer.at, hidden_result(answer));
    }
    // The others are those that the client got, in the same order.
    for (call, known) in calls.iter_mut().filter(|call| !call.has_result).zip(forwarded) {
        call.client_id = known.client_id.map(str::to_owned);
    }
    // If an invented id is removed, answers are matched to calls by their order.
    let invented = calls.iter().any(|call| call.id.is_none() && call.client_id.is_some());
    let mut out: Vec<Cow<'a, str>> = Vec::new();
    let mut first: Option<Content<'a>> = None;
    let mut entries = entries.into_iter().peekable();
    while let Some(entry) = entries.peek().copied() {
        let Some(content) = Content::read(entry).filter(has_results) else { break };
        entries.next();
        let mut renamed = Vec::with_capacity(content.parts.len());
        let mut changed = false;
        for raw in &content.parts {
            let (at, new) = match_result(raw, &mut calls);
            changed |= new.is_some();
            renamed.push((at, new.unwrap_or_else(|| (*raw).to_owned())));
        }
        if answers.is_empty() {
            let parts = if invented {
                OrderedResults::default().with(renamed).parts()
            } else {
                renamed.into_iter().map(|(_, part)| part).collect()
            };
            out.push(if changed { Cow::Owned(content.with(&parts)) } else { Cow::Borrowed(entry) });
            continue;
        }
        ordered = ordered.with(renamed);
        first.get_or_insert(content);
    }
    if !answers.is_empty() {
        let parts = ordered.parts();
        out.push(Cow::Owned(match first {
            Some(content) => content.with(&parts),
            None => format!(r#"{{"role":"user","parts":[{}]}}"#, parts.join(",")),
        }));
    }
    out.extend(entries.map(Cow::Borrowed));
    out
}

/// The parts of a content that answers calls, put in the order of the calls.
#[derive(Default)]
struct OrderedResults {
    /// Parts before the client's first answer.
    before: Vec<String>,
    /// Answers by the number of their call, each with the parts between it and the client's next answer.
    answers: Vec<(usize, Vec<String>)>,
    /// The client's last answer so far, and the parts after it. At the end they stay last: the user may go on there.
    last: Option<usize>,
    after: Vec<String>,
}

impl OrderedResults {
    fn add(&mut self, at: usize, part: String) {
        self.answers.push((at, vec![part]));
    }

    /// The same with parts of the client's: answers, with the place of their call, and others.
    fn with(mut self, parts: Vec<(Option<usize>, String)>) -> Self {
        for (at, part) in parts {
            match (at, self.last) {
                (None, None) => self.before.push(part),
                (None, Some(_)) => self.after.push(part),
                (Some(at), last) => {
                    if let Some((_, parts)) = last.and_then(|last| self.answers.get_mut(last)) {
                        parts.append(&mut self.after);
                    }
                    self.last = Some(self.answers.len());
                    self.add(at, part);
                }
            }
        }
        self
    }

    fn parts(mut self) -> Vec<String> {
        self.answers.sort_by_key(|(at, _)| *at);
        let answers = self.answers.into_iter().flat_map(|(_, parts)| parts);
        self.before.into_iter().chain(answers).chain(self.after).collect()
    }
}

fn has_results(content: &Content<'_>) -> bool {
    let is_answer =
        |raw: &&str| matches!(Part::read(raw), Some(Part { kind: PartKind::Result(_), .. }));
    content.parts.iter().any(is_answer)
}

/// The place of a client's answer, `None` for any other part, and its new text where its call went up
/// under another name.
fn match_result(raw: &str, calls: &mut [AwaitedCall]) -> (Option<usize>, Option<String>) {
    let Some(part) = Part::read(raw) else { return (None, None) };
    let PartKind::Result(answer) = &part.kind else { return (None, None) };
    let Some(at) = find_call(calls, answer.id.as_deref(), &answer.name) else {
        return (Some(calls.len()), None);
    };
    let call = &mut calls[at];
    call.has_result = true;
    // A client may leave ids out, invent some or write them differently. The call stands there with the id
    // that the upstream gave it, or with none, and so does its answer.
    let changes = call.name != answer.name || call.id != answer.id;
    let new = changes.then(|| part.as_result_of(&call.name, call.id.as_deref())).flatten();
    (Some(at), new)
}

/// The answer to a call that the client never saw.
fn hidden_result(answer: &HiddenAnswer) -> String {
    let id = answer.id.as_deref().map(|id| format!(r#""id":{},"#, json::quote(id)));
    let id = id.unwrap_or_default();
    let (name, text) = (json::quote(&answer.name), json::quote(&answer.text));
    let key = if answer.refused { "error" } else { "output" };
    format!(r#"{{"functionResponse":{{{id}"name":{name},"response":{{"{key}":{text}}}}}}}"#)
}
