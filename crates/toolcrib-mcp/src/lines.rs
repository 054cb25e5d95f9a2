//! Splits a stream of bytes into lines, the framing of MCP over stdio.
//!
//! A server may send anything: half a line, a gigabyte without a newline, a byte order mark, CRLF. [`LineSplitter`]
//! buffers at most one line of at most `limit` bytes, reports a longer line once, and continues with the next. It
//! does no I/O, and its events do not depend on how the bytes are split into chunks. It does not check whether a line
//! is UTF-8 or JSON.

use memchr::memchr;

/// Default for the maximum length of a line, in bytes. It is 8 MiB, as in Codex. rmcp allows 16 MiB.
pub const DEFAULT_LIMIT: usize = 8 << 20;

/// How many bytes of a line that is too long are returned. This is enough to find an `id` near its start.
pub const START_BYTES: usize = 512;

/// The number of bytes that may surround the content of a line: a byte order mark before it and a carriage return after
/// it.
const FRAME_BYTES: usize = BOM.len() + 1;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Maximum size of the buffer that is kept for the next line, in bytes. Without this maximum, the memory of one long
/// line would never be released.
const MAX_RETAINED_BYTES: usize = 64 << 10;

/// An event of [`LineSplitter`].
#[derive(Debug, PartialEq, Eq)]
pub enum LineEvent<'a> {
    /// A line that is not empty, without its line ending and without a byte order mark.
    Line(&'a [u8]),
    /// A line longer than the limit. It is reported once, as soon as the limit is exceeded, and the rest of the line is
    /// skipped.
    TooLong {
        /// The first [`START_BYTES`] bytes of the line, or `limit + 1` bytes if that is less.
        start: &'a [u8],
    },
}

/// Splits a stream of bytes into lines.
///
/// ```
/// # use toolcrib_mcp::lines::{LineEvent, LineSplitter};
/// let mut lines = LineSplitter::new(8);
/// let mut chunk: &[u8] = b"one\r\nfar too long\ntw";
/// assert_eq!(lines.next_event(&mut chunk), Some(LineEvent::Line(b"one")));
/// assert_eq!(lines.next_event(&mut chunk), Some(LineEvent::TooLong { start: b"far too l" }));
/// assert_eq!(lines.next_event(&mut chunk), None);
/// let mut chunk: &[u8] = b"o\n";
/// assert_eq!(lines.next_event(&mut chunk), Some(LineEvent::Line(b"two")));
/// ```
#[derive(Debug)]
pub struct LineSplitter {
    limit: usize,
    /// The beginning of the current line, if it was in an earlier chunk.
    buffer: Vec<u8>,
    /// Whether the last event borrowed from `buffer`. If so, the buffer can be cleared at the next call.
    is_event_in_buffer: bool,
    /// Whether the rest of a line that was reported as too long is being skipped.
    is_skipping: bool,
}

impl Default for LineSplitter {
    fn default() -> Self {
        Self::new(DEFAULT_LIMIT)
    }
}

impl LineSplitter {
    /// Creates a splitter for lines of at most `limit` bytes, not counting the line ending and the byte order mark.
    pub fn new(limit: usize) -> Self {
        Self { limit, buffer: Vec::new(), is_event_in_buffer: false, is_skipping: false }
    }

    /// Returns the size of the buffer, in bytes. It is at most one byte more than the limit plus [`FRAME_BYTES`].
    #[cfg(test)]
    fn buffer_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    /// Consumes `input` up to the next event, or all of it if there is none.
    ///
    /// Call this until it returns `None`, then call it with the next chunk. A line that lies within one chunk is not
    /// copied.
    pub fn next_event<'a, 'b: 'a>(&'a mut self, input: &mut &'b [u8]) -> Option<LineEvent<'a>> {
        self.clear_event();
        while !input.is_empty() {
            let (part, ended) = split_line(input);
            if self.is_skipping {
                self.is_skipping = !ended;
                continue;
            }
            let too_long = self.buffer.len() + part.len() > self.max_raw_bytes();
            if !ended && !too_long {
                self.append(part);
                return None;
            }
            self.is_skipping = !ended;
            if self.buffer.is_empty() {
                if content(part).is_empty() {
                    continue;
                }
                return Some(self.event(part));
            }
            // One byte more than the maximum is enough to know that the line is too long.
            let room = self.max_raw_bytes().saturating_add(1) - self.buffer.len();
            self.append(&part[..part.len().min(room)]);
            self.is_event_in_buffer = true;
            if content(&self.buffer).is_empty() {
                self.clear_event();
                continue;
            }
            return Some(self.event(&self.buffer));
        }
        None
    }

