//! Assembles the blocks of a streamed round.
//!
//! Both forwarded and held blocks are assembled. The next request must contain all of them completely, including fields
//! that are unknown here.

use serde_json::Value;
use toolcrib_text::json::{self, Fields};

use super::content;
use crate::budget::ResponseBudget;
use crate::limits::PART_BYTES;
use crate::sse;

/// The blocks of a round, and how it ended.
#[derive(Debug, Default)]
pub(super) struct StreamedRound {
    pub(super) started: bool,
    pub(super) blocks: Vec<StreamedBlock>,
    pub(super) reason: Option<String>,
    pub(super) ended: bool,
    /// Token usage so far. Each later count replaces the earlier one.
    pub(super) usage: Option<Value>,
}

/// A block that is being received.
#[derive(Debug)]
pub(super) struct StreamedBlock {
    /// The index of the block in the upstream's stream.
    pub(super) index: Option<u64>,
    /// The block as it was in its first event.
    start: String,
    /// For each field, the text that deltas appended to it.
    texts: Vec<(String, String)>,
    /// For each field, the last value that is not text and was sent in a delta.
    values: Vec<(String, String)>,
    citations: Vec<String>,
    /// The part of a call's input that was received in deltas.
    input: String,
    /// The id and name of the call, if the block is a call.
    pub(super) call: Option<(Option<String>, String)>,
    /// Whether the end of the block was received.
    pub(super) complete: bool,
    /// Whether the router was notified of a call that is forwarded as it arrives.
    pub(super) recorded: bool,
    pub(super) state: BlockState,
}

/// What happens to a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockState {
    /// The block is forwarded to the client under this index.
    Forwarded(usize),
    /// The block is a call that is held until it is complete.
    Held,
    /// The block is a call that was held and has now been forwarded or answered, or another block that is hidden from
    /// the client.
    Decided,
    /// The block is a held call of a truncated round. It is removed from the turn.
    Dropped,
}

impl StreamedBlock {
    pub(super) fn new(index: Option<u64>, start: &str) -> Self {
        let call = content::ContentBlock::read(start).and_then(|block| block.call());
        Self {
            index,
            start: start.to_owned(),
            texts: Vec::new(),
            values: Vec::new(),
            citations: Vec::new(),
            input: String::new(),
            call: call.map(|(id, name, _)| (id, name)),
            complete: false,
            recorded: false,
            state: BlockState::Decided,
        }
    }

    /// Counts the start of the block towards the limits. If the limit for copies is exceeded, the start is discarded.
    /// The record is then incomplete and is not stored.
    pub(super) fn count_start(&mut self, budget: &mut ResponseBudget) {
        budget.hold(PART_BYTES);
        match self.state {
            BlockState::Forwarded(_) if !budget.copy(self.start.len()) => {
                self.start = String::new();
            }
            BlockState::Forwarded(_) => {}
            _ => budget.hold(self.start.len()),
        }
    }

    /// Adds the fields of a delta to the block.
    pub(super) fn add_delta(&mut self, delta: &Fields<'_>, budget: &mut ResponseBudget) {
        for (key, raw) in delta.iter().filter(|(key, _)| *key != "type") {
            let size = key.len() + raw.len();
            if let BlockState::Forwarded(_) = self.state {
                // The client gets this data as it arrives. The copy is only for the record.
                if !budget.copy(size) {
                    continue;
                }
            } else {
                budget.hold_arguments(self.input.len() + size, size);
            }
            match (key, serde_json::from_str::<String>(raw)) {
                ("partial_json", Ok(text)) => self.input.push_str(&text),
                ("citation", _) => self.citations.push(raw.to_owned()),
                (_, Ok(text)) => match self.texts.iter_mut().find(|(known, _)| known == key) {
                    Some((_, known)) => known.push_str(&text),
                    None => self.texts.push((key.to_owned(), text)),
                },
                _ if raw == "null" => {}
                _ => {
                    self.values.retain(|(known, _)| known != key);
                    self.values.push((key.to_owned(), raw.to_owned()));
                }
            }
        }
    }

    /// Returns the input of a call: the pieces received in deltas or, if there are none, the input in the block's first
    /// event.
    pub(super) fn input(&self) -> String {
        if !self.input.trim().is_empty() {
            return self.input.clone();
        }
        let start = content::ContentBlock::read(&self.start);
        start.and_then(|block| Some(block.call()?.2.to_owned())).unwrap_or_default()
    }

    /// Returns the block for the history entry. Returns `None` for a dropped call, or for a block that the API would
    /// reject.
    pub(super) fn entry(&self) -> Option<String> {
        let start = Fields::read(&self.start)?;
        let mut edits: Vec<(&str, Option<String>)> = Vec::new();
        for (key, more) in &self.texts {
            let before = start.string(key).unwrap_or_default();
            edits.push((key, Some(json::quote(&(before + more)))));
        }
        edits.extend(self.values.iter().map(|(key, raw)| (key.as_str(), Some(raw.clone()))));
        if !self.citations.is_empty() {
            let before = start.get("citations").and_then(content::items).unwrap_or_default();
            let all = before.into_iter().chain(self.citations.iter().map(String::as_str));
            let all: Vec<String> = all.map(str::to_owned).collect();
            edits.push(("citations", Some(content::json_list(&all))));
        }
        if !self.input.trim().is_empty() {
            // An input that is not valid JSON, because it is incomplete, is replaced by an empty object.
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&self.input).is_ok();
            edits.push(("input", Some(if is_json { self.input.clone() } else { "{}".into() })));
        }
        let entry = if edits.is_empty() { self.start.clone() } else { start.with(&edits) };
        let blank = content::ContentBlock::read(&entry).is_some_and(|block| block.is_blank());
        (!blank && self.state != BlockState::Dropped).then_some(entry)
    }

    /// Writes the events of a complete call. `index` is the block's index in the client's message.
    pub(super) fn write_events(
        &self,
        index: usize,
        name: &str,
        arguments: &str,
        out: &mut Vec<u8>,
    ) {
        let Some(start) = Fields::read(&self.start) else { return };
        let edits = [("name", Some(json::quote(name))), ("input", Some("{}".to_owned()))];
        let block = start.with(&edits);
        let mut event = |kind: &str, rest: &str| {
            let data = format!(r#"{{"type":"{kind}","index":{index}{rest}}}"#);
            sse::write_event(Some(kind), &data, out);
        };
        event("content_block_start", &format!(r#","content_block":{block}"#));
        let delta = json::quote(arguments);
        let delta = format!(r#","delta":{{"type":"input_json_delta","partial_json":{delta}}}"#);
        event("content_block_delta", &delta);
        event("content_block_stop", "");
    }
}
