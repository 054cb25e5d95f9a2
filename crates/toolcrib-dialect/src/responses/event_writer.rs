//! The events of one response, as they are written.
//!
//! As long as all of the upstream's events go to the client their numbers are the upstream's own. From
//! the first one that is hidden on they are counted here.

use std::borrow::Cow;
use std::ops::Range;

use toolcrib_text::json::{self, Fields};

use super::item::Item;
use crate::splice::{range_of, splice};
use crate::sse::{self, Event};

/// An event of the upstream's, read.
#[derive(Clone, Copy)]
pub(super) struct UpstreamEvent<'a> {
    pub(super) event: &'a Event,
    /// Its data, and the object in it.
    pub(super) data: &'a str,
    pub(super) fields: &'a Fields<'a>,
}

impl<'a> UpstreamEvent<'a> {
    /// The response that it carries.
    pub(super) fn response(&self) -> Option<Fields<'a>> {
        self.fields.get("response").and_then(Fields::read)
    }
}

/// Writes events, and counts them and their items.
#[derive(Debug, Default)]
pub(super) struct EventWriter {
    /// Whether what the client gets is no longer what came.
    renumbers: bool,
    /// The next number of an event; `None` with a server that does not number them.
    sequence: Option<u64>,
    /// The next index of an item.
    index: u64,
    /// Whether events have a name beside the type in their data.
    named: bool,
}

impl EventWriter {
    /// From now on the numbers are counted here.
    pub(super) fn renumber(&mut self) {
        self.renumbers = true;
    }

    pub(super) fn is_renumbering(&self) -> bool {
        self.renumbers
    }

    /// The index of the next item, which the upstream calls `theirs`.
    pub(super) fn next_index(&mut self, upstream_value: u64) -> u64 {
        let index = if self.renumbers { self.index } else { upstream_value };
        self.index = index.saturating_add(1);
        index
    }

    fn next_number(&mut self, upstream_value: u64) -> u64 {
        let number = self.sequence.filter(|_| self.renumbers).unwrap_or(upstream_value);
        self.sequence = Some(number.saturating_add(1));
        number
    }

    /// An event of the upstream's, with some places in its data changed; the bytes around the data
    /// stay. `index` is that of its item.
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
            && let Ok(upstream_value) = raw.parse::<u64>()
        {
            let own = self.next_number(upstream_value);
            if own != upstream_value {
                changes.push((range_of(data, raw), own.to_string()));
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
            // What was said before may stand on several lines, and one line has no room for it.
            (Ok(raw), Some(Cow::Borrowed(old)))
                if memchr::memchr2(b'\n', b'\r', new.as_bytes()).is_none() =>
            {
                let at = range_of(raw, old);
                out.extend_from_slice(splice(raw, vec![(at, new)]).as_bytes());
            }
            _ => sse::write_event(event.name(), &new, out),
        }
    }

    /// An event of ours: its type, its number, and more, which begins with a comma.
    pub(super) fn write_new(&mut self, kind: &str, more: &str, out: &mut Vec<u8>) {
        let number = self.sequence.map(|_| self.next_number(0));
        let number = number.map(|number| format!(r#","sequence_number":{number}"#));
        let number = number.unwrap_or_default();
        let data = format!(r#"{{"type":{}{number}{more}}}"#, json::quote(kind));
        sse::write_event(self.named.then_some(kind), &data, out);
    }

    /// All events of an item that is whole.
    pub(super) fn write_item(&mut self, index: u64, text: &str, out: &mut Vec<u8>) {
        let Some(item) = Item::read(text) else { return };
        let at = format!(r#","output_index":{index}"#);
        let begun = item.fields.with(&[
            ("arguments", Some(r#""""#.to_owned())),
            ("status", Some(r#""in_progress""#.to_owned())),
        ]);
        self.write_new("response.output_item.added", &format!(r#"{at},"item":{begun}"#), out);
        let arguments = item.fields.get("arguments").unwrap_or(r#""""#);
        let id = item.fields.get("id").map(|id| format!(r#","item_id":{id}"#)).unwrap_or_default();
        let delta = format!(r#"{id}{at},"delta":{arguments}"#);
        self.write_new("response.function_call_arguments.delta", &delta, out);
        let name = item.fields.get("name").map(|name| format!(r#","name":{name}"#));
        let whole = format!(r#"{id}{at},"arguments":{arguments}{}"#, name.unwrap_or_default());
        self.write_new("response.function_call_arguments.done", &whole, out);
        self.write_new("response.output_item.done", &format!(r#"{at},"item":{text}"#), out);
    }
}
