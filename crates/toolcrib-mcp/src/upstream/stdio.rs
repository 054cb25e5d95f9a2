//! The stdio transport to a server: one message per line.
//!
//! An invalid line is skipped and counted. A line that is too long is an error for the request that it answers, and
//! only for that request (see [`InboundMessages`]).

use std::io;
use std::ops::Range;
use std::sync::Arc;

use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Mutex, oneshot};

use super::inbound_messages::InboundMessages;
use super::tap::Tap;
use crate::lines::{LineEvent, LineSplitter};
use crate::raw_arguments::message_to_json;

/// Maximum number of bytes per read.
const CHUNK: usize = 64 << 10;

/// Returns the number of messages in these bytes that the SDK would see. This is used by the fuzzer.
#[cfg(feature = "fuzzing")]
pub fn messages_in(bytes: &[u8], limit: usize) -> usize {
    use futures::FutureExt as _;

    let limits = crate::config::GatewayLimits { message_bytes: limit, ..Default::default() };
    let (resource_updates, _) = tokio::sync::mpsc::channel(1);
    let secrets = super::secrets::Secrets::default();
    // Accepted requests are dropped without an answer, so that each returns its permit at once.
    let (tap, mut accepted) =
        Tap::new(Arc::default(), Arc::default(), secrets, &limits, resource_updates);
    let (input, output) = (tokio::io::empty(), tokio::io::sink());
    let mut transport = StdioTransport::new(input, output, tap, limit);
    let mut count = 0;
    for piece in bytes.chunks(CHUNK) {
        transport.chunk[..piece.len()].copy_from_slice(piece);
        transport.unread = 0..piece.len();
        while transport.next_message().now_or_never().flatten().is_some() {
            while accepted.try_recv().is_ok() {}
            count += usize::from(transport.ready.take().is_some());
        }
    }
    count
}

/// The transport that connects the SDK to the two pipes of a server.
pub(crate) struct StdioTransport<R, W> {
    input: R,
    output: Arc<Mutex<Option<W>>>,
    lines: LineSplitter,
    chunk: Vec<u8>,
    /// The part of the chunk that is not processed yet.
    unread: Range<usize>,
    messages: InboundMessages,
    /// The next message for the SDK.
    ready: Option<ServerJsonRpcMessage>,
    tap: Arc<Tap>,
}

impl<R, W> StdioTransport<R, W> {
    pub(crate) fn new(input: R, output: W, tap: Arc<Tap>, limit: usize) -> Self {
        Self {
            input,
            output: Arc::new(Mutex::new(Some(output))),
            lines: LineSplitter::new(limit),
            chunk: vec![0; CHUNK],
            unread: 0..0,
            messages: InboundMessages::new(Arc::clone(&tap), limit),
            ready: None,
            tap,
        }
    }

    /// Processes the next message, and sets `ready` if the SDK should see it. Returns `None` if the chunk has no more
    /// messages or the connection is over. No message is lost if this future is dropped while it waits.
    async fn next_message(&mut self) -> Option<()> {
        while self.messages.is_empty() {
            let mut rest = &self.chunk[self.unread.clone()];
            let event = self.lines.next_event(&mut rest);
            self.unread.start = self.unread.end - rest.len();
            match event? {
                LineEvent::Line(line) => self.ready = self.messages.push(line),
                LineEvent::TooLong { start } => self.ready = self.messages.skip_too_large(start),
            }
            if self.ready.is_some() {
                return Some(());
            }
        }
        self.ready = self.messages.inspect_next().await?;
        Some(())
    }
}

impl<R, W> Transport<RoleClient> for StdioTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let mut cancelled = self.tap.register_request(&message, |_| false);
        let output = Arc::clone(&self.output);
        let is_cancelled = cancelled
            .as_mut()
            .is_some_and(|cancelled| cancelled.try_recv() == Err(TryRecvError::Closed));
        let line = (!is_cancelled).then(|| to_line(&message));
        async move {
            // The line is `None` if the request was already cancelled.
            let Some(line) = line.transpose()? else { return Ok(()) };
            let mut output = tokio::select! {
                biased;
                output = output.lock() => output,
                // A cancelled request must not stay in memory while the server does not read.
                () = until_cancelled(cancelled) => return Ok(()),
            };
            let output = output.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            output.write_all(line.as_bytes()).await?;
            output.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            while self.next_message().await.is_some() {
                if let Some(message) = self.ready.take() {
                    return Some(message);
                }
            }
            if !self.messages.is_empty() {
                // The next message was not accepted because the server exceeded its limits, so the connection ends.
                return None;
            }
            match self.input.read(&mut self.chunk).await {
                Ok(0) | Err(_) => {
                    self.tap.close(None);
                    return None;
                }
                Ok(bytes) => self.unread = 0..bytes,
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        // The server's stdin is closed, which tells the server to exit. This does not wait for a write that is blocked
        // because the server does not read.
        if let Ok(mut output) = self.output.try_lock() {
            output.take();
        }
        self.tap.close(None);
        Ok(())
    }
}

/// Serializes a message as one line. JSON strings contain no line breaks, so any line breaks are between tokens and can
/// be replaced.
fn to_line(message: &ClientJsonRpcMessage) -> serde_json::Result<String> {
    let mut line = message_to_json(message)?;
    if line.contains(['\n', '\r']) {
        line = line.replace(['\n', '\r'], " ");
    }
    line.push('\n');
    Ok(line)
}

/// Waits until a request is cancelled, or forever if there is nothing to cancel.
pub(super) async fn until_cancelled(cancelled: Option<oneshot::Receiver<()>>) {
    match cancelled {
        Some(cancelled) => drop(cancelled.await),
        None => std::future::pending().await,
    }
}
