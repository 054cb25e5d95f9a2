//! Merges the Messages streams of several rounds into the stream of one message.
//!
//! Events are forwarded unchanged until the first block is held or hidden. From then on, blocks are renumbered, and the
//! end of the message is held back until the turn ends.

use serde_json::Value;
use toolcrib_text::json::{self, Fields};

use super::content;
use super::response::{entry, round_end, stop_reason};
use super::streamed_round::{BlockState, StreamedBlock, StreamedRound};
use crate::call_router::{CallRoute, CallRouter, ResolvedCall};
use crate::dialect::{Round, RoundEnd, StreamMerger};
use crate::sse::{self, Event};
use crate::usage;

/// Maximum number of keys in a usage object.
const MAX_USAGE_KEYS: usize = 256;

/// Merges the streams of a turn.
#[derive(Debug, Default)]
pub(super) struct MessagesStreamMerger {
    rounds: usize,
    /// Whether everything so far was forwarded unchanged.
    unchanged: bool,
    /// Number of blocks that were forwarded to the client.
    forwarded_blocks: usize,
    round: StreamedRound,
    /// The `message_delta` that ends the message. It is held back until the turn ends.
    held_delta: Option<String>,
    /// The total token usage of all rounds that have ended.
    usage: Option<Value>,
    failed: bool,
}

