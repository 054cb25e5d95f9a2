//! The stdio wire to a server: one message a line, whatever else it writes there.
//!
//! A line that is no message is skipped and counted. One that is too long is an error for the request
//! it answers, and for that one alone.

use std::io;
use std::sync::Arc;

use rmcp::model::{
    ClientJsonRpcMessage, CustomResult, ErrorData, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Mutex;

use super::tap::{Seen, Tap};
use crate::arguments::to_json;
use crate::lines::{Event, Lines};
use crate::request_id::{early_id, request_id};

/// Bytes read at once.
const CHUNK: usize = 64 << 10;

/// The answer the SDK gets to see of a result that was taken.
pub(super) fn answered(id: RequestId) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::response(ServerResult::CustomResult(CustomResult(Value::Null)), id)
}

/// How many messages the SDK would get to see of these bytes. For the fuzzer.
#[cfg(feature = "fuzzing")]
pub fn messages_in(bytes: &[u8], limit: usize) -> usize {
    let (input, output) = (tokio::io::empty(), tokio::io::sink());
    let mut wire = StdioWire::new(
        input,
        output,
        Tap::new(Arc::default(), super::secrets::Secrets::default()),
        limit,
    );
    let mut seen = 0;
    for piece in bytes.chunks(CHUNK) {
        wire.chunk[..piece.len()].copy_from_slice(piece);
        wire.eat(piece.len());
        seen += wire.ready.drain(..).count();
    }
    seen
}

/// The two pipes of a server, as the SDK's transport.
pub(crate) struct StdioWire<R, W> {
    input: R,
    output: Arc<Mutex<Option<W>>>,
    lines: Lines,
    limit: usize,
    chunk: Vec<u8>,
    ready: std::collections::VecDeque<ServerJsonRpcMessage>,
    tap: Arc<Tap>,
}

impl<R, W> StdioWire<R, W> {
    pub(crate) fn new(input: R, output: W, tap: Arc<Tap>, limit: usize) -> Self {
        Self {
            input,
            output: Arc::new(Mutex::new(Some(output))),
            lines: Lines::new(limit),
            limit,
            chunk: vec![0; CHUNK],
            ready: std::collections::VecDeque::new(),
            tap,
        }
    }

    fn eat(&mut self, bytes: usize) {
        let chunk = std::mem::take(&mut self.chunk);
        let mut lines = std::mem::take(&mut self.lines);
        let mut rest = &chunk[..bytes];
        while let Some(event) = lines.take(&mut rest) {
            match event {
                Event::Line(line) => self.line(line),
                Event::TooLong { start } => self.too_long(start),
            }
        }
        (self.chunk, self.lines) = (chunk, lines);
    }

    fn line(&mut self, line: &[u8]) {
        match serde_json::from_slice::<Value>(line) {
            // Batches left the protocol; a server that still writes one is understood.
            Ok(Value::Array(messages)) => {
                for message in messages {
                    self.message(message);
                }
            }
            Ok(message) => self.message(message),
            Err(_) => self.tap.noise(),
        }
    }

    fn message(&mut self, message: Value) {
        let id = message.get("id").and_then(request_id);
        let is_answer = message.get("method").is_none();
        match self.tap.see(message, None) {
            Seen::Whole(message) => match serde_json::from_value(message) {
                Ok(message) => self.ready.push_back(message),
                // An answer that cannot be read is an answer all the same: nobody waits for another.
                Err(error) if is_answer && id.is_some() => {
                    let error = ErrorData::internal_error(
                        format!("the server's answer is no MCP message: {error}"),
                        None,
                    );
                    self.ready.push_back(ServerJsonRpcMessage::error(error, id));
                }
                Err(_) => self.tap.noise(),
            },
            Seen::Answered(id) => self.ready.push_back(answered(id)),
            Seen::Done => {}
        }
    }

    fn too_long(&mut self, start: &[u8]) {
        let mut waiting = self.tap.waiting();
        let id = early_id(start).or_else(|| {
            // A line that tells no id early answers the only request there is.
            if waiting.len() == 1 { waiting.pop() } else { None }
        });
        let limit = self.limit;
        tracing::warn!(limit, "the server wrote a line over the limit; it is skipped");
        if let Some(id) = id {
            let problem = format!("the server's answer is larger than the limit of {limit} bytes");
            let error = ErrorData::internal_error(problem, None);
            self.ready.push_back(ServerJsonRpcMessage::error(error, Some(id)));
        }
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
        self.tap.sending(&message, |_| false);
        let output = Arc::clone(&self.output);
        let line = to_json(&message).map(|mut line| {
            // One message is one line. JSON strings have no line breaks, so these stand between tokens.
            if line.contains(['\n', '\r']) {
                line = line.replace(['\n', '\r'], " ");
            }
            line.push('\n');
            line
        });
        async move {
            let line = line?;
            let mut output = output.lock().await;
            let output = output.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            output.write_all(line.as_bytes()).await?;
            output.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            match self.input.read(&mut self.chunk).await {
                Ok(0) | Err(_) => {
                    self.tap.close(None);
                    return None;
                }
                Ok(bytes) => self.eat(bytes),
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