    /// Returns the last line of a stream that ended without a newline, or `None` if there is no such line.
    pub fn finish(&mut self) -> Option<LineEvent<'_>> {
        self.clear_event();
        self.is_skipping = false;
        self.is_event_in_buffer = true;
        if content(&self.buffer).is_empty() { None } else { Some(self.event(&self.buffer)) }
    }

    /// Returns the maximum length of a line in bytes, including a byte order mark and a carriage return. A longer line
    /// is certainly over the limit.
    fn max_raw_bytes(&self) -> usize {
        self.limit.saturating_add(FRAME_BYTES)
    }

    /// Returns how many bytes of a line that is too long are reported: [`START_BYTES`], but at most `limit + 1`,
    /// because the line may have no more bytes than that.
    fn start(&self) -> usize {
        self.limit.saturating_add(1).min(START_BYTES)
    }

    fn event<'a>(&self, raw: &'a [u8]) -> LineEvent<'a> {
        let content = content(raw);
        if content.len() > self.limit {
            LineEvent::TooLong { start: &content[..self.start()] }
        } else {
            LineEvent::Line(content)
        }
    }

    /// Appends to the buffer. The buffer's capacity is capped, because doubling it could reach twice the limit.
    fn append(&mut self, part: &[u8]) {
        let needed = self.buffer.len() + part.len();
        if needed > self.buffer.capacity() {
            let most = self.max_raw_bytes().saturating_add(1);
            let capacity = (self.buffer.capacity() * 2).min(most).max(needed);
            self.buffer.reserve_exact(capacity - self.buffer.len());
        }
        self.buffer.extend_from_slice(part);
    }

    fn clear_event(&mut self) {
        if std::mem::take(&mut self.is_event_in_buffer) {
            self.buffer.clear();
            self.buffer.shrink_to(MAX_RETAINED_BYTES);
        }
    }
}

/// Removes and returns the first line of `input`, or all of `input` if it has no newline. Also returns whether there
/// was a newline.
fn split_line<'a>(input: &mut &'a [u8]) -> (&'a [u8], bool) {
    if let Some(end) = memchr(b'\n', input) {
        let part = &input[..end];
        *input = &input[end + 1..];
        (part, true)
    } else {
        (std::mem::take(input), false)
    }
}

