//! Restores hidden calls and answers in the contents of Gemini.
//!
//! The API requires one function response per call, all in one content. Ids are optional, so a response may
//! have to be matched to its call by name and order.

use std::borrow::Cow;

use toolcrib_text::json::{self, Fields};

use super::content::{GeminiContent, GeminiPart, PartKind, signature};
use crate::dialect::ForwardedCall;
use crate::hidden_rounds::HiddenAnswer;

/// Placeholder for a missing signature. The API defines this value for calls that the model did not make.
const SKIP_SIGNATURE_CHECK: &str = r#""skip_thought_signature_validator""#;

/// Rewrites a content so that its calls to deferred tools go through the bridge tool `call`. This is needed for turns
/// without a record. The API expects a signature on the first call of a turn. If that call was hidden, its signature
/// was lost with the record, so a placeholder is added.
pub(super) fn wrap_deferred_calls(
    entry: &str,
    deferred: &dyn Fn(&str) -> bool,
    call: &str,
) -> Option<String> {
    let content = GeminiContent::read(entry)?;
    let mut wrapped = false;
    let parts: Vec<String> = content
        .parts
        .iter()
        .map(|raw| {
            let part = GeminiPart::read(raw);
            let new = part.as_ref().and_then(|part| match &part.kind {
                PartKind::Call(known) if deferred(&known.name) => {
                    let bridge_args = format!(
                        r#"{{"name":{},"arguments":{}}}"#,
                        json::quote(&known.name),
                        known.args
                    );
                    part.with_call(call, Some(&bridge_args)).map(|new| with_signature(new, wrapped))
                }
                _ => None,
            });
            wrapped |= new.is_some();
            new.unwrap_or_else(|| (*raw).to_owned())
        })
        .collect();
    wrapped.then(|| content.with(&parts))
}

/// Adds the placeholder signature to a rewritten call, if it is the first call and has no signature.
fn with_signature(part: String, is_later: bool) -> String {
    match Fields::read(&part) {
        Some(fields) if !is_later && signature(&fields).is_none() => {
            fields.with(&[("thoughtSignature", Some(SKIP_SIGNATURE_CHECK.to_owned()))])
        }
        _ => part,
    }
}

/// A call that has no result yet when the model's turn ends.
struct AwaitedCall {
    /// `id` is the call's id in the upstream's history, and `client_id` is the id that the client uses for the call.
    id: Option<String>,
    client_id: Option<String>,
    /// `name` is the tool's name in the upstream's history, and `client_name` is the name that the client uses for the
    /// tool.
    name: String,
    client_name: Option<String>,
    /// Whether the call goes through the bridge tool.
    is_bridge_call: bool,
    has_result: bool,
}

