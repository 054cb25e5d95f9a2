//! Streams of Chat Completions: chunks of several rounds made into those of one message.
//!
//! As long as nothing is hidden every chunk passes as it came. From the first call that is held on, the
//! rest of the turn is put together anew: one id, contiguous indices, one end.

use serde_json::Value;
use toolcrib_text::json::{self, Fields};

use super::response::{GAP, finish_reason};
use super::said::{Call, Fate, Said, usage_of};
use crate::budget::{CALLS, PART};
use crate::desk::{Desk, Settled, Sort};
use crate::dialect::{End, Round, Stream};
use crate::sse::{self, Event};
use crate::usage;

/// Maximum size of what chunks of ours repeat, in bytes: one field, and all of them.
const FIELD: usize = 1 << 10;
const TEMPLATE: usize = 64 << 10;

/// The chunks of a turn.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    rounds: usize,
    /// `id` and `created` of the first chunk.
    first: Option<(String, String)>,
    /// The last chunk with a choice: what a chunk of ours is written over.
    template: String,
    /// Calls that the client got.
    sent: usize,
    /// Whether the client got any text in an earlier round, and whether in this one.
    spoke_before: bool,
    round: Said,
    /// What ends the message, held back.
    finish: Option<String>,
    usage_chunk: Option<String>,
    usage: Option<Value>,
    done: bool,
    /// Whether everything so far went to the client as it came.
    plain: bool,
}

