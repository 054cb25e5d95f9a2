//! Writes the events of one response.
//!
//! As long as every event of the upstream is forwarded, the upstream's sequence numbers and indices are kept. From the
//! first hidden event on, new numbers and indices are assigned here.

use std::borrow::Cow;
use std::ops::Range;

use toolcrib_text::json::{self, Fields};

use super::item::Item;
use crate::splice::{range_of, splice};
use crate::sse::{self, Event};

/// A parsed event of the upstream.
#[derive(Clone, Copy)]
pub(super) struct UpstreamEvent<'a> {
    pub(super) event: &'a Event,
    /// `data` is the event's data, and `fields` are the fields of the JSON object in the data.
    pub(super) data: &'a str,
    pub(super) fields: &'a Fields<'a>,
}

impl<'a> UpstreamEvent<'a> {
    /// Returns the response object in the event, if there is one.
    pub(super) fn response(&self) -> Option<Fields<'a>> {
        self.fields.get("response").and_then(Fields::read)
    }
}

/// Writes events, and assigns sequence numbers and item indices.
#[derive(Debug, Default)]
pub(super) struct EventWriter {
    /// Whether new sequence numbers and indices are assigned, because an event was hidden or added.
    renumbers: bool,
    /// The next sequence number. `None` for a server that does not number its events.
    sequence: Option<u64>,
    /// The index of the next item.
    index: u64,
    /// Whether events have an `event` field in addition to the type in their data.
    named: bool,
}

impl EventWriter {
    /// Assigns new sequence numbers and indices from now on.
    pub(super) fn renumber(&mut self) {
        self.renumbers = true;
    }

    pub(super) fn is_renumbering(&self) -> bool {
        self.renumbers
    }

    /// Returns the index of the next item in the client's response. `upstream_index` is its index in the upstream's
    /// response.
    pub(super) fn next_index(&mut self, upstream_index: u64) -> u64 {
        let index = if self.renumbers { self.index } else { upstream_index };
        self.index = index.saturating_add(1);
        index
    }

    fn next_number(&mut self, upstream_number: u64) -> u64 {
        let number = self.sequence.filter(|_| self.renumbers).unwrap_or(upstream_number);
        self.sequence = Some(number.saturating_add(1));
        number
    }

    /// Writes an event of the upstream with `changes` applied to its data. All other bytes are kept. `index` is the
    /// item's index in the client's response.
    pub(super) fn write_edited(
        &mut self,
        upstream: UpstreamEvent<'_>,
        index: Option<u64>,
        mut changes: Vec<(Range<usize>, String)>,
        out: &mut Vec<u8>,
    ) {
        let UpstreamEvent { event, data, fields } = upstream;
        self.renumbers |= index.is_some() && !changes.is_empty();
        self.named = event.name().is_some();
        if let Some(raw) = fields.get("sequence_number")
            && let Ok(upstream_number) = raw.parse::<u64>()
        {
            let number = self.next_number(upstream_number);
            if number != upstream_number {
                changes.push((range_of(data, raw), number.to_string()));
            }
        }
        if let (Some(index), Some(raw)) = (index, fields.get("output_index"))
            && raw != index.to_string()
        {
            changes.push((range_of(data, raw), index.to_string()));
        }
        if changes.is_empty() {
            out.extend_from_slice(event.raw());
            return;
        }
        let new = splice(data, changes);
        match (std::str::from_utf8(event.raw()), event.data()) {
            // Only data on a single line can be replaced in place.
            (Ok(raw), Some(Cow::Borrowed(old)))
                if memchr::memchr2(b'\n', b'\r', new.as_bytes()).is_none() =>
            {
                let at = range_of(raw, old);
                out.extend_from_slice(splice(raw, vec![(at, new)]).as_bytes());
            }
            _ => sse::write_event(event.name(), &new, out),
        }
    }

    /// Writes a new event with this type and the next sequence number. `more` contains the other fields and begins with
    /// a comma.
    pub(super) fn write_new(&mut self, kind: &str, more: &str, out: &mut Vec<u8>) {
        let number = self.sequence.map(|_| self.next_number(0));
        let number = number.map(|number| format!(r#","sequence_number":{number}"#));
        let number = number.unwrap_or_default();
        let data = format!(r#"{{"type":{}{number}{more}}}"#, json::quote(kind));
        sse::write_event(self.named.then_some(kind), &data, out);
    }

    /// Writes all events of a complete item.
    pub(super) fn write_item(&mut self, index: u64, text: &str, out: &mut Vec<u8>) {
        let Some(item) = Item::read(text) else { return };
        let at = format!(r#","output_index":{index}"#);
        let started = item.fields.with(&[
            ("arguments", Some(r#""""#.to_owned())),
            ("status", Some(r#""in_progress""#.to_owned())),
        ]);
        self.write_new("response.output_item.added", &format!(r#"{at},"item":{started}"#), out);
        let arguments = item.fields.get("arguments").unwrap_or(r#""""#);
        let id = item.fields.get("id").map(|id| format!(r#","item_id":{id}"#)).unwrap_or_default();
        let delta = format!(r#"{id}{at},"delta":{arguments}"#);
        self.write_new("response.function_call_arguments.delta", &delta, out);
        let name = item.fields.get("name").map(|name| format!(r#","name":{name}"#));
        let done = format!(r#"{id}{at},"arguments":{arguments}{}"#, name.unwrap_or_default());
        self.write_new("response.function_call_arguments.done", &done, out);
        self.write_new("response.output_item.done", &format!(r#"{at},"item":{text}"#), out);
    }
}
