//! The transport of one stdio client: one message on each line.
//!
//! Every request gets an answer with its own id, even if it is malformed. The SDK's transport answers a request that it
//! cannot parse without an id, or not at all, and the client would wait forever. So lines are read here, and a request
//! that the SDK cannot parse is rejected here.
//!
//! The memory of a client is limited. A request whose values would take too much memory is rejected before it is
//! parsed. At most 256 requests are in flight, in addition to pings, and none begins while 64 MiB of messages wait for
//! the client to read them. Meanwhile, requests wait in [`InboundQueue`], and answers, cancellations and pings overtake
//! them. Reading stops only if 64 MiB of requests wait, or if errors cannot be written.
//!
//! After a client has closed its side, waiting requests still begin, and their answers are written as long as the
//! client reads. However, half a second later (`DRAIN_TIME` in `stdio.rs`) calls to servers are cancelled. This
//! includes calls that begin after that.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetExtensions as _, JsonRpcMessage};
use rmcp::service::{RoleServer, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolcrib_text::json::Fields;

use super::backlog::{Backlog, BacklogShare};
use super::inbound_queue::InboundQueue;
use super::line_rejection::{LineRejection, too_large, too_many_values};
use crate::json_memory::{parsed_bytes, takes_too_much_memory};
use crate::lines::{LineEvent, LineSplitter};
use crate::raw_arguments::RawArguments;
use crate::request_id::MessageHead;

/// Number of bytes read at once.
const CHUNK_BYTES: usize = 16 << 10;
/// Maximum number of messages that wait to be written.
const MAX_UNWRITTEN: usize = 64;
/// How long the last messages may take to be written when the gateway stops.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long requests still wait for a client to read, after it has closed its side.
const FINAL_READ_TIMEOUT: Duration = Duration::from_secs(5);

/// The transport that connects the SDK to the two streams of a client.
pub(super) struct ClientStdioTransport<R> {
    input: R,
    lines: LineSplitter,
    limit: usize,
    chunk: Box<[u8]>,
    /// Messages that the SDK has not taken yet.
    inbound: InboundQueue,
    /// Whether the last call of `receive` returned a message.
    has_just_returned: bool,
    backlog: Backlog,
    /// Errors for the client that are not in the queue of the writer yet.
    errors: VecDeque<String>,
    /// When to stop waiting for a client that does not read. This is set once the input has ended and its last line was
    /// read.
    read_deadline: Option<Instant>,
    output: Option<mpsc::Sender<Outgoing>>,
    writer: Option<JoinHandle<()>>,
    ended: CancellationToken,
}

/// A line that waits to be written.
struct Outgoing {
    line: String,
    /// Where to send the result of the write.
    written: Option<oneshot::Sender<io::Result<()>>>,
    share: BacklogShare,
}

impl<R> ClientStdioTransport<R> {
    /// Creates a transport that reads lines of at most `limit` bytes. It cancels `ended` at the end of the input.
    pub(super) fn new(
        input: R,
        output: impl AsyncWrite + Send + Unpin + 'static,
        limit: usize,
        ended: CancellationToken,
    ) -> Self {
        let (sender, lines) = mpsc::channel(MAX_UNWRITTEN);
        Self {
            input,
            lines: LineSplitter::new(limit),
            limit,
            chunk: vec![0; CHUNK_BYTES].into(),
            inbound: InboundQueue::default(),
            has_just_returned: false,
            backlog: Backlog::default(),
            errors: VecDeque::new(),
            read_deadline: None,
            output: Some(sender),
            writer: Some(tokio::spawn(write(output, lines))),
            ended,
        }
    }

    fn split_lines(&mut self, bytes: usize) {
        let mut rest = &self.chunk[..bytes];
        while let Some(event) = self.lines.next_event(&mut rest) {
            let (message, errors) = parse_event(&event, self.limit);
            self.inbound.extend(message);
            self.errors.extend(errors);
        }
    }

    /// Handles the end of the input. The last line may have no newline.
    fn finish(&mut self) {
        if let Some(event) = self.lines.finish() {
            let (message, errors) = parse_event(&event, self.limit);
            self.inbound.extend(message);
            self.errors.extend(errors);
        }
        self.read_deadline = Some(Instant::now() + FINAL_READ_TIMEOUT);
        self.ended.cancel();
    }
}

/// A message for the SDK, and the memory that it takes, in bytes.
type SizedMessage = (ClientJsonRpcMessage, usize);

/// Parses a line. Returns the message for the SDK, if there is one, and errors for the client.
fn parse_event(event: &LineEvent<'_>, limit: usize) -> (Option<SizedMessage>, Vec<String>) {
    let rejection = match event {
        LineEvent::Line(line) if takes_too_much_memory(line, limit) => {
            tracing::warn!("rejected a request with too many values");
            too_many_values(line)
        }
        LineEvent::Line(line) => match parse_message(line) {
            Ok(message) => return (Some((message, parsed_bytes(line))), Vec::new()),
            Err(rejection) => rejection,
        },
        LineEvent::TooLong { start } => {
            tracing::warn!("rejected a request over the size limit");
            too_large(start, limit)
        }
    };
    (rejection.failed_answer.map(|failed| (*failed, 0)), rejection.errors)
}

/// Parses the message of a line. A call also keeps its arguments as text. Some clients write `null` for keys that a
/// message does not have. The SDK would treat these as values, so they are removed.
fn parse_message(line: &[u8]) -> Result<ClientJsonRpcMessage, LineRejection> {
    let message = parse_strictly(line);
    if message.is_err()
        && let Some(line) = without_nulls(line)
    {
        return parse_strictly(line.as_bytes());
    }
    message
}

/// Removes `id`, `method`, `result` and `error` from a message if their value is `null`. Returns `None` if nothing is
/// removed.
fn without_nulls(line: &[u8]) -> Option<String> {
    let fields = std::str::from_utf8(line).ok().and_then(Fields::read)?;
    let nulls: Vec<_> = ["id", "method", "result", "error"]
        .into_iter()
        .filter(|key| fields.get(key) == Some("null"))
        .map(|key| (key, None))
        .collect();
    // A request with the id `null` is left unchanged and therefore rejected, because its answer could not be matched to
    // it.
    let is_request =
        fields.string("method").is_some_and(|name| !name.starts_with("notifications/"));
    let is_null_request = is_request && fields.get("id") == Some("null");
    (!nulls.is_empty() && !is_null_request).then(|| fields.with(&nulls))
}

fn parse_strictly(line: &[u8]) -> Result<ClientJsonRpcMessage, LineRejection> {
    let mut message = serde_json::from_slice(line).map_err(|_| LineRejection::of_line(line))?;
    match &mut message {
        JsonRpcMessage::Request(received) => {
            if let ClientRequest::CallToolRequest(call) = &mut received.request
                && let Some((_, arguments)) = RawArguments::from_message(line)
            {
                call.extensions_mut().insert(arguments);
            }
        }
        // The SDK would treat a request that also has a result as an answer, so such a request is rejected here.
        JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)
            if MessageHead::read(line).has_method =>
        {
            return Err(LineRejection::of_line(line));
        }
        _ => {}
    }
    Ok(message)
}

