//! The history of a request, divided into segments by speaker.
//!
//! Each API's reader adds the entries of a history in order. Consecutive entries of one speaker form a segment, so a
//! segment of the model is one of its turns as the client sends it back.

use std::ops::Range;

use crate::fingerprint::{Fingerprint, FingerprintBuilder};

/// Who wrote an entry of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// The client: user messages, tool results, system messages.
    Client,
    /// The model.
    Model,
}

/// One entry of the history: a message, or an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HistoryEntry {
    /// The entry is this range of the body.
    InBody(Range<usize>),
    /// The full form of an entry that the body contains in a short form.
    Expanded(String),
}

/// Consecutive entries of one speaker.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) speaker: Speaker,
    pub(crate) entries: Vec<HistoryEntry>,
    /// A fingerprint of the content, independent of its formatting.
    pub(crate) fingerprint: Fingerprint,
    /// The names of the tools that are called.
    pub(crate) calls: Vec<String>,
    /// The ids of these calls.
    pub(crate) call_ids: Vec<Option<String>>,
}

impl Segment {
    /// The memory that the segment takes in addition to the text of the body, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let names = self.calls.iter().map(|name| size_of::<String>() + name.len());
        let ids = self.call_ids.iter().flatten().map(|id| size_of::<String>() + id.len());
        let entries = self.entries.len() * size_of::<HistoryEntry>();
        size_of::<Self>() + entries + names.chain(ids).sum::<usize>()
    }
}

/// A segment to which entries are being added.
#[derive(Debug)]
pub(crate) struct SegmentBuilder {
    speaker: Speaker,
    entries: Vec<HistoryEntry>,
    pub(crate) fingerprint: FingerprintBuilder,
    calls: Vec<String>,
    call_ids: Vec<Option<String>>,
}

impl SegmentBuilder {
    fn new(speaker: Speaker) -> Self {
        let fingerprint = FingerprintBuilder::default();
        Self { speaker, entries: Vec::new(), fingerprint, calls: Vec::new(), call_ids: Vec::new() }
    }

    /// Adds a call.
    pub(crate) fn call(&mut self, id: Option<String>, name: String, arguments: &str) {
        let id = id.filter(|id| !id.is_empty());
        self.fingerprint.call(id.as_deref(), &name, arguments);
        self.calls.push(name);
        self.call_ids.push(id);
    }

    fn finish(self) -> Segment {
        let Self { speaker, mut entries, fingerprint, calls, call_ids } = self;
        // Most segments have one entry, and a conversation may have many segments.
        entries.shrink_to_fit();
        Segment { speaker, entries, fingerprint: fingerprint.finish(), calls, call_ids }
    }
}

/// The history of a request after it was read.
#[derive(Debug, Default)]
pub(crate) struct ParsedHistory {
    pub(crate) segments: Vec<Segment>,
    /// Whether the history has entries that load tools.
    pub(crate) loads_tools: bool,
}

/// Builds a [`ParsedHistory`] from entries in order.
#[derive(Debug, Default)]
pub(crate) struct HistoryBuilder {
    finished: Vec<Segment>,
    open: Option<Box<SegmentBuilder>>,
}

impl HistoryBuilder {
    /// Adds an entry and returns the segment that it belongs to.
    pub(crate) fn add(&mut self, speaker: Speaker, entry: HistoryEntry) -> &mut SegmentBuilder {
        if self.open.as_ref().is_some_and(|open| open.speaker != speaker) {
            self.finished.extend(self.open.take().map(|open| open.finish()));
        }
        let segment = self.open.get_or_insert_with(|| Box::new(SegmentBuilder::new(speaker)));
        segment.entries.push(entry);
        segment
    }

    pub(crate) fn finish(mut self) -> ParsedHistory {
        self.finished.extend(self.open.take().map(|open| open.finish()));
        ParsedHistory { segments: self.finished, loads_tools: false }
    }
}
