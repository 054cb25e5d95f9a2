//! Splits a stream into server-sent events without changing their bytes.
//!
//! A proxy forwards most events unchanged, including comments, ids, unknown fields and unusual line endings. So an
//! [`Event`] keeps its raw bytes, up to and including the blank line that ends it. Its name and data are parsed on
//! demand. Ordinary event-stream parsers do not keep the raw bytes.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};

use crate::parsed_size::parsed_size;

/// Maximum size of one event, in bytes. Large enough for events that contain images.
pub const MAX_EVENT_BYTES: usize = 32 << 20;

/// The error for an event that is larger than [`MAX_EVENT_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the upstream is larger than {MAX_EVENT_BYTES} bytes")]
pub struct EventTooLarge;

/// Splits a stream of bytes into events.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: BytesMut,
    /// The position in the buffer at which the current line begins.
    line_start: usize,
    /// The position up to which the buffer was searched for the end of the current line.
    scanned: usize,
    /// Estimated memory of the buffer once it is parsed, in bytes.
    parsed_size: usize,
}

impl Decoder {
    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        self.parsed_size += parsed_size(bytes);
    }

    /// Returns the next complete event, if there is one.
    pub fn next_event(&mut self) -> Result<Option<Event>, EventTooLarge> {
        while let Some(found) = memchr::memchr2(b'\n', b'\r', &self.buffer[self.scanned..]) {
            let end = self.scanned + found;
            let after = match (self.buffer[end], self.buffer.get(end + 1)) {
                (b'\r', Some(b'\n')) => end + 2,
                // The carriage return may be the first half of a CRLF whose line feed has not been received yet.
                (b'\r', None) => {
                    self.scanned = end;
                    return Ok(None);
                }
                _ => end + 1,
            };
            let blank = end == self.line_start;
            (self.line_start, self.scanned) = (after, after);
            if blank {
                (self.line_start, self.scanned) = (0, 0);
                let raw = self.buffer.split_to(after).freeze();
                self.parsed_size -= parsed_size(&raw);
                return Ok(Some(Event { raw }));
            }
        }
        self.scanned = self.buffer.len();
        if self.buffer.len() > MAX_EVENT_BYTES { Err(EventTooLarge) } else { Ok(None) }
    }

    /// Returns the estimated memory of the incomplete event, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.parsed_size
    }

    /// Removes and returns the bytes after the last complete event.
    pub fn take_rest(&mut self) -> Bytes {
        (self.line_start, self.scanned, self.parsed_size) = (0, 0, 0);
        self.buffer.split().freeze()
    }
}

/// One event, as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    raw: Bytes,
}

impl Event {
    /// Creates an event from its bytes. A final blank line is not required.
    pub fn from_bytes(raw: Bytes) -> Self {
        Self { raw }
    }

    /// Returns the raw bytes, including the final blank line.
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// Returns the value of the `event` field.
    pub fn name(&self) -> Option<&str> {
        self.values("event").last()
    }

    /// Returns the data of the event. Returns `None` if the event has no `data` field, or if it is not UTF-8.
    pub fn data(&self) -> Option<Cow<'_, str>> {
        let mut values = self.values("data");
        let first = values.next()?;
        let mut data = Cow::Borrowed(first);
        for more in values {
            let data = data.to_mut();
            data.push('\n');
            data.push_str(more);
        }
        Some(data)
    }

    /// Whether every line is a comment or a field that the standard defines. Event-stream parsers ignore all other
    /// lines, but a client might not parse the response as an event stream.
    pub(crate) fn has_only_fields(&self) -> bool {
        let Ok(text) = std::str::from_utf8(&self.raw) else { return false };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        lines(text).all(|line| {
            let field = line.split(':').next().unwrap_or_default();
            matches!(field, "" | "data" | "event" | "id" | "retry")
        })
    }

    fn values<'a>(&'a self, field: &'a str) -> impl Iterator<Item = &'a str> {
        let text = std::str::from_utf8(&self.raw).unwrap_or_default();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        lines(text).filter_map(move |line| {
            let value = line.strip_prefix(field)?;
            if value.is_empty() {
                return Some(value);
            }
            let value = value.strip_prefix(':')?;
            Some(value.strip_prefix(' ').unwrap_or(value))
        })
    }
}

/// Splits text into lines at `\n`, `\r` or both. A CRLF yields an extra empty line. The text is split at `\n` first and
/// each part at `\r`, because this is many times faster than searching for both at once, and an event may have a
/// megabyte.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.split('\r'))
}

/// Writes an event with this data. `name` is set if the API names its events.
pub fn write_event(name: Option<&str>, data: &str, out: &mut Vec<u8>) {
    if let Some(name) = name {
        out.extend_from_slice(b"event: ");
        out.extend_from_slice(name.as_bytes());
        out.push(b'\n');
    }
    // JSON may have several lines. Each line becomes a `data` field.
    for line in lines(data) {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&[u8]]) -> (Vec<Vec<u8>>, Vec<u8>) {
        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.push(chunk);
            while let Some(event) = decoder.next_event().unwrap() {
                events.push(event.raw().to_vec());
            }
        }
        (events, decoder.take_rest().to_vec())
    }

    #[test]
    fn events_keep_their_bytes_with_any_line_ending() {
        let text =
            b": hi\n\nevent: a\r\ndata: 1\r\n\r\nid: 7\rdata:2\r\r\ndata: 3\ndata: 4\n\nhalf";
        let (events, rest) = split(&[text]);
        assert_eq!(
            events,
            [
                &b": hi\n\n"[..],
                b"event: a\r\ndata: 1\r\n\r\n",
                b"id: 7\rdata:2\r\r\n",
                b"data: 3\ndata: 4\n\n"
            ]
        );
        assert_eq!(rest, b"half");
        for at in 0..text.len() {
            assert_eq!(split(&[&text[..at], &text[at..]]), (events.clone(), rest.clone()), "{at}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(split(&bytes), (events, rest));
    }

    #[test]
    fn names_and_data_are_parsed_by_the_standard() {
        let event = |text: &str| Event { raw: Bytes::copy_from_slice(text.as_bytes()) };
        let read = |text: &str| {
            let event = event(text);
            (event.name().map(str::to_owned), event.data().map(Cow::into_owned))
        };
        let some = |name: Option<&str>, data: Option<&str>| {
            (name.map(str::to_owned), data.map(str::to_owned))
        };
        assert_eq!(read("event: a\ndata: {}\n\n"), some(Some("a"), Some("{}")));
        assert_eq!(read("\u{feff}data:  x\r\ndata:y\r\n\r\n"), some(None, Some(" x\ny")));
        assert_eq!(read(": ping\n\n"), some(None, None));
        assert_eq!(read("data\n\n"), some(None, Some("")));
        assert_eq!(read("database: 1\n\n"), some(None, None));
    }

    #[test]
    fn written_events_can_be_read() {
        let mut out = Vec::new();
        write_event(Some("x"), "{\n}", &mut out);
        assert_eq!(out, b"event: x\ndata: {\ndata: }\n\n");
        let (events, rest) = split(&[&out]);
        assert_eq!((events.len(), rest.len()), (1, 0));
    }
}
