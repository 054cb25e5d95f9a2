//! The history of a request, divided into segments by speaker.
//!
//! Each API's reader adds the entries of a history in order. Consecutive entries of one speaker form a segment. So each
//! segment of the model is one turn of the model, in the version that the client sends back.

use std::ops::Range;

use crate::fingerprint::{FingerprintBuilder, SegmentFingerprint};

/// Who wrote an entry of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// The client, which sends user messages, tool results and system messages.
    Client,
    Model,
}

/// One entry of the history: a message, or an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HistoryEntry {
    /// The entry is this byte range of the body.
    InBody(Range<usize>),
    /// The entry has a short form in the body. This is its full form, as JSON text.
    Expanded(String),
}

/// Consecutive entries of one speaker.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) speaker: Speaker,
    pub(crate) entries: Vec<HistoryEntry>,
    /// A fingerprint of the content, independent of its formatting.
    pub(crate) fingerprint: SegmentFingerprint,
    /// The names of the tools that are called in this segment.
    pub(crate) calls: Vec<String>,
    /// The ids of the calls, in the order of `calls`.
    pub(crate) call_ids: Vec<Option<String>>,
}

impl Segment {
    /// Returns the memory that the segment takes in addition to the text of the body, in bytes.
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

    /// Adds a call of the model.
    pub(crate) fn call(&mut self, id: Option<String>, name: String, arguments: &str) {
        let id = id.filter(|id| !id.is_empty());
        self.fingerprint.call(id.as_deref(), &name, arguments);
        self.calls.push(name);
        self.call_ids.push(id);
    }

    fn finish(self) -> Segment {
        let Self { speaker, mut entries, fingerprint, calls, call_ids } = self;
        // This saves memory: a conversation may have many segments, and most of them have only one entry.
        entries.shrink_to_fit();
        Segment { speaker, entries, fingerprint: fingerprint.finish(), calls, call_ids }
    }
}

/// The parsed history of a request.
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
