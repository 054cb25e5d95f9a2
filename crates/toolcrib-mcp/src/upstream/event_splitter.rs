//! Splits the event stream of an HTTP+SSE server into events of limited size.
//!
//! All answers of such a server arrive on one stream, so one event that is too large must not end the stream: it is
//! reported once, skipped, and the next event is read. The `sse-stream` crate cannot skip an event, so it serves only
//! Streamable HTTP, where each call has its own stream. This does no I/O, and its events do not depend on how the bytes
//! are split into chunks.

use memchr::memchr2;

use crate::lines::START_BYTES;

/// Maximum size of a buffer that is kept for the next event, in bytes. Without this maximum, the memory of one large
/// event would never be released.
const MAX_RETAINED_BYTES: usize = 64 << 10;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Returns the name and the data of each event in these chunks, or `None` for an event that is too large. This is used by
/// the fuzzer.
#[cfg(feature = "fuzzing")]
pub fn events_in<'a>(
    chunks: impl Iterator<Item = &'a [u8]>,
    limit: usize,
) -> Vec<Option<(String, Vec<u8>)>> {
    let mut splitter = EventSplitter::new(limit);
    let mut events = Vec::new();
    for mut chunk in chunks {
        while let Some(event) = splitter.next_event(&mut chunk) {
            events.push(match event {
                StreamEvent::Event { name, data } => Some((name, data)),
                StreamEvent::TooLarge { .. } => None,
            });
        }
    }
    events
}

/// An event of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamEvent {
    /// An event with its name, which is empty if the server sent none, and its data.
    Event { name: String, data: Vec<u8> },
    /// An event that is larger than the limit. It is reported as soon as the limit is exceeded.
    TooLarge {
        /// The first bytes of its data, which may contain the id of a message.
        start: Vec<u8>,
    },
}

/// Splits a stream of bytes into events.
#[derive(Debug)]
pub(super) struct EventSplitter {
    /// Maximum size of an event's name and data, and of each line, in bytes.
    limit: usize,
    /// The beginning of the current line.
    line: Vec<u8>,
    name: Vec<u8>,
    /// The data lines of the current event, each followed by a newline.
    data: Vec<u8>,
    skipping: Skipping,
    /// Whether the last line ended with a carriage return. A newline after it belongs to the same line ending.
    after_return: bool,
    /// Whether no line has ended yet. The first line may begin with a byte order mark.
    is_first_line: bool,
}

/// Whether the rest of an event that was reported as too large is being skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Skipping {
    No,
    /// The current line has no bytes so far. If it ends now, so does the event.
    EmptyLine,
    /// The current line has bytes, which are not in `line`.
    Line,
}

impl EventSplitter {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            skipping: Skipping::No,
            after_return: false,
            is_first_line: true,
        }
    }

    /// Consumes `input` up to the next event, or all of it if there is none.
    pub(super) fn next_event(&mut self, input: &mut &[u8]) -> Option<StreamEvent> {
        while let [first, rest @ ..] = *input {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                *input = rest;
                continue;
            }
            let end = memchr2(b'\n', b'\r', input);
            let part = &input[..end.unwrap_or(input.len())];
            if self.skipping == Skipping::No {
                // One byte more than the limit is enough to know that the event is too large.
                let room = self.limit.saturating_add(1).saturating_sub(self.size());
                self.line.extend_from_slice(&part[..part.len().min(room)]);
                if self.size() > self.limit {
                    let start = self.start_of_data();
                    self.clear();
                    self.skipping = Skipping::Line;
                    // The rest of the line is skipped by the next call.
                    *input = &input[part.len()..];
                    return Some(StreamEvent::TooLarge { start });
                }
            } else if !part.is_empty() {
                self.skipping = Skipping::Line;
            }
            let Some(end) = end else {
                *input = &[];
                return None;
            };
            self.after_return = input[end] == b'\r';
            *input = &input[end + 1..];
            if let Some(event) = self.end_line() {
                return Some(event);
            }
        }
        None
    }

    fn size(&self) -> usize {
        self.line.len() + self.name.len() + self.data.len()
    }

    /// Ends the current line. An empty line ends the event.
    fn end_line(&mut self) -> Option<StreamEvent> {
        match self.skipping {
            Skipping::No if self.line.is_empty() => return self.end_event(),
            Skipping::No => {}
            Skipping::EmptyLine => {
                self.skipping = Skipping::No;
                return None;
            }
            Skipping::Line => {
                self.skipping = Skipping::EmptyLine;
                return None;
            }
        }
        let mut line = &*self.line;
        if std::mem::take(&mut self.is_first_line) {
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        match field(line) {
            (b"data", value) => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            (b"event", value) => self.name = value.to_vec(),
            // Comments and all other fields are ignored. A stream of this transport cannot be resumed, so ids have no
            // use.
            _ => {}
        }
        self.line.clear();
        self.line.shrink_to(MAX_RETAINED_BYTES);
        None
    }

    fn end_event(&mut self) -> Option<StreamEvent> {
        let name = String::from_utf8_lossy(&std::mem::take(&mut self.name)).into_owned();
        let mut data = std::mem::take(&mut self.data);
        // An event without data is not an event.
        data.pop()?;
        Some(StreamEvent::Event { name, data })
    }

    fn clear(&mut self) {
        self.line = Vec::new();
        self.name = Vec::new();
        self.data = Vec::new();
    }

    /// Returns the first bytes of the event's data.
    fn start_of_data(&self) -> Vec<u8> {
        let data = match field(&self.line) {
            _ if !self.data.is_empty() => &self.data,
            (b"data", value) => value,
            _ => &[],
        };
        data[..data.len().min(START_BYTES)].to_vec()
    }
}