/// Returns the calls that still await results when a turn ends, in order. `call` is the name of the bridge tool.
fn awaited_calls(turn: &[Cow<'_, str>], call: &str) -> Vec<AwaitedCall> {
    let contents: Vec<GeminiContent<'_>> =
        turn.iter().filter_map(|entry| GeminiContent::read(entry)).collect();
    // A user content inside a turn contains the answers to all calls before it.
    let first = contents.iter().rposition(|content| !content.is_model).map_or(0, |at| at + 1);
    let parts = contents[first..].iter().flat_map(|content| &content.parts);
    let calls = parts.filter_map(|raw| match GeminiPart::read(raw)?.kind {
        PartKind::Call(known) => {
            let is_bridge_call = known.name == call;
            let inner = Fields::read(known.args).and_then(|args| args.string("name"));
            let client_name = if is_bridge_call { inner } else { Some(known.name.clone()) };
            let client_id = known.id.clone();
            Some(AwaitedCall {
                id: known.id,
                client_id,
                name: known.name,
                client_name,
                is_bridge_call,
                has_result: false,
            })
        }
        _ => None,
    });
    calls.collect()
}

/// Returns the call that a client's result belongs to, which is the first of these that exists:
///
/// 1. a call without a result that has the same id
/// 2. a call without a result that has the same tool name
/// 3. a call with a result that has the same id, because some clients send a result twice
/// 4. a bridge call without a result, because the model may have misspelled the tool's name in it
fn find_call(calls: &[AwaitedCall], id: Option<&str>, name: &str) -> Option<usize> {
    let find = |fits: &dyn Fn(&AwaitedCall) -> bool| {
        calls.iter().position(|call| !call.has_result && fits(call))
    };
    let find_answered = |id: &str| {
        calls.iter().position(|call| call.has_result && call.client_id.as_deref() == Some(id))
    };
    id.and_then(|id| find(&|call| call.client_id.as_deref() == Some(id)))
        .or_else(|| find(&|call| call.client_name.as_deref() == Some(name)))
        .or_else(|| id.and_then(find_answered))
        .or_else(|| find(&|call| call.is_bridge_call))
}

/// Returns the entries after a turn: the client's results under the upstream's names, together with the hidden answers,
/// in the order of the calls.
pub(super) fn insert_hidden_answers<'a>(
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
        ordered.add(answer.at, hidden_answer(answer));
    }
    // The calls that are not answered by a hidden answer are the forwarded calls, in the same order.
    for (call, known) in calls.iter_mut().filter(|call| !call.has_result).zip(forwarded) {
        call.client_id = known.client_id.map(str::to_owned);
    }
    // Ids that the client invented are removed. Then only the order tells which result belongs to which call, so the
    // results must be in the order of the calls.
    let has_invented_ids = calls.iter().any(|call| call.id.is_none() && call.client_id.is_some());
    let mut out: Vec<Cow<'a, str>> = Vec::new();
    let mut first: Option<GeminiContent<'a>> = None;
    let mut entries = entries.into_iter().peekable();
    while let Some(entry) = entries.peek().copied() {
        let Some(content) = GeminiContent::read(entry).filter(has_results) else { break };
        entries.next();
        let mut renamed = Vec::with_capacity(content.parts.len());
        let mut changed = false;
        for raw in &content.parts {
            let (at, new) = match_result(raw, &mut calls);
            changed |= new.is_some();
            renamed.push((at, new.unwrap_or_else(|| (*raw).to_owned())));
        }
        if answers.is_empty() {
            let parts = if has_invented_ids {
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

/// The parts of a content with results, sorted by the order of the calls.
#[derive(Default)]
struct OrderedResults {
    /// Parts before the client's first result.
    before: Vec<String>,
    /// The position of each result's call, and the text of the result. The text is followed by the other parts between
    /// this result and the client's next result.
    results: Vec<(usize, Vec<String>)>,
    /// `last` is the index in `results` of the client's last result so far, and `after` has the parts after that
    /// result. These parts stay at the end, because they may be the user's next message.
    last: Option<usize>,
    after: Vec<String>,
}

impl OrderedResults {
    fn add(&mut self, at: usize, part: String) {
        self.results.push((at, vec![part]));
    }

    /// Adds the client's parts. Each result is paired with the position of its call, and any other part with `None`.
    fn with(mut self, parts: Vec<(Option<usize>, String)>) -> Self {
        for (at, part) in parts {
            match (at, self.last) {
                (None, None) => self.before.push(part),
                (None, Some(_)) => self.after.push(part),
                (Some(at), last) => {
                    if let Some((_, parts)) = last.and_then(|last| self.results.get_mut(last)) {
                        parts.append(&mut self.after);
                    }
                    self.last = Some(self.results.len());
                    self.add(at, part);
                }
            }
        }
        self
    }

    fn parts(mut self) -> Vec<String> {
        self.results.sort_by_key(|(at, _)| *at);
        let results = self.results.into_iter().flat_map(|(_, parts)| parts);
        self.before.into_iter().chain(results).chain(self.after).collect()
    }
}

fn has_results(content: &GeminiContent<'_>) -> bool {
    let is_result = |raw: &&str| {
        matches!(GeminiPart::read(raw), Some(GeminiPart { kind: PartKind::Result(_), .. }))
    };
    content.parts.iter().any(is_result)
}

/// Returns the position of the call that a part answers, and the changed part if the upstream has another name or id
/// for the call. The position is `None` if the part is not a result, and the number of calls if no call fits the
/// result.
fn match_result(raw: &str, calls: &mut [AwaitedCall]) -> (Option<usize>, Option<String>) {
    let Some(part) = GeminiPart::read(raw) else { return (None, None) };
    let PartKind::Result(result) = &part.kind else { return (None, None) };
    let Some(at) = find_call(calls, result.id.as_deref(), &result.name) else {
        return (Some(calls.len()), None);
    };
    let call = &mut calls[at];
    call.has_result = true;
    // Clients omit, invent or change ids. The result must have the same id as the call in the upstream's history, or no
    // id if the call has none.
    let changes = call.name != result.name || call.id != result.id;
    let new = changes.then(|| part.as_result_of(&call.name, call.id.as_deref())).flatten();
    (Some(at), new)
}

/// Returns the function response that answers a hidden call.
fn hidden_answer(answer: &HiddenAnswer) -> String {
    let id = answer.id.as_deref().map(|id| format!(r#""id":{},"#, json::quote(id)));
    let id = id.unwrap_or_default();
    let (name, text) = (json::quote(&answer.name), json::quote(&answer.text));
    let key = if answer.refused { "error" } else { "output" };
    format!(r#"{{"functionResponse":{{{id}"name":{name},"response":{{"{key}":{text}}}}}}}"#)
}