/// Writes lines in order until all senders are dropped.
async fn write(mut output: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Outgoing>) {
    while let Some(Outgoing { mut line, written, share }) = lines.recv().await {
        line.push('\n');
        let writing = async {
            output.write_all(line.as_bytes()).await?;
            output.flush().await
        };
        let result = writing.await;
        drop((line, share));
        let failed = result.is_err();
        if let Some(written) = written {
            // An error means that nobody waits for the result.
            let _ = written.send(result);
        }
        if failed {
            return;
        }
    }
}

impl<R: AsyncRead + Send + Unpin + 'static> Transport<RoleServer> for ClientStdioTransport<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let output = self.output.clone();
        let line = serde_json::to_string(&message);
        let share = self.backlog.message_share(line.as_deref().unwrap_or_default());
        async move {
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            let (written, result) = oneshot::channel();
            let output = output.ok_or_else(closed)?;
            let outgoing = Outgoing { line: line?, written: Some(written), share };
            output.send(outgoing).await.map_err(|_| closed())?;
            result.await.map_err(|_| closed())?
        }
    }

    /// Returns the next message for the SDK, or `None` when the connection is over. This method is cancel-safe: its
    /// future may be dropped and the method called again, without losing anything that was read.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        // Lets the request that was just returned run first. If it can be answered at once, its answer is added to the
        // backlog before another request begins.
        if std::mem::take(&mut self.has_just_returned) {
            tokio::task::yield_now().await;
        }
        loop {
            if !self.errors.is_empty() {
                let permit = self.output.as_ref()?.reserve().await.ok()?;
                if let Some(line) = self.errors.pop_front() {
                    let share = self.backlog.message_share(&line);
                    permit.send(Outgoing { line, written: None, share });
                }
                continue;
            }
            if let Some(message) = self.inbound.next(&self.backlog) {
                self.has_just_returned = true;
                if self.read_deadline.is_some() {
                    self.read_deadline = Some(Instant::now() + FINAL_READ_TIMEOUT);
                }
                return Some(message);
            }
            let is_waiting = self.inbound.is_waiting();
            if let Some(deadline) = self.read_deadline {
                if !is_waiting {
                    return None;
                }
                if tokio::time::timeout_at(deadline, self.backlog.wait_for_room()).await.is_err() {
                    tracing::warn!(
                        "the client does not read, so its last requests are not answered"
                    );
                    self.inbound.clear();
                }
                continue;
            }
            tokio::select! {
                () = self.backlog.wait_for_room(), if is_waiting => {}
                read = self.input.read(&mut self.chunk), if !self.inbound.is_full() => match read {
                    Ok(0) | Err(_) => self.finish(),
                    Ok(bytes) => self.split_lines(bytes),
                },
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.output = None;
        if let Some(mut writer) = self.writer.take() {
            // A client that has stopped reading must not keep the gateway and its servers alive.
            if tokio::time::timeout(FINAL_WRITE_TIMEOUT, &mut writer).await.is_err() {
                writer.abort();
            }
        }
        Ok(())
    }
}
