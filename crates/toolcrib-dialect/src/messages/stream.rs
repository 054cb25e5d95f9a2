//! Streams of Messages: events of several rounds made into those of one message.
//!
//! As long as nothing is held every event passes as it came. From the first call that is held on, blocks
//! are numbered anew, and what ends the message waits for the last round.

use serde_json::Value;
use toolcrib_text::json::{self, Fields};

use super::block::{Block, Fate};
use super::content;
use super::response::{end, entry, stop_reason, usage_of};
use crate::desk::{Desk, Settled, Sort};
use crate::dialect::{End, Round, Stream};
use crate::sse::{self, Event};
use crate::usage;

/// Maximum number of counts in a usage object.
const COUNTS: usize = 256;

/// The events of a turn.
#[derive(Debug, Default)]
pub(super) struct Events {
    rounds: usize,
    /// Whether everything so far went to the client as it came.
    plain: bool,
    /// Blocks that the client got.
    sent: usize,
    round: Said,
    /// What ends the message, held back.
    delta: Option<String>,
    /// Tokens of the rounds that are over.
    usage: Option<Value>,
    failed: bool,
}

/// What was said in a round.
#[derive(Debug, Default)]
struct Said {
    begun: bool,
    blocks: Vec<Block>,
    reason: Option<String>,
    ended: bool,
    /// Counts as the upstream gives them: each later one is the whole, and not what came since.
    usage: Option<Value>,
}

