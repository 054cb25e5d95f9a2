//! JSON-RPC over stdin and stdout, without a library so that the server can also write malformed output.

use parking_lot::Mutex;
use std::io::{self, BufRead, Stdout, Write};

use serde_json::Value;

/// Number of bytes of a huge line that are written at a time.
const CHUNK: usize = 64 * 1024;

/// The lines that `--garbage` writes before each response. None of them answers a request, and a client
/// must continue to work despite them.
const NOISE: &[&[u8]] = &[
    b"Server ready, listening on stdio\n",
    b"\n",
    b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"after a BOM\"}}\r\n",
    b"\xff\xfe\xfa not text at all \xc3\x28\n",
    b"[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"in a batch\"}}]\n",
    b"{\"jsonrpc\":\"2.0\",\"id\":\"nobody asked\",\"result\":{}}\n",
    b"{\"unfinished\":\n",
];

/// Reads the next line. Returns `None` if the client has closed stdin.
pub(crate) fn read_line(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let read = input.read_until(b'\n', &mut line)?;
    Ok((read > 0).then_some(line))
}

/// Stdout, with a lock so that messages are written one at a time.
pub(crate) struct Output {
    stdout: Mutex<Stdout>,
    garbage: bool,
}

impl Output {
    pub(crate) fn new(garbage: bool) -> Self {
        Self { stdout: Mutex::new(io::stdout()), garbage }
    }

    /// Answers request `id` with `result`, which is JSON text and is written unchanged.
    pub(crate) fn result(&self, id: &Value, result: &str) {
        self.answer(|out| {
            write!(out, r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)?;
            self.end(out)
        });
    }

    pub(crate) fn error(&self, id: &Value, code: i32, message: &str) {
        let message = Value::from(message);
        self.answer(|out| {
            write!(
                out,
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#
            )?;
            self.end(out)
        });
    }

    /// Answers request `id` with a line that contains one long text. The line has `bytes` bytes, not counting the line
    /// end.
    pub(crate) fn huge(&self, id: &Value, bytes: u64) {
        let head = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#
        );
        self.filled(&head, "x", r#""}]}}"#, bytes);
    }

    /// Answers request `id` with a line of about `bytes` bytes that contains many small objects.
    pub(crate) fn tiny_objects(&self, id: &Value, bytes: u64) {
        let head = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"structuredContent":{{"x":["#
        );
        self.filled(&head, r#"{"":0},"#, "0]}}}", bytes);
    }

    /// Writes `head`, as many copies of `piece` as fit, and `tail`. The line has at most `bytes` bytes, not counting
    /// the line end.
    fn filled(&self, head: &str, piece: &str, tail: &str, bytes: u64) {
        let pieces = CHUNK / piece.len();
        let mut left =
            bytes.saturating_sub((head.len() + tail.len()) as u64) as usize / piece.len();
        self.answer(|out| {
            out.write_all(head.as_bytes())?;
            let chunk = piece.repeat(pieces);
            while left > 0 {
                let now = left.min(pieces);
                out.write_all(&chunk.as_bytes()[..now * piece.len()])?;
                left -= now;
            }
            out.write_all(tail.as_bytes())?;
            self.end(out)
        });
    }

    /// Sends `count` copies of a message, without the lines of `--garbage`. Returns `false` if the client no longer
    /// reads.
    pub(crate) fn send(&self, message: &Value, count: u64) -> bool {
        let line = format!("{message}\n");
        self.write(|out| {
            for _ in 0..count {
                out.write_all(line.as_bytes())?;
            }
            out.flush()
        })
    }

    fn answer(&self, write: impl FnOnce(&mut Stdout) -> io::Result<()>) {
        self.write(|out| {
            if self.garbage {
                for noise in NOISE {
                    out.write_all(noise)?;
                }
            }
            write(out)
        });
    }

    fn end(&self, out: &mut Stdout) -> io::Result<()> {
        out.write_all(if self.garbage { b"\r\n" } else { b"\n" })?;
        out.flush()
    }

    fn write(&self, write: impl FnOnce(&mut Stdout) -> io::Result<()>) -> bool {
        let mut out = self.stdout.lock();
        // The error itself is dropped. A client that no longer reads has also closed the server's stdin, or will soon,
        // and the server ends when its stdin is closed.
        write(&mut out).is_ok()
    }
}
