//! The last part of a server's stderr.
//!
//! When a server crashes, its stderr usually contains the reason. All of stderr is read, so that the server never
//! blocks on it, and the last 64 KiB are kept. The text is untrusted, and is cleaned for use in an error message.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use toolcrib_text::clean::clean;

/// Maximum size of the part of a server's stderr that is kept, in bytes.
const STDERR_BYTES: usize = 64 << 10;

/// The last part of a server's stderr. Clones share the same bytes, even after the server has exited.
#[derive(Debug, Clone, Default)]
pub struct StderrTail(Arc<Mutex<Ring>>);

impl StderrTail {
    /// Returns the last `lines` non-empty lines, without control characters and escape sequences. Invalid UTF-8 is
    /// replaced.
    ///
    /// A line whose beginning was discarded is left out, unless it is the only line.
    pub fn tail(&self, lines: usize) -> String {
        let (bytes, truncated) = {
            let ring = self.0.lock();
            (ring.bytes.iter().copied().collect::<Vec<_>>(), ring.truncated)
        };
        let complete = match bytes.iter().position(|b| *b == b'\n') {
            Some(end) if truncated && end + 1 < bytes.len() => &bytes[end + 1..],
            _ => &bytes[..],
        };
        let text = String::from_utf8_lossy(complete);
        let (text, _) = clean(&text);
        let mut last: Vec<_> =
            text.lines().rev().filter(|line| !line.trim().is_empty()).take(lines).collect();
        last.reverse();
        last.join("\n")
    }

    /// Reads the pipe until end-of-file. A read error counts as end-of-file.
    pub(super) async fn drain(self, mut pipe: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; 8 << 10];
        while let Ok(read @ 1..) = pipe.read(&mut chunk).await {
            self.0.lock().push(&chunk[..read]);
        }
    }
}

#[derive(Debug, Default)]
struct Ring {
    bytes: VecDeque<u8>,
    /// Whether the oldest bytes were discarded.
    truncated: bool,
}

impl Ring {
    fn push(&mut self, chunk: &[u8]) {
        let over = (self.bytes.len() + chunk.len()).saturating_sub(STDERR_BYTES);
        self.truncated |= over > 0;
        self.bytes.drain(..over.min(self.bytes.len()));
        self.bytes.extend(&chunk[chunk.len().saturating_sub(STDERR_BYTES)..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stderr_of(chunks: &[&[u8]]) -> StderrTail {
        let stderr = StderrTail::default();
        for chunk in chunks {
            stderr.0.lock().push(chunk);
        }
        stderr
    }

    #[test]
    fn the_last_lines_are_cleaned() {
        let stderr = stderr_of(&[b"first\nsecond \x1b[31mred\x1b[0m\r\n\n", b"th\x07ird \xff\n"]);
        assert_eq!(stderr.tail(2), "second red\nthird \u{fffd}");
        assert_eq!(stderr.tail(9), "first\nsecond red\nthird \u{fffd}");
        assert_eq!(stderr.tail(0), "");
        assert_eq!(stderr_of(&[]).tail(5), "");
    }

    #[test]
    fn at_most_64_kib_are_kept() {
        for chunk in [1000, STDERR_BYTES - 1, STDERR_BYTES, STDERR_BYTES + 1, 3 * STDERR_BYTES] {
            let stderr = stderr_of(&[&vec![b'a'; chunk], &vec![b'b'; chunk], b"\nend\n"]);
            assert!(stderr.0.lock().bytes.len() <= STDERR_BYTES, "{chunk}");
            assert_eq!(stderr.tail(1), "end");
        }
    }

    #[test]
    fn a_truncated_line_is_shown_only_if_there_is_no_other() {
        let long = vec![b'a'; STDERR_BYTES];
        assert_eq!(stderr_of(&[&long, b"b\nc\n"]).tail(9), "c");
        assert_eq!(stderr_of(&[&long, b"b\n"]).tail(1).len(), STDERR_BYTES - 1);
    }
}
