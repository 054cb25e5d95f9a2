//! What the client never saw, put into the contents of Gemini.
//!
//! The API wants as many answers as there were calls, in one content. Ids are optional in both, so
//! that an answer may have to find its call by name and order.

use std::borrow::Cow;

use toolcrib_text::json::{self, Fields};

use super::content::{Content, Kind, Part, signature};
use crate::dialect::ForwardedCall;
use crate::record::Answer;

/// What stands for a signature that is lost: the API's own word for a call that the model did not make.
const UNSIGNED: &str = r#""skip_thought_signature_validator""#;

/// A content whose calls of deferred tools go through `call` again. The signature of a turn stands on its
/// first call; where that was a hidden one, it is gone with the record.
pub(super) fn wrap(entry: &str, deferred: &dyn Fn(&str) -> bool, call: &str) -> Option<String> {
    let content = Content::read(entry)?;
    let mut wrapped = false;
    let parts: Vec<String> = content
        .parts
        .iter()
        .map(|raw| {
            let part = Part::read(raw);
            let new = part.as_ref().and_then(|part| match &part.kind {
                Kind::Call(known) if deferred(&known.name) => {
                    let inside = format!(
                        r#"{{"name":{},"arguments":{}}}"#,
                        json::quote(&known.name),
                        known.args
                    );
                    part.renamed(call, Some(&inside)).map(|new| signed(new, wrapped))
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
fn signed(part: String, is_later: bool) -> String {
    match Fields::read(&part) {
        Some(fields) if !is_later && signature(&fields).is_none() => {
            fields.with(&[("thoughtSignature", Some(UNSIGNED.to_owned()))])
        }
        _ => part,
    }
}

/// A call that waits for its answer.
struct Open {
    /// The id that the upstream gave it, and the one that the client knows it by.
    id: Option<String>,
    echoed: Option<String>,
    /// The name that the upstream knows it by, and the one that the client does.
    name: String,
    real: Option<String>,
    /// Whether it goes through the bridge.
    bridged: bool,
    taken: bool,
}

/// The calls at the end of a turn, in order.
fn calls(said: &[Cow<'_, str>], call: &str) -> Vec<Open> {
    let contents: Vec<Content<'_>> = said.iter().filter_map(|entry| Content::read(entry)).collect();
    // What comes before a content that is not the model's was answered in it.
    let first = contents.iter().rposition(|content| !content.by_model).map_or(0, |at| at + 1);
    let parts = contents[first..].iter().flat_map(|content| &content.parts);
    let calls = parts.filter_map(|raw| match Part::read(raw)?.kind {
        Kind::Call(known) => {
            let bridged = known.name == call;
            let inner = Fields::read(known.args).and_then(|args| args.string("name"));
            let real = if bridged { inner } else { Some(known.name.clone()) };
            let echoed = known.id.clone();
            Some(Open { id: known.id, echoed, name: known.name, real, bridged, taken: false })
        }
        _ => None,
    });
    calls.collect()
}

/// The call that an answer of the client's is for: by id, by name, by the id of one that has its answer
/// already (clients repeat themselves), or, where the model misspelled the name, the next that goes
/// through the bridge.
fn place(calls: &[Open], id: Option<&str>, name: &str) -> Option<usize> {
    let find =
        |fits: &dyn Fn(&Open) -> bool| calls.iter().position(|open| !open.taken && fits(open));
    let again =
        |id: &str| calls.iter().position(|open| open.taken && open.echoed.as_deref() == Some(id));
    id.and_then(|id| find(&|open| open.echoed.as_deref() == Some(id)))
        .or_else(|| find(&|open| open.real.as_deref() == Some(name)))
        .or_else(|| id.and_then(again))
        .or_else(|| find(&|open| open.bridged))
}

/// What follows a turn: the client's answers under the names that the upstream called, and those that
/// the client knows nothing of among them, each at the place of its call.
pub(super) fn join<'a>(
    said: &[Cow<'_, str>],
    entries: Vec<&'a str>,
    answers: &[Answer],
    echoed: &[ForwardedCall<'_>],
    call: &str,
) -> Vec<Cow<'a, str>> {
    let mut calls = calls(said, call);
    let mut placed = Placed::default();
    for answer in answers {
        if let Some(open) = calls.get_mut(answer.at) {
            open.taken = true;
        }
        placed.answer(answer.at, hidden(answer));
    }
    // The others are those that the client got, in the same order.
    for (open, known) in calls.iter_mut().filter(|open| !open.taken).zip(echoed) {
        open.echoed = known.echoed.map(str::to_owned);
    }
    // If an invented id is removed, answers are matched to calls by their order.
    let invented = calls.iter().any(|open| open.id.is_none() && open.echoed.is_some());
    let mut out: Vec<Cow<'a, str>> = Vec::new();
    let mut first: Option<Content<'a>> = None;
    let mut entries = entries.into_iter().peekable();
    while let Some(entry) = entries.peek().copied() {
        let Some(content) = Content::read(entry).filter(answers_calls) else { break };
        entries.next();
        let mut renamed = Vec::with_capacity(content.parts.len());
        let mut changed = false;
        for raw in &content.parts {
            let (at, new) = answered(raw, &mut calls);
            changed |= new.is_some();
            renamed.push((at, new.unwrap_or_else(|| (*raw).to_owned())));
        }
        if answers.is_empty() {
            let parts = if invented {
                Placed::default().with(renamed).parts()
            } else {
                renamed.into_iter().map(|(_, part)| part).collect()
            };
            out.push(if changed { Cow::Owned(content.with(&parts)) } else { Cow::Borrowed(entry) });
            continue;
        }
        placed = placed.with(renamed);
        first.get_or_insert(content);
    }
    if !answers.is_empty() {
        let parts = placed.parts();
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
struct Placed {
    /// Parts before the client's first answer.
    before: Vec<String>,
    /// Answers by the number of their call, each with the parts between it and the client's next answer.
    answers: Vec<(usize, Vec<String>)>,
    /// The client's last answer so far, and the parts after it. At the end they stay last: the user may go on there.
    last: Option<usize>,
    after: Vec<String>,
}

impl Placed {
    fn answer(&mut self, at: usize, part: String) {
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
                    self.answer(at, part);
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

fn answers_calls(content: &Content<'_>) -> bool {
    let is_answer =
        |raw: &&str| matches!(Part::read(raw), Some(Part { kind: Kind::Answer(_), .. }));
    content.parts.iter().any(is_answer)
}

/// The place of a client's answer, `None` for any other part, and its new text where its call went up
/// under another name.
fn answered(raw: &str, calls: &mut [Open]) -> (Option<usize>, Option<String>) {
    let Some(part) = Part::read(raw) else { return (None, None) };
    let Kind::Answer(answer) = &part.kind else { return (None, None) };
    let Some(at) = place(calls, answer.id.as_deref(), &answer.name) else {
        return (Some(calls.len()), None);
    };
    let open = &mut calls[at];
    open.taken = true;
    // A client may leave ids out, invent some or write them differently. The call stands there with the id
    // that the upstream gave it, or with none, and so does its answer.
    let changes = open.name != answer.name || open.id != answer.id;
    let new = changes.then(|| part.answering(&open.name, open.id.as_deref())).flatten();
    (Some(at), new)
}

/// The answer to a call that the client never saw.
fn hidden(answer: &Answer) -> String {
    let id = answer.id.as_deref().map(|id| format!(r#""id":{},"#, json::quote(id)));
    let id = id.unwrap_or_default();
    let (name, text) = (json::quote(&answer.name), json::quote(&answer.text));
    let key = if answer.refused { "error" } else { "output" };
    format!(r#"{{"functionResponse":{{{id}"name":{name},"response":{{"{key}":{text}}}}}}}"#)
}
