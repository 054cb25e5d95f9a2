//! What a client says on stdio: lines within the limit, the arguments of calls kept as text, and the end noticed.
//!
//! The SDK drops a line that is too long, and its client would wait for ever. Here such a request is
//! replaced by a short one with its id, which is answered with an error.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use rmcp::model::{ClientRequest, GetExtensions as _, JsonRpcMessage};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

use crate::arguments::Unparsed;
use crate::gateway::TOO_LARGE;
use crate::lines::{Event, Lines};
use crate::request_id::early_id;

/// Bytes read at once.
const CHUNK: usize = 16 << 10;

/// The lines of one client.
pub(super) struct Heard<R> {
    input: R,
    lines: Lines,
    chunk: Box<[u8]>,
    /// Lines that are to be read, and how much of them was.
    ready: Vec<u8>,
    read: usize,
    arguments: Unparsed,
    ended: CancellationToken,
}

impl<R> Heard<R> {
    /// Lines of at most `limit` bytes; `ended` is cancelled when there are no more.
    pub(super) fn new(
        input: R,
        limit: usize,
        arguments: Unparsed,
        ended: CancellationToken,
    ) -> Self {
        let chunk = vec![0; CHUNK].into();
        let lines = Lines::new(limit);
        Self { input, lines, chunk, ready: Vec::new(), read: 0, arguments, ended }
    }

    fn eat(&mut self, bytes: usize) {
        let mut rest = &self.chunk[..bytes];
        while let Some(event) = self.lines.take(&mut rest) {
            match event {
                Event::Line(line) => {
                    self.arguments.read(line);
                    self.ready.extend_from_slice(line);
                }
                Event::TooLong { start } => {
                    tracing::warn!("a request over the limit is refused");
                    let Some(id) = early_id(start) else { continue };
                    let refused =
                        serde_json::json!({"jsonrpc": "2.0", "id": id, "method": TOO_LARGE});
                    self.ready.extend_from_slice(refused.to_string().as_bytes());
                }
            }
            self.ready.push(b'\n');
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Heard<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.read == this.ready.len() {
            this.ready.clear();
            // One long request is not paid for ever.
            this.ready.shrink_to(CHUNK);
            this.read = 0;
            let mut chunk = ReadBuf::new(&mut this.chunk);
            let read = match Pin::new(&mut this.input).poll_read(context, &mut chunk) {
                Poll::Ready(Ok(())) => chunk.filled().len(),
                Poll::Ready(Err(error)) => {
                    this.ended.cancel();
                    return Poll::Ready(Err(error));
                }
                Poll::Pending => return Poll::Pending,
            };
            if read == 0 {
                this.ended.cancel();
                return Poll::Ready(Ok(()));
            }
            this.eat(read);
        }
        let now = buffer.remaining().min(this.ready.len() - this.read);
        buffer.put_slice(&this.ready[this.read..this.read + now]);
        this.read += now;
        Poll::Ready(Ok(()))
    }
}

/// The SDK's transport, which hands over each call with its arguments as text.
pub(super) struct ClientWire<T> {
    pub(super) inner: T,
    pub(super) arguments: Unparsed,
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for ClientWire<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let mut message = self.inner.receive().await?;
        if let JsonRpcMessage::Request(received) = &mut message
            && let ClientRequest::CallToolRequest(call) = &mut received.request
            && let Some(map) = &call.params.arguments
            && let Some(arguments) = self.arguments.parsed(&received.id, map)
        {
            call.extensions_mut().insert(arguments);
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}