fn content(raw: &[u8]) -> &[u8] {
    let raw = raw.strip_prefix(BOM).unwrap_or(raw);
    raw.strip_suffix(b"\r").unwrap_or(raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, PartialEq, Eq, Clone)]
    enum Owned {
        Line(Vec<u8>),
        TooLong(Vec<u8>),
    }

    impl From<LineEvent<'_>> for Owned {
        fn from(event: LineEvent<'_>) -> Self {
            match event {
                LineEvent::Line(line) => Self::Line(line.to_vec()),
                LineEvent::TooLong { start } => Self::TooLong(start.to_vec()),
            }
        }
    }

    /// Returns all events, and the maximum size that the buffer reached.
    fn events<'a>(limit: usize, chunks: impl Iterator<Item = &'a [u8]>) -> (Vec<Owned>, usize) {
        let mut lines = LineSplitter::new(limit);
        let (mut out, mut max_buffer) = (Vec::new(), 0);
        for mut chunk in chunks {
            while let Some(event) = lines.next_event(&mut chunk) {
                out.push(event.into());
            }
            max_buffer = max_buffer.max(lines.buffer_bytes());
        }
        out.extend(lines.finish().map(Owned::from));
        (out, max_buffer)
    }

    fn line(text: &str) -> Owned {
        Owned::Line(text.into())
    }

    /// Computes the expected events in the simplest way, with all bytes in memory.
    fn expected(limit: usize, bytes: &[u8]) -> Vec<Owned> {
        bytes
            .split(|b| *b == b'\n')
            .map(content)
            .filter(|line| !line.is_empty())
            .map(|line| {
                if line.len() > limit {
                    Owned::TooLong(line[..START_BYTES.min(limit + 1)].to_vec())
                } else {
                    Owned::Line(line.to_vec())
                }
            })
            .collect()
    }

    #[test]
    fn line_endings_marks_and_empty_lines_are_removed() {
        let bytes: &[u8] = b"\xef\xbb\xbfone\r\n\n\r\n\xef\xbb\xbf\r\ntwo\n\xff\xfe\nlast";
        let all = [line("one"), line("two"), Owned::Line(b"\xff\xfe".to_vec()), line("last")];
        assert_eq!(events(8, std::iter::once(bytes)).0, all);
        assert_eq!(events(8, bytes.chunks(1)).0, all);
    }

    #[test]
    fn the_limit_is_exact() {
        for (length, fits) in [(7, true), (8, true), (9, false)] {
            let text = "x".repeat(length);
            let one = if fits { line(&text) } else { Owned::TooLong(text.clone().into()) };
            for framed in [format!("{text}\n"), format!("\u{feff}{text}\r\n"), text.clone()] {
                for size in 1..=framed.len() {
                    let (found, _) = events(8, framed.as_bytes().chunks(size));
                    assert_eq!(found, std::slice::from_ref(&one), "{framed:?} by {size}");
                }
            }
        }
    }

    #[test]
    fn lines_before_and_after_one_that_is_too_long_are_returned() {
        let long = "y".repeat(5000);
        let bytes = format!("before\n{long}\nafter\n");
        let all = [line("before"), Owned::TooLong(vec![b'y'; START_BYTES]), line("after")];
        for size in [1, 7, 1000, 1001, 8192] {
            assert_eq!(events(1000, bytes.as_bytes().chunks(size)).0, all, "by {size}");
        }
    }

    #[test]
    fn a_line_without_end_is_reported_before_it_ends() {
        let mut lines = LineSplitter::new(16);
        let mut reported = 0;
        for _ in 0..1000 {
            let mut chunk: &[u8] = b"zzzzzzzz";
            while let Some(event) = lines.next_event(&mut chunk) {
                assert_eq!(event, LineEvent::TooLong { start: &[b'z'; 17] });
                reported += 1;
            }
        }
        assert_eq!((reported, lines.finish()), (1, None));
    }

    #[test]
    fn a_large_buffer_is_released() {
        let mut lines = LineSplitter::new(1 << 20);
        let long = vec![b'a'; 1 << 20];
        assert_eq!(lines.next_event(&mut &long[..]), None);
        assert!(lines.buffer_bytes() >= 1 << 20);
        assert_eq!(lines.next_event(&mut &b"\n"[..]), Some(LineEvent::Line(&long)));
        assert_eq!(lines.next_event(&mut &b""[..]), None);
        assert!(lines.buffer_bytes() <= MAX_RETAINED_BYTES, "{}", lines.buffer_bytes());
    }

    proptest! {
        #[test]
        fn events_do_not_depend_on_chunks(
            pieces in prop::collection::vec(
                prop_oneof![
                    Just(b"\n".to_vec()),
                    Just(b"\r".to_vec()),
                    Just(b"\r\n".to_vec()),
                    Just(BOM.to_vec()),
                    Just(BOM[..2].to_vec()),
                    prop::collection::vec(any::<u8>(), 0..20),
                    (0usize..1500).prop_map(|n| vec![b'x'; n]),
                ],
                0..24,
            ),
            sizes in prop::collection::vec(1usize..40, 1..8),
            limit in prop_oneof![0usize..12, 500usize..530],
        ) {
            let bytes = pieces.concat();
            let mut rest = &bytes[..];
            let mut chunks = Vec::new();
            for size in sizes.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (chunk, after) = rest.split_at((*size).min(rest.len()));
                chunks.push(chunk);
                rest = after;
            }
            let (found, max_buffer) = events(limit, chunks.into_iter());
            prop_assert!(max_buffer <= limit + FRAME_BYTES + 1, "{max_buffer} bytes with a limit of {limit}");
            prop_assert_eq!(found, expected(limit, &bytes));
        }
    }
}
