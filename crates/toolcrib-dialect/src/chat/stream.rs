//! Merges the Chat Completions streams of several rounds into the stream of one message.
//!
//! Chunks are forwarded unchanged until the first call is held. From then on, all chunks are rewritten, so that the
//! client gets a single message with one id, contiguous call indices and one end.

use serde_json::Value;
use toolcrib_text::json::{self, Fields};

use super::response::{TEXT_SEPARATOR, finish_reason};
use super::streamed_round::{CallState, StreamedCall, StreamedRound};
use crate::call_router::{CallRoute, CallRouter, ResolvedCall};
use crate::dialect::{Round, RoundEnd, StreamMerger};
use crate::limits::{MAX_CALLS, PART_BYTES};
use crate::sse::{self, Event};
use crate::usage;

/// Chunks that are written here repeat fields of a received chunk. These are the maximum sizes, in bytes, of one such
/// field and of all of them together.
const MAX_REPEATED_FIELD_BYTES: usize = 1 << 10;
const MAX_TEMPLATE_BYTES: usize = 64 << 10;

/// Merges the streams of a turn.
#[derive(Debug, Default)]
pub(super) struct ChatStreamMerger {
    rounds: usize,
    /// The `id` and `created` of the turn's first chunk. All chunks that are written here repeat these two values.
    first: Option<(String, String)>,
    /// The last chunk with a choice, used as the template for chunks that are written here.
    template: String,
    /// Number of calls that were forwarded to the client.
    forwarded_calls: usize,
    /// Whether an earlier round of this turn had text, so that the next text needs a separator.
    had_text_before: bool,
    round: StreamedRound,
    /// The chunk that ends the message. It is held back until the turn ends.
    finish: Option<String>,
    usage_chunk: Option<String>,
    usage: Option<Value>,
    done: bool,
    /// Whether everything so far was forwarded unchanged.
    unchanged: bool,
}

