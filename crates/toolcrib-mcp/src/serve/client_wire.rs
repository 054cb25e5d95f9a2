//! One client on standard streams: a message on each line.
//!
//! Every request is answered under its own id, whatever is wrong with it. The SDK's transport answers one that it
//! cannot read without an id, or not at all, and its client would wait for ever. So lines are read here, and a
//! request that the SDK cannot read is refused here.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetExtensions as _, JsonRpcMessage};
use rmcp::service::{RoleServer, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolcrib_core::json::Fields;

use super::unread::{Unread, too_large};
use crate::arguments::Arguments;
use crate::lines::{Event, Lines};
use crate::request_id::Early;

/// Bytes read at once.
const CHUNK: usize = 16 << 10;
/// Messages that wait for a client that is slow to read.
const QUEUE: usize = 64;
/// How long the last messages may take to be written when the gateway ends.
const LAST_WRITES: Duration = Duration::from_secs(1);

/// The two streams of a client, as the SDK's transport.
pub(super) struct ClientWire<R> {
    input: R,
    lines: Lines,
    limit: usize,
    chunk: Box<[u8]>,
    /// Messages that the SDK has yet to take.
    ready: VecDeque<ClientJsonRpcMessage>,
    /// Refusals that have yet to be queued.
    refusals: VecDeque<String>,
    /// Whether the input has ended and its last line was read.
    finished: bool,
    output: Option<mpsc::Sender<Outgoing>>,
    writer: Option<JoinHandle<()>>,
    ended: CancellationToken,
}

/// A line, and who wants to know what became of it.
type Outgoing = (String, Option<oneshot::Sender<io::Result<()>>>);

impl<R> ClientWire<R> {
    /// Lines of at most `limit` bytes; `ended` is cancelled when there are no more.
    pub(super) fn new(
        input: R,
        output: impl AsyncWrite + Send + Unpin + 'static,
        limit: usize,
        ended: CancellationToken,
    ) -> Self {
        let (sender, lines) = mpsc::channel(QUEUE);
        Self {
            input,
            lines: Lines::new(limit),
            limit,
            chunk: vec![0; CHUNK].into(),
            ready: VecDeque::new(),
            refusals: VecDeque::new(),
            finished: false,
            output: Some(sender),
            writer: Some(tokio::spawn(write(output, lines))),
            ended,
        }
    }

    fn eat(&mut self, bytes: usize) {
        let mut rest = &self.chunk[..bytes];
        while let Some(event) = self.lines.take(&mut rest) {
            let (message, refusals) = read(&event, self.limit);
            self.ready.extend(message);
            self.refusals.extend(refusals);
        }
    }

    /// The last line, if it has no newline.
    fn finish(&mut self) {
        if let Some(event) = self.lines.finish() {
            let (message, refusals) = read(&event, self.limit);
            self.ready.extend(message);
            self.refusals.extend(refusals);
        }
    }
}

/// The message of a line for the SDK, and refusals for the client.
fn read(event: &Event<'_>, limit: usize) -> (Option<ClientJsonRpcMessage>, Vec<String>) {
    let unread = match event {
        Event::Line(line) => match message(line) {
            Ok(message) => return (Some(message), Vec::new()),
            Err(unread) => unread,
        },
        Event::TooLong { start } => {
            tracing::warn!("a request over the limit is refused");
            too_large(start, limit)
        }
    };
    (unread.failed.map(|failed| *failed), unread.refusals)
}

/// The message of a line, a call with its arguments as text. Some clients write `null` for a key that a message
/// does not have, which the SDK takes for a value.
fn message(line: &[u8]) -> Result<ClientJsonRpcMessage, Unread> {
    let message = strict_message(line);
    if message.is_err()
        && let Some(line) = without_nulls(line)
    {
        return strict_message(line.as_bytes());
    }
    message
}

/// The line without those of its keys that are `null` and decide what kind of message it is; `None` if none is.
fn without_nulls(line: &[u8]) -> Option<String> {
    let fields = std::str::from_utf8(line).ok().and_then(Fields::read)?;
    let nulls: Vec<_> = ["id", "method", "result", "error"]
        .into_iter()
        .filter(|key| fields.get(key) == Some("null"))
        .map(|key| (key, None))
        .collect();
    // A request under the id `null` is refused: its answer could not be told from others.
    let is_request =
        fields.string("method").is_some_and(|name| !name.starts_with("notifications/"));
    let refused = is_request && fields.get("id") == Some("null");
    (!nulls.is_empty() && !refused).then(|| fields.with(&nulls))
}

fn strict_message(line: &[u8]) -> Result<ClientJsonRpcMessage, Unread> {
    let mut message = serde_json::from_slice(line).map_err(|_| Unread::of(line))?;
    match &mut message {
        JsonRpcMessage::Request(received) => {
            if let ClientRequest::CallToolRequest(call) = &mut received.request
                && let Some((_, arguments)) = Arguments::of_message(line)
            {
                call.extensions_mut().insert(arguments);
            }
        }
        // The SDK takes a request that also has a result for an answer.
        JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) if Early::read(line).has_method => {
            return Err(Unread::of(line));
        }
        _ => {}
    }
    Ok(message)
}

/// Writes lines in their order until nobody has one to send.
async fn write(mut output: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Outgoing>) {
    while let Some((mut line, done)) = lines.recv().await {
        line.push('\n');
        let written = async {
            output.write_all(line.as_bytes()).await?;
            output.flush().await
        };
        let written = written.await;
        let failed = written.is_err();
        if let Some(done) = done {
            // A sender that was dropped does not want to know.
            let _ = done.send(written);
        }
        if failed {
            return;
        }
    }
}

impl<R: AsyncRead + Send + Unpin + 'static> Transport<RoleServer> for ClientWire<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let output = self.output.clone();
        let line = serde_json::to_string(&message);
        async move {
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            let (done, written) = oneshot::channel();
            let output = output.ok_or_else(closed)?;
            output.send((line?, Some(done))).await.map_err(|_| closed())?;
            written.await.map_err(|_| closed())?
        }
    }

    /// May be dropped at any await and called again: nothing that was read is lost.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if !self.refusals.is_empty() {
                let permit = self.output.as_ref()?.reserve().await.ok()?;
                if let Some(refusal) = self.refusals.pop_front() {
                    permit.send((refusal, None));
                }
                continue;
            }
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            match self.input.read(&mut self.chunk).await {
                Ok(0) | Err(_) if self.finished => {
                    self.ended.cancel();
                    return None;
                }
                Ok(0) | Err(_) => {
                    self.finished = true;
                    self.finish();
                }
                Ok(bytes) => self.eat(bytes),
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.output = None;
        if let Some(mut writer) = self.writer.take() {
            // A client that has stopped reading must not keep the gateway and its servers alive.
            if tokio::time::timeout(LAST_WRITES, &mut writer).await.is_err() {
                writer.abort();
            }
        }
        Ok(())
    }
}
