//! The stdio wire to a server: one message a line, whatever else it writes there.
//!
//! A line that is no message is skipped and counted. One that is too long is an error for the request
//! it answers, and for that one alone. Messages are taken one by one: a request waits for a place for its answer, and
//! until it has one nothing more is read, so that a server cannot send faster than it reads.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use rmcp::model::{
    ClientJsonRpcMessage, CustomResult, ErrorData, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Mutex, oneshot};

use super::tap::{Seen, Tap};
use crate::json_memory::{TOO_MANY_VALUES, takes_too_much_memory};
use crate::lines::{LineEvent, LineSplitter};
use crate::raw_arguments::message_to_json;
use crate::request_id::{id_in_head, request_id};

/// Bytes read at once.
const CHUNK: usize = 64 << 10;

/// The answer the SDK gets to see of a result that was taken.
pub(super) fn answered(id: RequestId) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::response(ServerResult::CustomResult(CustomResult(Value::Null)), id)
}

/// How many messages the SDK would get to see of these bytes. For the fuzzer.
#[cfg(feature = "fuzzing")]
pub fn messages_in(bytes: &[u8], limit: usize) -> usize {
    use futures::FutureExt as _;

    let limits = crate::config::Limits { message_bytes: limit, ..Default::default() };
    let (updated, _) = tokio::sync::mpsc::channel(1);
    let secrets = super::secrets::Secrets::default();
    // Nobody answers: every request is given its place back at once.
    let (tap, mut accepted) = Tap::new(Arc::default(), Arc::default(), secrets, &limits, updated);
    let (input, output) = (tokio::io::empty(), tokio::io::sink());
    let mut wire = StdioWire::new(input, output, tap, limit);
    let mut seen = 0;
    for piece in bytes.chunks(CHUNK) {
        wire.chunk[..piece.len()].copy_from_slice(piece);
        wire.unread = 0..piece.len();
        while wire.next().now_or_never().flatten().is_some() {
            while accepted.try_recv().is_ok() {}
            seen += usize::from(wire.ready.take().is_some());
        }
    }
    seen
}

/// The two pipes of a server, as the SDK's transport.
pub(crate) struct StdioWire<R, W> {
    input: R,
    output: Arc<Mutex<Option<W>>>,
    lines: LineSplitter,
    limit: usize,
    chunk: Vec<u8>,
    /// The part of the chunk that is not looked at yet.
    unread: Range<usize>,
    /// Messages of the last line that are not looked at yet: one, or those of a batch.
    messages: VecDeque<Value>,
    /// The message that is next for the SDK.
    ready: Option<ServerJsonRpcMessage>,
    tap: Arc<Tap>,
}

impl<R, W> StdioWire<R, W> {
    pub(crate) fn new(input: R, output: W, tap: Arc<Tap>, limit: usize) -> Self {
        Self {
            input,
            output: Arc::new(Mutex::new(Some(output))),
            lines: LineSplitter::new(limit),
            limit,
            chunk: vec![0; CHUNK],
            unread: 0..0,
            messages: VecDeque::new(),
            ready: None,
            tap,
        }
    }

    /// Looks at the next message, which may be `ready` then; `None` if the chunk has no other, or the connection is
    /// over. Nothing is lost when this is dropped while it waits.
    async fn next(&mut self) -> Option<()> {
        while self.messages.is_empty() {
            let mut rest = &self.chunk[self.unread.clone()];
            let event = self.lines.next_event(&mut rest);
            self.unread.start = self.unread.end - rest.len();
            match event? {
                LineEvent::Line(line) if takes_too_much_memory(line, self.limit) => {
                    let id = id_in_head(line);
                    self.ready = self.skipped(id, TOO_MANY_VALUES.to_owned());
                    return Some(());
                }
                LineEvent::Line(line) => match serde_json::from_slice::<Value>(line) {
                    // Batches left the protocol; a server that still writes one is understood.
                    Ok(Value::Array(batch)) => self.messages = batch.into(),
                    Ok(message) => self.messages.push_back(message),
                    Err(_) => self.tap.noise(),
                },
                LineEvent::TooLong { start } => {
                    let id = id_in_head(start);
                    let limit = self.limit;
                    let problem =
                        format!("the server's answer is larger than the limit of {limit} bytes");
                    self.ready = self.skipped(id, problem);
                    return Some(());
                }
            }
        }
        let permit = self.tap.admit(self.messages.front()?).await.ok()?;
        let message = self.messages.pop_front()?;
        let id = message.get("id").and_then(request_id);
        let is_answer = message.get("method").is_none();
        self.ready = match self.tap.see(message, None, permit) {
            Seen::Whole(message) => match serde_json::from_value(message) {
                Ok(message) => Some(message),
                // An answer that cannot be read is an answer all the same: nobody waits for another.
                Err(error) if is_answer && id.is_some() => {
                    let error = ErrorData::internal_error(
                        format!("the server's answer is no MCP message: {error}"),
                        None,
                    );
                    Some(ServerJsonRpcMessage::error(error, id))
                }
                Err(_) => {
                    self.tap.noise();
                    None
                }
            },
            Seen::Answered(id) => Some(answered(id)),
            Seen::Done => None,
        };
        Some(())
    }

    /// A line is not read; the request that it answers, if there is one, gets the reason.
    fn skipped(&self, id: Option<RequestId>, problem: String) -> Option<ServerJsonRpcMessage> {
        let mut waiting = self.tap.waiting();
        let id = id.or_else(|| {
            // A line that tells no id early answers the only request there is.
            if waiting.len() == 1 { waiting.pop() } else { None }
        });
        self.tap.skipped(self.limit, "the server wrote a line over the limit");
        let error = ErrorData::internal_error(problem, None);
        id.map(|id| ServerJsonRpcMessage::error(error, Some(id)))
    }
}

impl<R, W> Transport<RoleClient> for StdioWire<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let mut given_up = self.tap.sending(&message, |_| false);
        let output = Arc::clone(&self.output);
        let is_given_up = given_up
            .as_mut()
            .is_some_and(|given_up| given_up.try_recv() == Err(TryRecvError::Closed));
        let line = (!is_given_up).then(|| line_of(&message));
        async move {
            // `None` if the request has already been given up.
            let Some(line) = line.transpose()? else { return Ok(()) };
            let mut output = tokio::select! {
                biased;
                output = output.lock() => output,
                // A request that nobody waits for any more is not kept for a server that does not read.
                () = until(given_up) => return Ok(()),
            };
            let output = output.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            output.write_all(line.as_bytes()).await?;
            output.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            while self.next().await.is_some() {
                if let Some(message) = self.ready.take() {
                    return Some(message);
                }
            }
            if !self.messages.is_empty() {
                // The server broke its limits.
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
        // Its end tells a server to go. Whoever is writing to one that does not read is not waited for.
        if let Ok(mut output) = self.output.try_lock() {
            output.take();
        }
        self.tap.close(None);
        Ok(())
    }
}

/// One message is one line. JSON strings have no line breaks, so any line breaks are between tokens.
fn line_of(message: &ClientJsonRpcMessage) -> serde_json::Result<String> {
    let mut line = message_to_json(message)?;
    if line.contains(['\n', '\r']) {
        line = line.replace(['\n', '\r'], " ");
    }
    line.push('\n');
    Ok(line)
}

/// Waits until a request is given up.
async fn until(given_up: Option<oneshot::Receiver<()>>) {
    match given_up {
        Some(given_up) => drop(given_up.await),
        None => std::future::pending().await,
    }
}