impl StreamMerger for ChatStreamMerger {
    fn event(&mut self, event: &Event, router: &mut CallRouter, out: &mut Vec<u8>) {
        if self.rounds == 0 {
            (self.rounds, self.unchanged) = (1, true);
        }
        let Some(data) = event.data() else {
            out.extend_from_slice(event.raw());
            return;
        };
        if data.trim() == "[DONE]" {
            (self.done, self.round.ended) = (true, true);
            self.decide_held_calls(router, out);
            if self.is_unchanged() {
                out.extend_from_slice(event.raw());
            }
            return;
        }
        let Some(fields) = Fields::read(&data) else {
            out.extend_from_slice(event.raw());
            return;
        };
        let choices = fields.get("choices").and_then(json::items);
        match choices.as_deref() {
            // A server may report an error in the middle of a message, in a chunk that still has a choice.
            Some([_, ..]) if fields.get("error").is_some_and(|error| error != "null") => {
                self.round.failed = true;
                out.extend_from_slice(event.raw());
            }
            Some([first, more @ ..]) => {
                // Only one choice was requested, and only its calls are checked. So any other choice is not forwarded
                // to the client.
                self.unchanged &= more.is_empty();
                match Fields::read(first.get()) {
                    Some(choice) => self.add_chunk(event, &fields, &choice, router, out),
                    None => out.extend_from_slice(event.raw()),
                }
            }
            Some([]) if fields.get("usage").is_some_and(|usage| usage != "null") => {
                self.record_usage(&fields);
                self.usage_chunk = Some(data.into_owned());
                if self.is_unchanged() {
                    out.extend_from_slice(event.raw());
                }
            }
            // The chunk is an error or unknown.
            _ => {
                self.round.failed |= fields.get("error").is_some();
                out.extend_from_slice(event.raw());
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.done
    }

    fn end_round(&mut self, router: &mut CallRouter, out: &mut Vec<u8>) -> Round {
        if self.round.ended {
            self.decide_held_calls(router, out);
        }
        let end = match self.round.ended && !self.round.failed {
            false => RoundEnd::Failed,
            true if self.round.is_truncated() => RoundEnd::Truncated,
            true => RoundEnd::Complete,
        };
        self.had_text_before |= self.round.has_text;
        let round = std::mem::take(&mut self.round);
        match (&mut self.usage, &round.used) {
            (Some(sum), Some(used)) => usage::add(sum, used),
            (sum @ None, Some(used)) => *sum = Some(used.clone()),
            (_, None) => {}
        }
        self.rounds += 1;
        let usage = round.usage;
        Round { entries: vec![round.into_entry()], end, usage, response: None }
    }

    fn finish(&mut self, router: &CallRouter, out: &mut Vec<u8>) {
        if self.unchanged {
            return;
        }
        let sum = self.usage.as_ref().map(Value::to_string);
        if let Some(chunk) = self.finish.take() {
            self.write_finish(&chunk, sum.as_ref(), router, out);
        }
        if let Some(chunk) = self.usage_chunk.take()
            && let Some(fields) = Fields::read(&chunk)
        {
            sse::write_event(None, &self.with_first_id(&fields, &[("usage", sum)]), out);
        }
        if self.done {
            sse::write_event(None, "[DONE]", out);
        }
    }

    fn fail(&mut self, status: u16, body: &[u8], _router: &CallRouter, out: &mut Vec<u8>) {
        let text = std::str::from_utf8(body).unwrap_or_default();
        let error = Fields::read(text).and_then(|fields| fields.get("error").map(json::compact));
        let error = error.map_or_else(
            || format!(r#"{{"message":"the upstream answered {status}","type":"upstream_error","param":null,"code":null}}"#),
            std::borrow::Cow::into_owned,
        );
        sse::write_event(None, &format!(r#"{{"error":{error}}}"#), out);
    }
}

impl ChatStreamMerger {
    /// Whether the stream can still be forwarded unchanged. It cannot after a call was held, or in a hidden round.
    fn is_unchanged(&mut self) -> bool {
        let held = self.round.calls.iter().any(|call| call.state == CallState::Held);
        self.unchanged &= self.rounds == 1 && !held;
        self.unchanged
    }

    fn add_chunk(
        &mut self,
        event: &Event,
        fields: &Fields<'_>,
        choice: &Fields<'_>,
        router: &mut CallRouter,
        out: &mut Vec<u8>,
    ) {
        self.template = template(fields);
        if self.first.is_none() {
            let raw_field = |key| {
                fields
                    .get(key)
                    .filter(|raw| raw.len() <= MAX_REPEATED_FIELD_BYTES)
                    .unwrap_or("null")
                    .to_owned()
            };
            self.first = Some((raw_field("id"), raw_field("created")));
        }
        let delta = choice.get("delta").and_then(Fields::read);
        let has_text = self.round.has_text;
        let mut forwarded = Vec::new();
        if let Some(delta) = &delta {
            self.round.add_delta(delta, &mut router.budget);
            if let Some(text) = delta.string("content") {
                router.note_text(&text);
            }
            for call in delta.get("tool_calls").and_then(json::items).unwrap_or_default() {
                forwarded.extend(self.add_call_piece(call.get(), router));
            }
        }
        let finish = choice.string("finish_reason");
        let ended = finish.is_some();
        if ended {
            (self.round.finish, self.round.ended) = (finish, true);
        }
        if fields.get("usage").is_some_and(|usage| usage != "null") {
            self.record_usage(fields);
        }
        if self.is_unchanged() {
            out.extend_from_slice(event.raw());
        } else {
            // The held calls are complete only after this chunk, so the content of the chunk is written before them.
            if let Some(delta) = delta {
                self.forward_delta(fields, choice, &delta, &forwarded, has_text, out);
            }
            self.finish = ended.then(|| fields.with(&[])).or(self.finish.take());
        }
        if ended {
            self.decide_held_calls(router, out);
        }
    }

    /// Forwards a chunk without the parts that are hidden from the client.
    fn forward_delta(
        &mut self,
        fields: &Fields<'_>,
        choice: &Fields<'_>,
        delta: &Fields<'_>,
        forwarded: &[String],
        has_text: bool,
        out: &mut Vec<u8>,
    ) {
        let mut edits: Vec<(&str, Option<String>)> = Vec::new();
        edits.push((
            "tool_calls",
            (!forwarded.is_empty()).then(|| format!("[{}]", forwarded.join(","))),
        ));
        let text = delta.string("content").filter(|text| !text.is_empty());
        if self.rounds > 1 {
            // The client gets one message for all rounds, and its role was already sent in the first round.
            edits.push(("role", None));
            match &text {
                Some(text) if self.had_text_before && !has_text => {
                    edits.push(("content", Some(json::quote(&format!("{TEXT_SEPARATOR}{text}")))));
                }
                Some(_) => {}
                // Content that is a list of parts is forwarded unchanged.
                None if delta.get("content").is_some_and(|raw| raw.starts_with('[')) => {}
                None => edits.push(("content", None)),
            }
        }
        let delta = delta.with(&edits);
        if delta == "{}" {
            return;
        }
        let choice = choice.with(&[("delta", Some(delta)), ("finish_reason", Some("null".into()))]);
        let usage = fields.get("usage").map(|_| "null".to_owned());
        let chunk = self
            .with_first_id(fields, &[("choices", Some(format!("[{choice}]"))), ("usage", usage)]);
        sse::write_event(None, &chunk, out);
    }

    /// Adds a piece of a call. If the call is forwarded, returns the piece to send to the client.
    fn add_call_piece(&mut self, raw: &str, router: &mut CallRouter) -> Option<String> {
        // A limit was exceeded, so the turn will end with an error. Processing more calls would only cost time.
        if router.budget.exceeded().is_some() {
            return None;
        }
        let piece = Fields::read(raw)?;
        let known_calls = self.round.calls.len();
        let at = self.find_or_add_call(&piece);
        if self.round.calls.len() > known_calls {
            router.budget.hold(PART_BYTES);
            if self.round.calls.len() > MAX_CALLS {
                router.budget.exceed_calls();
            }
        }
        let call = &mut self.round.calls[at];
        let is_first_piece = call.name.is_empty();
        call.add_piece(&piece, &mut router.budget);
        if is_first_piece
            && call.state == CallState::Held
            && call.sort(router) == CallRoute::Forward
            && !self.is_earlier_call_held(at)
        {
            self.round.calls[at].state = CallState::Forwarded(self.forwarded_calls);
            self.forwarded_calls += 1;
        }
        match self.round.calls[at].state {
            CallState::Forwarded(index) => Some(piece.with(&[("index", Some(index.to_string()))])),
            _ => None,
        }
    }

    /// Whether a call before the one at position `at` is still held. If so, the call at `at` has to wait, so that the
    /// client gets the calls in order.
    fn is_earlier_call_held(&self, at: usize) -> bool {
        self.round.calls[..at].iter().any(|call| call.state == CallState::Held)
    }

    /// Returns the position of the call that a piece belongs to, and adds the call if it is new. When a new call
    /// starts, the earlier calls are not treated as complete, because some servers start all calls at once.
    fn find_or_add_call(&mut self, piece: &Fields<'_>) -> usize {
        let index = piece.get("index").and_then(|raw| raw.parse().ok());
        let id = piece.string("id").filter(|id| !id.is_empty());
        let calls = &self.round.calls;
        let found = match (index, &id) {
            (Some(_), None) => calls.iter().rposition(|call| call.index == index),
            // Some servers use the same index for several calls, and distinguish the calls by id.
            (Some(_), Some(_)) => {
                // Other servers change a call's id in later pieces. Such a piece has no name, because only the first
                // piece of a call has one.
                let is_first_piece = is_first_piece(piece);
                let is_same =
                    |call: &StreamedCall| call.id.is_none() || call.id == id || !is_first_piece;
                calls.iter().rposition(|call| call.index == index && is_same(call))
            }
            (None, Some(_)) => calls.iter().rposition(|call| call.id == id),
            (None, None) => calls.len().checked_sub(1),
        };
        found.unwrap_or_else(|| {
            self.round.calls.push(StreamedCall { index, ..StreamedCall::default() });
            self.round.calls.len() - 1
        })
    }

    /// Decides about held calls, in order, and sends the calls that are for the client. If the round was truncated, its
    /// held calls are dropped because they may be incomplete.
    fn decide_held_calls(&mut self, router: &mut CallRouter, out: &mut Vec<u8>) {
        let (ended, truncated) = (self.round.ended, self.round.is_truncated());
        for at in 0..self.round.calls.len() {
            let call = &mut self.round.calls[at];
            let id = call.id.as_deref();
            let mut forward = None;
            match call.state {
                CallState::Decided | CallState::Dropped => continue,
                CallState::Forwarded(_) if !ended => continue,
                CallState::Forwarded(_) => {
                    router.note_forwarded_call(id, &call.name, call.json_arguments());
                }
                CallState::Held if truncated => self.unchanged = false,
                // The client declared the called tool, so the call is forwarded unchanged. It was held only because its
                // name arrived in pieces, or because an earlier call was held.
                CallState::Held if call.sort(router) == CallRoute::Forward => {
                    router.note_forwarded_call(id, &call.name, call.json_arguments());
                    forward = Some((call.name.clone(), call.arguments.clone()));
                }
                CallState::Held => {
                    if let ResolvedCall::Forward { name, arguments } =
                        router.resolve(id, &call.name, &call.arguments)
                    {
                        forward = Some((name, arguments));
                    }
                }
            }
            self.unchanged &= call.state != CallState::Held;
            call.state = if call.state == CallState::Held && truncated {
                CallState::Dropped
            } else {
                CallState::Decided
            };
            if let Some((name, arguments)) = forward {
                self.send_call(at, &name, &arguments, out);
            }
        }
    }

    /// Writes a chunk with a complete call.
    fn send_call(&mut self, at: usize, name: &str, arguments: &str, out: &mut Vec<u8>) {
        let call = self.round.calls[at].write(name, arguments, Some(self.forwarded_calls));
        self.forwarded_calls += 1;
        let choice =
            format!(r#"[{{"index":0,"delta":{{"tool_calls":[{call}]}},"finish_reason":null}}]"#);
        let template = std::mem::take(&mut self.template);
        if let Some(fields) = Fields::read(&template) {
            let usage = fields.get("usage").map(|_| "null".to_owned());
            sse::write_event(
                None,
                &self.with_first_id(&fields, &[("choices", Some(choice)), ("usage", usage)]),
                out,
            );
        }
        self.template = template;
    }

    fn write_finish(
        &self,
        chunk: &str,
        sum: Option<&String>,
        router: &CallRouter,
        out: &mut Vec<u8>,
    ) {
        let Some(fields) = Fields::read(chunk) else { return };
        let Some(choices) = fields.get("choices").and_then(json::items) else { return };
        let Some(choice) = choices.first().and_then(|raw| Fields::read(raw.get())) else { return };
        let reason = finish_reason(choice.get("finish_reason").unwrap_or("null"), router);
        let choice = choice.with(&[("delta", Some("{}".into())), ("finish_reason", Some(reason))]);
        let counted = fields.get("usage").is_some_and(|usage| usage != "null");
        let usage = if counted { sum.cloned() } else { fields.get("usage").map(str::to_owned) };
        let edits = [("choices", Some(format!("[{choice}]"))), ("usage", usage)];
        sse::write_event(None, &self.with_first_id(&fields, &edits), out);
    }

    /// Returns the chunk `fields` with `edits` applied, and with the id and creation time of the turn's first chunk.
    fn with_first_id(&self, fields: &Fields<'_>, edits: &[(&str, Option<String>)]) -> String {
        let (id, created) = self.first.clone().unwrap_or_default();
        let mut all = vec![("id", Some(id)), ("created", Some(created))];
        all.extend_from_slice(edits);
        fields.with(&all)
    }

    fn record_usage(&mut self, fields: &Fields<'_>) {
        let Some(used) = fields.get("usage").and_then(usage::parse) else { return };
        self.round.usage = super::usage::read(&used);
        // Some servers send the total usage so far with every chunk, so each value replaces the one before.
        self.round.used = Some(used);
    }
}

/// Returns the template for chunks that are written here: a received chunk without its choices. The template is
/// repeated for every held call, so fields that are too large are left out.
fn template(fields: &Fields<'_>) -> String {
    let bare = fields.with(&[("choices", Some("[]".to_owned()))]);
    if bare.len() <= MAX_TEMPLATE_BYTES {
        return bare;
    }
    let large = fields.iter().filter(|(_, raw)| raw.len() > MAX_REPEATED_FIELD_BYTES);
    let large: Vec<(&str, Option<String>)> = large.map(|(key, _)| (key, None)).collect();
    let small = fields.with(&large);
    if small.len() <= MAX_TEMPLATE_BYTES { small } else { r#"{"choices":[]}"#.to_owned() }
}

/// Whether this is the first piece of a call, which is the only one with a name.
fn is_first_piece(piece: &Fields<'_>) -> bool {
    ["function", "custom"].iter().any(|key| {
        let named = piece.get(key).and_then(Fields::read).and_then(|inner| inner.string("name"));
        named.is_some_and(|name| !name.is_empty())
    })
}