impl Stream for Chunks {
    fn event(&mut self, event: &Event, desk: &mut Desk, out: &mut Vec<u8>) {
        if self.rounds == 0 {
            (self.rounds, self.plain) = (1, true);
        }
        let Some(data) = event.data() else {
            out.extend_from_slice(event.raw());
            return;
        };
        if data.trim() == "[DONE]" {
            (self.done, self.round.ended) = (true, true);
            self.settle_all(desk, out);
            if self.is_plain() {
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
            // A server may say in the middle of a choice that it failed.
            Some([_, ..]) if fields.get("error").is_some_and(|error| error != "null") => {
                self.round.failed = true;
                out.extend_from_slice(event.raw());
            }
            Some([first, more @ ..]) => {
                // One was asked for, and the calls of only one are checked: the client gets no others.
                self.plain &= more.is_empty();
                match Fields::read(first.get()) {
                    Some(choice) => self.chunk(event, &fields, &choice, desk, out),
                    None => out.extend_from_slice(event.raw()),
                }
            }
            Some([]) if fields.get("usage").is_some_and(|usage| usage != "null") => {
                self.count(&fields);
                self.usage_chunk = Some(data.into_owned());
                if self.is_plain() {
                    out.extend_from_slice(event.raw());
                }
            }
            // An error, or something this file does not know.
            _ => {
                self.round.failed |= fields.get("error").is_some();
                out.extend_from_slice(event.raw());
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.done
    }

    fn round(&mut self, desk: &mut Desk, out: &mut Vec<u8>) -> Round {
        if self.round.ended {
            self.settle_all(desk, out);
        }
        let end = match self.round.ended && !self.round.failed {
            false => End::Broken,
            true if self.round.is_cut() => End::Cut,
            true => End::Whole,
        };
        self.spoke_before |= self.round.spoke;
        let said = std::mem::take(&mut self.round);
        match (&mut self.usage, &said.used) {
            (Some(sum), Some(used)) => usage::add(sum, used),
            (sum @ None, Some(used)) => *sum = Some(used.clone()),
            (_, None) => {}
        }
        self.rounds += 1;
        let usage = said.usage;
        Round { entries: vec![said.entry()], end, usage, response: None }
    }

    fn finish(&mut self, desk: &Desk, out: &mut Vec<u8>) {
        if self.plain {
            return;
        }
        let sum = self.usage.as_ref().map(Value::to_string);
        if let Some(chunk) = self.finish.take() {
            self.write_finish(&chunk, sum.as_ref(), desk, out);
        }
        if let Some(chunk) = self.usage_chunk.take()
            && let Some(fields) = Fields::read(&chunk)
        {
            sse::write(None, &self.own(&fields, &[("usage", sum)]), out);
        }
        if self.done {
            sse::write(None, "[DONE]", out);
        }
    }

    fn fail(&mut self, status: u16, body: &[u8], _desk: &Desk, out: &mut Vec<u8>) {
        let text = std::str::from_utf8(body).unwrap_or_default();
        let error = Fields::read(text).and_then(|fields| fields.get("error").map(json::compact));
        let error = error.map_or_else(
            || format!(r#"{{"message":"the upstream answered {status}","type":"upstream_error","param":null,"code":null}}"#),
            std::borrow::Cow::into_owned,
        );
        sse::write(None, &format!(r#"{{"error":{error}}}"#), out);
    }
}

impl Chunks {
    /// Whether the rest of this round can still pass as it comes.
    fn is_plain(&mut self) -> bool {
        let held = self.round.calls.iter().any(|call| call.fate == Fate::Held);
        self.plain &= self.rounds == 1 && !held;
        self.plain
    }

    fn chunk(
        &mut self,
        event: &Event,
        fields: &Fields<'_>,
        choice: &Fields<'_>,
        desk: &mut Desk,
        out: &mut Vec<u8>,
    ) {
        self.template = template(fields);
        if self.first.is_none() {
            let own =
                |key| fields.get(key).filter(|raw| raw.len() <= FIELD).unwrap_or("null").to_owned();
            self.first = Some((own("id"), own("created")));
        }
        let delta = choice.get("delta").and_then(Fields::read);
        let spoke = self.round.spoke;
        let mut live = Vec::new();
        if let Some(delta) = &delta {
            self.round.hear(delta, &mut desk.budget);
            if let Some(text) = delta.string("content") {
                desk.text(&text);
            }
            for call in delta.get("tool_calls").and_then(json::items).unwrap_or_default() {
                live.extend(self.call(call.get(), desk));
            }
        }
        let finish = choice.string("finish_reason");
        let ended = finish.is_some();
        if ended {
            (self.round.finish, self.round.ended) = (finish, true);
        }
        if fields.get("usage").is_some_and(|usage| usage != "null") {
            self.count(fields);
        }
        if self.is_plain() {
            out.extend_from_slice(event.raw());
        } else {
            // What was forwarded before a call that was held stands before it.
            if let Some(delta) = delta {
                self.forward(fields, choice, &delta, &live, spoke, out);
            }
            self.finish = ended.then(|| fields.with(&[])).or(self.finish.take());
        }
        if ended {
            self.settle_all(desk, out);
        }
    }

    /// A chunk of which the client gets only what is its own.
    fn forward(
        &mut self,
        fields: &Fields<'_>,
        choice: &Fields<'_>,
        delta: &Fields<'_>,
        live: &[String],
        spoke: bool,
        out: &mut Vec<u8>,
    ) {
        let mut edits: Vec<(&str, Option<String>)> = Vec::new();
        edits.push(("tool_calls", (!live.is_empty()).then(|| format!("[{}]", live.join(",")))));
        let text = delta.string("content").filter(|text| !text.is_empty());
        if self.rounds > 1 {
            // There is one message, and its role was said.
            edits.push(("role", None));
            match &text {
                Some(text) if self.spoke_before && !spoke => {
                    edits.push(("content", Some(json::quote(&format!("{GAP}{text}")))));
                }
                Some(_) => {}
                // A list of parts is not ours to read.
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
        let chunk = self.own(fields, &[("choices", Some(format!("[{choice}]"))), ("usage", usage)]);
        sse::write(None, &chunk, out);
    }

    /// A piece of a call; what the client gets of it.
    fn call(&mut self, raw: &str, desk: &mut Desk) -> Option<String> {
        // The turn is over, and more calls would only cost time.
        if desk.budget.exceeded().is_some() {
            return None;
        }
        let piece = Fields::read(raw)?;
        let known = self.round.calls.len();
        let at = self.place(&piece);
        if self.round.calls.len() > known {
            desk.budget.hold(PART);
            if self.round.calls.len() > CALLS {
                desk.budget.exceed_calls();
            }
        }
        let call = &mut self.round.calls[at];
        let begins = call.name.is_empty();
        call.add(&piece, &mut desk.budget);
        if begins && call.fate == Fate::Held && call.sort(desk) == Sort::Live && !self.holds(at) {
            self.round.calls[at].fate = Fate::Live(self.sent);
            self.sent += 1;
        }
        match self.round.calls[at].fate {
            Fate::Live(index) => Some(piece.with(&[("index", Some(index.to_string()))])),
            _ => None,
        }
    }

    /// Whether an earlier call is still held: then a later one waits, so that their order stays.
    fn holds(&self, at: usize) -> bool {
        self.round.calls[..at].iter().any(|call| call.fate == Fate::Held)
    }

    /// The call that a piece belongs to. One that begins does not mean that those before it are whole:
    /// servers exist that begin all calls at once.
    fn place(&mut self, piece: &Fields<'_>) -> usize {
        let index = piece.get("index").and_then(|raw| raw.parse().ok());
        let id = piece.string("id").filter(|id| !id.is_empty());
        let calls = &self.round.calls;
        let found = match (index, &id) {
            (Some(_), None) => calls.iter().rposition(|call| call.index == index),
            // Servers that repeat an index tell their calls apart by id.
            (Some(_), Some(_)) => {
                // Others change the id of a call that is under way; a call that begins has a name.
                let begins = begins(piece);
                let is_same = |call: &Call| call.id.is_none() || call.id == id || !begins;
                calls.iter().rposition(|call| call.index == index && is_same(call))
            }
            (None, Some(_)) => calls.iter().rposition(|call| call.id == id),
            (None, None) => calls.len().checked_sub(1),
        };
        found.unwrap_or_else(|| {
            self.round.calls.push(Call { index, ..Call::default() });
            self.round.calls.len() - 1
        })
    }

    /// Decides about the calls that are held, in order; those for the client are sent. A round that was
    /// cut short may have cut its last call too, so that none is decided about.
    fn settle_all(&mut self, desk: &mut Desk, out: &mut Vec<u8>) {
        let (over, cut) = (self.round.ended, self.round.is_cut());
        for at in 0..self.round.calls.len() {
            let call = &mut self.round.calls[at];
            let id = call.id.as_deref();
            let mut forward = None;
            match call.fate {
                Fate::Settled | Fate::Lost => continue,
                Fate::Live(_) if !over => continue,
                Fate::Live(_) => desk.live(id, &call.name, call.json()),
                Fate::Held if cut => self.plain = false,
                // A name that came in pieces, or a call that waited for another.
                Fate::Held if call.sort(desk) == Sort::Live => {
                    desk.live(id, &call.name, call.json());
                    forward = Some((call.name.clone(), call.arguments.clone()));
                }
                Fate::Held => {
                    if let Settled::Forward { name, arguments } =
                        desk.settle(id, &call.name, &call.arguments)
                    {
                        forward = Some((name, arguments));
                    }
                }
            }
            self.plain &= call.fate != Fate::Held;
            call.fate = if call.fate == Fate::Held && cut { Fate::Lost } else { Fate::Settled };
            if let Some((name, arguments)) = forward {
                self.send(at, &name, &arguments, out);
            }
        }
    }

    /// A chunk with a whole call.
    fn send(&mut self, at: usize, name: &str, arguments: &str, out: &mut Vec<u8>) {
        let call = self.round.calls[at].write(name, arguments, Some(self.sent));
        self.sent += 1;
        let choice =
            format!(r#"[{{"index":0,"delta":{{"tool_calls":[{call}]}},"finish_reason":null}}]"#);
        let template = std::mem::take(&mut self.template);
        if let Some(fields) = Fields::read(&template) {
            let usage = fields.get("usage").map(|_| "null".to_owned());
            sse::write(
                None,
                &self.own(&fields, &[("choices", Some(choice)), ("usage", usage)]),
                out,
            );
        }
        self.template = template;
    }

    fn write_finish(&self, chunk: &str, sum: Option<&String>, desk: &Desk, out: &mut Vec<u8>) {
        let Some(fields) = Fields::read(chunk) else { return };
        let Some(choices) = fields.get("choices").and_then(json::items) else { return };
        let Some(choice) = choices.first().and_then(|raw| Fields::read(raw.get())) else { return };
        let reason = finish_reason(choice.get("finish_reason").unwrap_or("null"), desk);
        let choice = choice.with(&[("delta", Some("{}".into())), ("finish_reason", Some(reason))]);
        let counted = fields.get("usage").is_some_and(|usage| usage != "null");
        let usage = if counted { sum.cloned() } else { fields.get("usage").map(str::to_owned) };
        let edits = [("choices", Some(format!("[{choice}]"))), ("usage", usage)];
        sse::write(None, &self.own(&fields, &edits), out);
    }

    /// A chunk as one of the message that the client began to read.
    fn own(&self, fields: &Fields<'_>, edits: &[(&str, Option<String>)]) -> String {
        let (id, created) = self.first.clone().unwrap_or_default();
        let mut all = vec![("id", Some(id)), ("created", Some(created))];
        all.extend_from_slice(edits);
        fields.with(&all)
    }

    fn count(&mut self, fields: &Fields<'_>) {
        let Some(used) = fields.get("usage").and_then(usage::parse) else { return };
        self.round.usage = usage_of(&used);
        // Some servers say with every chunk what it took so far: the last one counts.
        self.round.used = Some(used);
    }
}

/// The template for chunks that the proxy writes: the fields of a received chunk, except its choices. Each call that
/// was held repeats them, so fields that are too large are left out.
fn template(fields: &Fields<'_>) -> String {
    let bare = fields.with(&[("choices", Some("[]".to_owned()))]);
    if bare.len() <= TEMPLATE {
        return bare;
    }
    let large = fields.iter().filter(|(_, raw)| raw.len() > FIELD);
    let large: Vec<(&str, Option<String>)> = large.map(|(key, _)| (key, None)).collect();
    let small = fields.with(&large);
    if small.len() <= TEMPLATE { small } else { r#"{"choices":[]}"#.to_owned() }
}

/// Whether a piece of a call is its first.
fn begins(piece: &Fields<'_>) -> bool {
    ["function", "custom"].iter().any(|key| {
        let named = piece.get(key).and_then(Fields::read).and_then(|inner| inner.string("name"));
        named.is_some_and(|name| !name.is_empty())
    })
}
