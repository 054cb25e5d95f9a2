//! The last words of a server.
//!
//! When a server dies, what it wrote to stderr is usually the reason. All of it is read, so that the
//! server never waits for us, and the last 64 KiB are kept. It is text from a stranger: it leaves here
//! cleaned, fit for an error message.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _};
use toolcrib_text::clean::clean;

/// How much of a server's stderr is kept, in bytes.
pub const STDERR_BYTES: usize = 64 << 10;

/// The end of what a server wrote to its stderr. Clones see the same bytes, also after the server is gone.
#[derive(Debug, Clone, Default)]
pub struct StderrTail(Arc<Mutex<Ring>>);

impl StderrTail {
    /// The last `lines` lines, without empty ones, without controls and escapes, invalid UTF-8 replaced.
    ///
    /// A line whose beginning is no longer kept is left out, unless it is all there is.
    pub fn tail(&self, lines: usize) -> String {
        let (bytes, cut) = {
            let ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            (ring.bytes.iter().copied().collect::<Vec<_>>(), ring.cut)
        };
        let whole = match bytes.iter().position(|b| *b == b'\n') {
            Some(end) if cut && end + 1 < bytes.len() => &bytes[end + 1..],
            _ => &bytes[..],
        };
        let text = String::from_utf8_lossy(whole);
        let (text, _) = clean(&text);
        let mut last: Vec<_> =
            text.lines().rev().filter(|line| !line.trim().is_empty()).take(lines).collect();
        last.reverse();
        last.join("\n")
    }

    /// Reads to the end, whatever comes. A read that errs is the end too: there is nobody to tell.
    pub(super) async fn drain(self, mut pipe: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; 8 << 10];
        while let Ok(read @ 1..) = pipe.read(&mut chunk).await {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(&chunk[..read]);
        }
    }
}

#[derive(Debug, Default)]
struct Ring {
    bytes: VecDeque<u8>,
    /// Whether anything was thrown away.
    cut: bool,
}

impl Ring {
    fn push(&mut self, chunk: &[u8]) {
        let over = (self.bytes.len() + chunk.len()).saturating_sub(STDERR_BYTES);
        self.cut |= over > 0;
        self.bytes.drain(..over.min(self.bytes.len()));
        self.bytes.extend(&chunk[chunk.len().saturating_sub(STDERR_BYTES)..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(chunks: &[&[u8]]) -> StderrTail {
        let stderr = StderrTail::default();
        for chunk in chunks {
            stderr.0.lock().unwrap().push(chunk);
        }
        stderr
    }

    #[test]
    fn the_last_lines_come_out_clean() {
        let stderr = heard(&[b"first\nsecond \x1b[31mred\x1b[0m\r\n\n", b"th\x07ird \xff\n"]);
        assert_eq!(stderr.tail(2), "second red\nthird \u{fffd}");
        assert_eq!(stderr.tail(9), "first\nsecond red\nthird \u{fffd}");
        assert_eq!(stderr.tail(0), "");
        assert_eq!(heard(&[]).tail(5), "");
    }

    #[test]
    fn never_more_than_the_ring_is_kept() {
        for chunk in [1000, STDERR_BYTES - 1, STDERR_BYTES, STDERR_BYTES + 1, 3 * STDERR_BYTES] {
            let stderr = heard(&[&vec![b'a'; chunk], &vec![b'b'; chunk], b"\nend\n"]);
            assert!(stderr.0.lock().unwrap().bytes.len() <= STDERR_BYTES, "{chunk}");
            assert_eq!(stderr.tail(1), "end");
        }
    }

    #[test]
    fn half_a_line_is_shown_only_when_there_is_no_other() {
        let long = vec![b'a'; STDERR_BYTES];
        assert_eq!(heard(&[&long, b"b\nc\n"]).tail(9), "c");
        assert_eq!(heard(&[&long, b"b\n"]).tail(1).len(), STDERR_BYTES - 1);
    }
}