impl StreamMerger for MessagesStreamMerger {
    fn event(&mut self, event: &Event, router: &mut CallRouter, out: &mut Vec<u8>) {
        if !self.round.started {
            self.rounds += 1;
            (self.round.started, self.unchanged) = (true, self.rounds == 1);
        }
        let data = event.data();
        let fields = data.as_deref().and_then(Fields::read);
        let kind = fields.as_ref().and_then(|fields| fields.string("type"));
        let (Some(fields), Some(kind)) = (fields, kind) else {
            out.extend_from_slice(event.raw());
            return;
        };
        match kind.as_str() {
            "message_start" => self.on_message_start(event, &fields, out),
            "content_block_start" => self.on_block_start(event, &fields, router, out),
            "content_block_delta" | "content_block_stop" => {
                self.on_block_event(event, &kind, &fields, router, out);
            }
            "message_delta" => self.on_message_delta(event, &fields, router, out),
            "message_stop" => {
                self.round.ended = true;
                self.decide_calls(router, out);
                if self.unchanged {
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

    fn end_round(&mut self, router: &mut CallRouter, _out: &mut Vec<u8>) -> Round {
        let round = std::mem::take(&mut self.round);
        let is_complete = round.ended && !self.failed;
        let end =
            if is_complete { round_end(round.reason.as_deref(), router) } else { RoundEnd::Failed };
        let blocks: Vec<String> = round.blocks.iter().filter_map(StreamedBlock::entry).collect();
        let round_usage = round.usage.as_ref().map(super::usage::read).unwrap_or_default();
        if let Some(used) = round.usage {
            match &mut self.usage {
                Some(sum) => usage::add(sum, &used),
                None => self.usage = Some(used),
            }
        }
        Round { entries: entry(&blocks), end, usage: round_usage, response: None }
    }

    fn finish(&mut self, router: &CallRouter, out: &mut Vec<u8>) {
        if self.unchanged {
            return;
        }
        if let Some(held) = self.held_delta.take()
            && let Some(fields) = Fields::read(&held)
        {
            let mut edits = Vec::new();
            if let Some(delta) = fields.get("delta").and_then(Fields::read) {
                let reason = stop_reason(delta.get("stop_reason").unwrap_or("null"), router);
                edits.push(("delta", Some(delta.with(&[("stop_reason", Some(reason))]))));
            }
            if self.rounds > 1 {
                edits.push(("usage", self.total_usage(fields.get("usage"))));
            }
            sse::write_event(Some("message_delta"), &fields.with(&edits), out);
        }
        sse::write_event(Some("message_stop"), r#"{"type":"message_stop"}"#, out);
    }

    fn fail(&mut self, status: u16, body: &[u8], _router: &CallRouter, out: &mut Vec<u8>) {
        let text = std::str::from_utf8(body).unwrap_or_default();
        let error = Fields::read(text).filter(|fields| fields.get("error").is_some());
        let error = error.map(|fields| fields.with(&[("type", Some(r#""error""#.into()))]));
        let error = error.unwrap_or_else(|| {
            format!(
                r#"{{"type":"error","error":{{"type":"api_error","message":"the upstream answered {status}"}}}}"#
            )
        });
        sse::write_event(Some("error"), &json::compact(&error), out);
    }
}

impl MessagesStreamMerger {
    /// Forwards the start of the message, but only in the first round.
    fn on_message_start(&mut self, event: &Event, fields: &Fields<'_>, out: &mut Vec<u8>) {
        let message = fields.get("message").and_then(Fields::read);
        self.record_usage(message.as_ref().and_then(|message| message.get("usage")));
        if self.rounds == 1 {
            out.extend_from_slice(event.raw());
        }
    }

    fn on_block_start(
        &mut self,
        event: &Event,
        fields: &Fields<'_>,
        router: &mut CallRouter,
        out: &mut Vec<u8>,
    ) {
        self.decide_calls(router, out);
        let raw = fields.get("content_block").unwrap_or("null");
        let mut block = StreamedBlock::new(index(fields), raw);
        block.state = self.initial_state(&block, raw, router);
        block.count_start(&mut router.budget);
        if let BlockState::Forwarded(index) = block.state {
            self.forwarded_blocks = index.saturating_add(1);
            forward(event, "content_block_start", fields, index, out);
        } else {
            self.unchanged = false;
        }
        self.round.blocks.push(block);
    }

    fn initial_state(
        &self,
        block: &StreamedBlock,
        raw: &str,
        router: &mut CallRouter,
    ) -> BlockState {
        let read = content::ContentBlock::read(raw);
        if let Some(search) =
            read.as_ref().filter(|read| read.is_search() && router.is_hosted_search())
        {
            router.note_hidden_output();
            router.note_found_tools(search.found_tools());
            return BlockState::Decided;
        }
        if let Some((_, name)) = &block.call {
            // A call after a held call must wait, so that the client gets the calls in order.
            let waits = self.round.blocks.iter().any(|block| block.state == BlockState::Held);
            if waits || router.route(name) == CallRoute::Hold {
                return BlockState::Held;
            }
        } else if let Some(text) = read.filter(|read| read.kind == "text") {
            router.note_text(&text.fields.string("text").unwrap_or_default());
        }
        // As long as everything is forwarded unchanged, the upstream's indices are used.
        let upstream_index =
            block.index.filter(|_| self.unchanged).and_then(|index| index.try_into().ok());
        BlockState::Forwarded(upstream_index.unwrap_or(self.forwarded_blocks))
    }

    /// Processes a delta of a block, or the end of a block.
    fn on_block_event(
        &mut self,
        event: &Event,
        kind: &str,
        fields: &Fields<'_>,
        router: &mut CallRouter,
        out: &mut Vec<u8>,
    ) {
        let index = index(fields);
        let Some(block) = self.round.blocks.iter_mut().rfind(|block| block.index == index) else {
            // The upstream has not started a block with this index, so the event is forwarded unchanged.
            out.extend_from_slice(event.raw());
            return;
        };
        block.complete |= kind == "content_block_stop";
        if let Some(delta) = fields.get("delta").and_then(Fields::read) {
            if delta.string("type").as_deref() == Some("text_delta") {
                router.note_text(&delta.string("text").unwrap_or_default());
            }
            block.add_delta(&delta, &mut router.budget);
        }
        if let BlockState::Forwarded(index) = block.state {
            forward(event, kind, fields, index, out);
        }
    }

    fn on_message_delta(
        &mut self,
        event: &Event,
        fields: &Fields<'_>,
        router: &mut CallRouter,
        out: &mut Vec<u8>,
    ) {
        self.record_usage(fields.get("usage"));
        let delta = fields.get("delta").and_then(Fields::read);
        let reason = delta.and_then(|delta| delta.string("stop_reason"));
        if reason.is_some() {
            (self.round.ended, self.round.reason) = (true, reason.clone());
            self.decide_calls(router, out);
            self.unchanged &= round_end(reason.as_deref(), router) != RoundEnd::Paused;
        }
        if self.unchanged {
            out.extend_from_slice(event.raw());
        } else if reason.is_some() || self.held_delta.is_none() {
            self.held_delta = Some(fields.with(&[]));
        }
    }

    /// Decides about complete calls, in order. A call is complete at the end of its block, or when the round
    /// has ended. If the round was truncated, held calls are dropped.
    fn decide_calls(&mut self, router: &mut CallRouter, out: &mut Vec<u8>) {
        let ended = self.round.ended;
        let truncated =
            ended && round_end(self.round.reason.as_deref(), router) == RoundEnd::Truncated;
        for block in &mut self.round.blocks {
            let Some((id, name)) = block.call.clone() else { continue };
            if matches!(block.state, BlockState::Decided | BlockState::Dropped) || block.recorded {
                continue;
            }
            if !block.complete && !ended {
                break;
            }
            let (id, input) = (id.as_deref(), block.input());
            if let BlockState::Forwarded(_) = block.state {
                router.note_forwarded_call(id, &name, &input);
                block.recorded = true;
                continue;
            }
            if truncated {
                block.state = BlockState::Dropped;
                continue;
            }
            block.state = BlockState::Decided;
            let resolved = if router.route(&name) == CallRoute::Forward {
                // The call may be forwarded unchanged. It was held only because an earlier call was held.
                router.note_forwarded_call(id, &name, &input);
                ResolvedCall::Forward { name, arguments: input }
            } else {
                router.resolve(id, &name, &input)
            };
            if let ResolvedCall::Forward { name, arguments } = resolved {
                block.write_events(self.forwarded_blocks, &name, &arguments, out);
                self.forwarded_blocks = self.forwarded_blocks.saturating_add(1);
            }
        }
    }

    fn record_usage(&mut self, used: Option<&str>) {
        let used = used.and_then(usage::parse);
        match (&mut self.round.usage, used) {
            // The number of keys is limited, because a server could add new keys in every event.
            (Some(Value::Object(known)), Some(Value::Object(later)))
                if known.len() < MAX_USAGE_KEYS =>
            {
                known.extend(later.into_iter().filter(|(_, value)| !value.is_null()));
            }
            (known @ None, Some(used)) => *known = Some(used),
            _ => {}
        }
    }

    /// Returns the total token usage of all rounds. `last` is the final usage of the last round. The total has the same
    /// keys as `last`, and always the input token counts as well, because the client has seen only the input token
    /// counts of the first round, in `message_start`.
    fn total_usage(&self, last: Option<&str>) -> Option<String> {
        let sum = self.usage.as_ref()?;
        let last = last.and_then(usage::parse);
        let Some(Value::Object(mut total)) = last else { return Some(sum.to_string()) };
        for key in ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"] {
            total.entry(key).or_insert(Value::Null);
        }
        for (key, value) in &mut total {
            *value = sum.get(key).cloned().unwrap_or(Value::Null);
        }
        total.retain(|_, value| !value.is_null());
        Some(Value::Object(total).to_string())
    }
}

/// Returns the block index in an event.
fn index(fields: &Fields<'_>) -> Option<u64> {
    fields.get("index").and_then(|raw| raw.parse().ok())
}

/// Forwards an event of a block, with the block's index in the client's message.
fn forward(event: &Event, kind: &str, fields: &Fields<'_>, index: usize, out: &mut Vec<u8>) {
    if fields.get("index").is_none_or(|raw| raw == index.to_string()) {
        out.extend_from_slice(event.raw());
    } else {
        sse::write_event(Some(kind), &fields.with(&[("index", Some(index.to_string()))]), out);
    }
}
