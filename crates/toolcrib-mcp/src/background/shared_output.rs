//! The output to one client of a background gateway, which stays usable after the client's session has ended.
//!
//! The SDK takes the output of a session and drops it at the end. A background gateway then still has to tell the
//! client's relay why the session ended.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::net::unix::OwnedWriteHalf;

use super::relay::{ENDED, LEAVING, STOPPING};

/// The output to one client. Clones write to the same stream.
#[derive(Debug, Clone)]
pub struct SharedOutput(Arc<Mutex<Output>>);

#[derive(Debug)]
struct Output {
    stream: OwnedWriteHalf,
    /// Whether everything that was written so far ends with a line break.
    is_line_complete: bool,
}

impl SharedOutput {
    /// Creates the output of a client.
    pub fn new(stream: OwnedWriteHalf) -> Self {
        Self(Arc::new(Mutex::new(Output { stream, is_line_complete: true })))
    }

    /// Tells the relay that the gateway stops because the user told it to.
    pub async fn send_stopping(&mut self) {
        self.send_last(&json!({"jsonrpc": "2.0", "method": STOPPING})).await;
    }

    /// Tells the relay that another gateway must serve the client.
    pub async fn send_leaving(&mut self) {
        self.send_last(&json!({"jsonrpc": "2.0", "method": LEAVING})).await;
    }

    /// Tells the relay that the session has ended, and why.
    pub async fn send_ended(&mut self, reason: &str) {
        let params = json!({"reason": reason});
        self.send_last(&json!({"jsonrpc": "2.0", "method": ENDED, "params": params})).await;
    }

    /// Writes a message, unless the last one was not completely written. Errors are ignored, because the relay may have
    /// ended.
    async fn send_last(&mut self, message: &Value) {
        if self.0.lock().is_line_complete {
            let _ = self.write_all(format!("{message}\n").as_bytes()).await;
        }
    }
}

impl AsyncWrite for SharedOutput {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut output = self.0.lock();
        let written = Pin::new(&mut output.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(length @ 1..)) = &written {
            output.is_line_complete = bytes[length - 1] == b'\n';
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.lock().stream).poll_flush(context)
    }

    /// Does nothing. The stream is closed when the last clone is dropped.
    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
