//! A block of the model's turn while it comes in.
//!
//! It is forwarded or held, and put together in either case: what goes back up must be whole, with
//! every field that came, known to us or not.

use toolcrib_text::json::{self, Fields};

use super::content;
use crate::budget::ResponseBudget;
use crate::limits::PART_BYTES;
use crate::sse;

/// A block under way.
#[derive(Debug)]
pub(super) struct StreamedBlock {
    /// The upstream's number for it.
    pub(super) index: Option<u64>,
    /// As it began.
    start: String,
    /// Text that came for a field of it.
    texts: Vec<(String, String)>,
    /// Whatever else came for one; the last counts.
    values: Vec<(String, String)>,
    citations: Vec<String>,
    /// The input of a call, as far as it came.
    input: String,
    /// The id and name of a call.
    pub(super) call: Option<(Option<String>, String)>,
    /// Whether its end was said.
    pub(super) complete: bool,
    /// Whether a call that was forwarded as it came is on the router.
    pub(super) recorded: bool,
    pub(super) state: BlockState,
}

/// What becomes of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockState {
    /// Forwarded under this number.
    Forwarded(usize),
    /// A call that waits until it is whole.
    Held,
    /// Decided about: a call, sent or answered, or what the client does not see.
    Decided,
    /// A call that was cut before it could be decided about. It never happened.
    Dropped,
}

impl StreamedBlock {
    /// Begins a block.
    pub(super) fn new(index: Option<u64>, start: &str) -> Self {
        let call = content::Block::read(start).and_then(|block| block.call());
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

    /// Drops how it began, if there is no room for it. Its record is then incomplete, and is not kept.
    pub(super) fn count_start(&mut self, budget: &mut ResponseBudget) {
        budget.hold(PART_BYTES);
        match self.state {
            BlockState::Forwarded(_) if !budget.copy(self.start.len()) => {
                self.start = String::new()
            }
            BlockState::Forwarded(_) => {}
            _ => budget.hold(self.start.len()),
        }
    }

    /// Adds a delta.
    pub(super) fn add_delta(&mut self, delta: &Fields<'_>, budget: &mut ResponseBudget) {
        for (key, raw) in delta.iter().filter(|(key, _)| *key != "type") {
            let size = key.len() + raw.len();
            if let BlockState::Forwarded(_) = self.state {
                // The client has it; here it is only for the record.
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

    /// The input of a call: what came for it, or what it began with.
    pub(super) fn input(&self) -> String {
        if !self.input.trim().is_empty() {
            return self.input.clone();
        }
        let start = content::Block::read(&self.start);
        start.and_then(|block| Some(block.call()?.2.to_owned())).unwrap_or_default()
    }

    /// The block as it goes back up; `None` for what the API would not take.
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
            // Half an input is none.
            let whole = serde_json::from_str::<serde::de::IgnoredAny>(&self.input).is_ok();
            edits.push(("input", Some(if whole { self.input.clone() } else { "{}".into() })));
        }
        let entry = if edits.is_empty() { self.start.clone() } else { start.with(&edits) };
        let blank = content::Block::read(&entry).is_some_and(|block| block.is_blank());
        (!blank && self.state != BlockState::Dropped).then_some(entry)
    }

    /// The events of a call that comes in one piece, under the client's number for it.
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