/// Splits a line into the name of a field and its value.
fn field(line: &[u8]) -> (&[u8], &[u8]) {
    let Some(colon) = line.iter().position(|byte| *byte == b':') else { return (line, &[]) };
    let value = &line[colon + 1..];
    (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event(name: &str, data: &str) -> StreamEvent {
        StreamEvent::Event { name: name.into(), data: data.into() }
    }

    fn split(limit: usize, chunks: &[&[u8]]) -> Vec<StreamEvent> {
        let mut splitter = EventSplitter::new(limit);
        let mut events = Vec::new();
        for chunk in chunks {
            let mut chunk = *chunk;
            events.extend(std::iter::from_fn(|| splitter.next_event(&mut chunk)));
            assert!(splitter.size() <= limit + 2, "{splitter:?}");
        }
        events
    }

    #[test]
    fn events_end_with_an_empty_line_of_any_line_ending() {
        let stream = "\u{feff}event: endpoint\ndata: /post\n\n: a comment\r\ndata:{}\r\ndata:  x\r\n\r\n\
                      retry: 1\rid: 7\rdata: y\r\revent: no data\n\ndata\n\n";
        let expected =
            [event("endpoint", "/post"), event("", "{}\n x"), event("", "y"), event("", "")];
        assert_eq!(split(100, &[stream.as_bytes()]), expected);
    }

    #[test]
    fn an_event_over_the_limit_is_reported_once_and_skipped() {
        let limit = "data: 12345678".len();
        let stream =
            "data: 12345678\n\ndata: 123456789\nmore\n\ndata: 1234567\ndata: 8\n\ndata: last\n\n";
        let expected = [
            event("", "12345678"),
            StreamEvent::TooLarge { start: "123456789".into() },
            StreamEvent::TooLarge { start: "1234567\n".into() },
            event("", "last"),
        ];
        assert_eq!(split(limit, &[stream.as_bytes()]), expected);
    }

    #[test]
    fn comments_may_go_on_forever_and_one_endless_line_is_reported_once() {
        let heartbeats = ": still here\n".repeat(1_000);
        assert_eq!(split(20, &[heartbeats.as_bytes(), &b"data: x\n\n"[..]]), [event("", "x")]);
        let endless = vec![b'x'; 1_000];
        assert_eq!(split(20, &[&*endless; 9]), [StreamEvent::TooLarge { start: Vec::new() }]);
    }

    proptest! {
        #[test]
        fn events_do_not_depend_on_chunks(
            stream in "(data: ?|event:|:|a|bc|\n|\r|\r\n|\n\n){0,60}",
            cuts in prop::collection::vec(0_usize..200, 0..6),
        ) {
            let whole = split(12, &[stream.as_bytes()]);
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (stream.len() + 1)).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> =
                cuts.windows(2).map(|pair| &stream.as_bytes()[pair[0]..pair[1]]).collect();
            prop_assert_eq!(split(12, &chunks), whole);
        }
    }
}