impl Stream for Events {
    fn event(&mut self, event: &Event, desk: &mut Desk, out: &mut Vec<u8>) {
        if !self.round.begun {
            self.rounds += 1;
            (self.round.begun, self.plain) = (true, self.rounds == 1);
        }
        let data = event.data();
        let fields = data.as_deref().and_then(Fields::read);
        let kind = fields.as_ref().and_then(|fields| fields.string("type"));
        let (Some(fields), Some(kind)) = (fields, kind) else {
            out.extend_from_slice(event.raw());
            return;
        };
        match kind.as_str() {
            "message_start" => self.begin(event, &fields, out),
            "content_block_start" => self.start(event, &fields, desk, out),
            "content_block_delta" | "content_block_stop" => {
                self.more(event, &kind, &fields, desk, out);
            }
            "message_delta" => self.delta(event, &fields, desk, out),
            "message_stop" => {
                self.round.ended = true;
                self.settle(desk, out);
                if self.plain {
                    out.extend_from_slice(event.raw());
                }
            }
            _ => {
                self.failed |= kind == "error";
                out.extend_from_slice(event.raw());
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.round.ended
    }

    fn round(&mut self, desk: &mut Desk, _out: &mut Vec<u8>) -> Round {
        let said = std::mem::take(&mut self.round);
        let whole = said.ended && !self.failed;
        let end = if whole { end(said.reason.as_deref(), desk) } else { End::Broken };
        let blocks: Vec<String> = said.blocks.iter().filter_map(Block::entry).collect();
        let taken = said.usage.as_ref().map(usage_of).unwrap_or_default();
        if let Some(used) = said.usage {
            match &mut self.usage {
                Some(sum) => usage::add(sum, &used),
                None => self.usage = Some(used),
            }
        }
        Round { entries: entry(&blocks), end, usage: taken, response: None }
    }

    fn finish(&mut self, desk: &Desk, out: &mut Vec<u8>) {
        if self.plain {
            return;
        }
        if let Some(held) = self.delta.take()
            && let Some(fields) = Fields::read(&held)
        {
            let mut edits = Vec::new();
            if let Some(delta) = fields.get("delta").and_then(Fields::read) {
                let reason = stop_reason(delta.get("stop_reason").unwrap_or("null"), desk);
                edits.push(("delta", Some(delta.with(&[("stop_reason", Some(reason))]))));
            }
            if self.rounds > 1 {
                edits.push(("usage", self.sum(fields.get("usage"))));
            }
            sse::write(Some("message_delta"), &fields.with(&edits), out);
        }
        sse::write(Some("message_stop"), r#"{"type":"message_stop"}"#, out);
    }

    fn fail(&mut self, status: u16, body: &[u8], _desk: &Desk, out: &mut Vec<u8>) {
        let text = std::str::from_utf8(body).unwrap_or_default();
        let error = Fields::read(text).filter(|fields| fields.get("error").is_some());
        let error = error.map(|fields| fields.with(&[("type", Some(r#""error""#.into()))]));
        let error = error.unwrap_or_else(|| {
            format!(
                r#"{{"type":"error","error":{{"type":"api_error","message":"the upstream answered {status}"}}}}"#
            )
        });
        sse::write(Some("error"), &json::compact(&error), out);
    }
}

impl Events {
    /// There is one message, and the client was told of it in the first round.
    fn begin(&mut self, event: &Event, fields: &Fields<'_>, out: &mut Vec<u8>) {
        let message = fields.get("message").and_then(Fields::read);
        self.count(message.as_ref().and_then(|message| message.get("usage")));
        if self.rounds == 1 {
            out.extend_from_slice(event.raw());
        }
    }

    fn start(&mut self, event: &Event, fields: &Fields<'_>, desk: &mut Desk, out: &mut Vec<u8>) {
        self.settle(desk, out);
        let raw = fields.get("content_block").unwrap_or("null");
        let mut block = Block::new(index(fields), raw);
        block.fate = self.fate(&block, raw, desk);
        block.count(&mut desk.budget);
        if let Fate::Live(index) = block.fate {
            self.sent = index.saturating_add(1);
            forward(event, "content_block_start", fields, index, out);
        } else {
            self.plain = false;
        }
        self.round.blocks.push(block);
    }

    fn fate(&self, block: &Block, raw: &str, desk: &mut Desk) -> Fate {
        let read = content::Block::read(raw);
        if let Some(search) = read.as_ref().filter(|read| read.is_search() && desk.hosts()) {
            desk.hide();
            desk.found(search.found());
            return Fate::Settled;
        }
        if let Some((_, name)) = &block.call {
            // A call after one that is held waits for it, so that their order stays.
            let waits = self.round.blocks.iter().any(|block| block.fate == Fate::Held);
            if waits || desk.sort(name) == Sort::Held {
                return Fate::Held;
            }
        } else if let Some(text) = read.filter(|read| read.kind == "text") {
            desk.text(&text.fields.string("text").unwrap_or_default());
        }
        // As long as all passes as it came, the upstream's numbers are the client's.
        let theirs = block.index.filter(|_| self.plain).and_then(|index| index.try_into().ok());
        Fate::Live(theirs.unwrap_or(self.sent))
    }

    /// A delta or the end of a block.
    fn more(
        &mut self,
        event: &Event,
        kind: &str,
        fields: &Fields<'_>,
        desk: &mut Desk,
        out: &mut Vec<u8>,
    ) {
        let index = index(fields);
        let Some(block) = self.round.blocks.iter_mut().rfind(|block| block.index == index) else {
            // Of a block that never began.
            out.extend_from_slice(event.raw());
            return;
        };
        block.whole |= kind == "content_block_stop";
        if let Some(delta) = fields.get("delta").and_then(Fields::read) {
            if delta.string("type").as_deref() == Some("text_delta") {
                desk.text(&delta.string("text").unwrap_or_default());
            }
            block.add(&delta, &mut desk.budget);
        }
        if let Fate::Live(index) = block.fate {
            forward(event, kind, fields, index, out);
        }
    }

    fn delta(&mut self, event: &Event, fields: &Fields<'_>, desk: &mut Desk, out: &mut Vec<u8>) {
        self.count(fields.get("usage"));
        let delta = fields.get("delta").and_then(Fields::read);
        let reason = delta.and_then(|delta| delta.string("stop_reason"));
        if reason.is_some() {
            (self.round.ended, self.round.reason) = (true, reason.clone());
            self.settle(desk, out);
            self.plain &= end(reason.as_deref(), desk) != End::Paused;
        }
        if self.plain {
            out.extend_from_slice(event.raw());
        } else if reason.is_some() || self.delta.is_none() {
            self.delta = Some(fields.with(&[]));
        }
    }

    /// Decides about calls in order, as far as they are whole: a call is once the next block begins, or
    /// the round has ended by itself. One that a limit may have cut is not decided about.
    fn settle(&mut self, desk: &mut Desk, out: &mut Vec<u8>) {
        let over = self.round.ended;
        let cut = over && end(self.round.reason.as_deref(), desk) == End::Cut;
        for block in &mut self.round.blocks {
            let Some((id, name)) = block.call.clone() else { continue };
            if matches!(block.fate, Fate::Settled | Fate::Cut) || block.noted {
                continue;
            }
            if !block.whole && !over {
                break;
            }
            let (id, input) = (id.as_deref(), block.input());
            if let Fate::Live(_) = block.fate {
                desk.live(id, &name, &input);
                block.noted = true;
                continue;
            }
            if cut {
                block.fate = Fate::Cut;
                continue;
            }
            block.fate = Fate::Settled;
            let settled = if desk.sort(&name) == Sort::Live {
                // It waited for another.
                desk.live(id, &name, &input);
                Settled::Forward { name, arguments: input }
            } else {
                desk.settle(id, &name, &input)
            };
            if let Settled::Forward { name, arguments } = settled {
                block.send(self.sent, &name, &arguments, out);
                self.sent = self.sent.saturating_add(1);
            }
        }
    }

    fn count(&mut self, used: Option<&str>) {
        let used = used.and_then(usage::parse);
        match (&mut self.round.usage, used) {
            // Keys that are new each time would add up.
            (Some(Value::Object(known)), Some(Value::Object(later))) if known.len() < COUNTS => {
                known.extend(later.into_iter().filter(|(_, value)| !value.is_null()));
            }
            (known @ None, Some(used)) => *known = Some(used),
            _ => {}
        }
    }

    /// What all rounds took, under the keys that the last one has at its end and those that a client
    /// knows from the first one's beginning.
    fn sum(&self, last: Option<&str>) -> Option<String> {
        let sum = self.usage.as_ref()?;
        let last = last.and_then(usage::parse);
        let Some(Value::Object(mut told)) = last else { return Some(sum.to_string()) };
        for key in ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"] {
            told.entry(key).or_insert(Value::Null);
        }
        for (key, value) in &mut told {
            *value = sum.get(key).cloned().unwrap_or(Value::Null);
        }
        told.retain(|_, value| !value.is_null());
        Some(Value::Object(told).to_string())
    }
}

/// The number that an event has for its block.
fn index(fields: &Fields<'_>) -> Option<u64> {
    fields.get("index").and_then(|raw| raw.parse().ok())
}

/// An event of a block, under the client's number for it.
fn forward(event: &Event, kind: &str, fields: &Fields<'_>, index: usize, out: &mut Vec<u8>) {
    if fields.get("index").is_none_or(|raw| raw == index.to_string()) {
        out.extend_from_slice(event.raw());
    } else {
        sse::write(Some(kind), &fields.with(&[("index", Some(index.to_string()))]), out);
    }
}
