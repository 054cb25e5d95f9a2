//! The messages of a server whose answers all arrive on one stream: over stdio, or over HTTP+SSE.
//!
//! Messages are inspected one by one. A request from the server waits for an answer permit, and nothing more is read
//! until the request has one, so a server cannot send faster than it reads. A message that cannot be used is an error
//! for the request that it answers, and only for that request.

use std::collections::VecDeque;
use std::sync::Arc;

use rmcp::model::{CustomResult, ErrorData, RequestId, ServerJsonRpcMessage, ServerResult};
use serde_json::Value;

use super::tap::{Disposition, Tap};
use crate::json_memory::{TOO_MANY_VALUES, takes_too_much_memory};
use crate::request_id::{id_in_head, request_id};

/// Builds the response that the SDK sees instead of a result that the tap has taken.
pub(super) fn empty_response(id: RequestId) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::response(ServerResult::CustomResult(CustomResult(Value::Null)), id)
}

/// The messages that were received and are not inspected yet.
pub(super) struct InboundMessages {
    tap: Arc<Tap>,
    /// Maximum size of a message, in bytes.
    limit: usize,
    /// The messages of the last text. A text contains a single message or a batch.
    waiting: VecDeque<Value>,
}

impl InboundMessages {
    pub(super) fn new(tap: Arc<Tap>, limit: usize) -> Self {
        Self { tap, limit, waiting: VecDeque::new() }
    }

    /// Whether all received messages were inspected.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Parses a text. If it takes too much memory, returns an error for the request that it answers.
    pub(super) fn push(&mut self, text: &[u8]) -> Option<ServerJsonRpcMessage> {
        if takes_too_much_memory(text, self.limit) {
            return self.skip(text, TOO_MANY_VALUES.to_owned());
        }
        match serde_json::from_slice::<Value>(text) {
            // Batches were removed from the protocol, but some servers still send them.
            Ok(Value::Array(batch)) => self.waiting = batch.into(),
            Ok(message) => self.waiting.push_back(message),
            Err(_) => self.tap.record_stray_text(text),
        }
        None
    }

    /// Skips a text that is larger than the limit and begins with `start`. If it answers a request, returns an error
    /// for that request.
    pub(super) fn skip_too_large(&self, start: &[u8]) -> Option<ServerJsonRpcMessage> {
        let limit = self.limit;
        self.skip(start, format!("the server's answer is larger than the limit of {limit} bytes"))
    }

    fn skip(&self, start: &[u8], problem: String) -> Option<ServerJsonRpcMessage> {
        let mut unanswered = self.tap.unanswered();
        let id = id_in_head(start).or_else(|| {
            // A text without an id at its beginning can be matched to a request only if exactly one request is open.
            if unanswered.len() == 1 { unanswered.pop() } else { None }
        });
        self.tap.warn_skipped(self.limit, "the server wrote a message that exceeds a limit");
        let error = ErrorData::internal_error(problem, None);
        id.map(|id| ServerJsonRpcMessage::error(error, Some(id)))
    }

    /// Inspects the next message, and returns it if the SDK should see it. Returns `None` if the server exceeded its
    /// limits, so the connection is over, or if no message waits. No message is lost if this future is dropped.
    pub(super) async fn inspect_next(&mut self) -> Option<Option<ServerJsonRpcMessage>> {
        let permit = self.tap.admit(self.waiting.front()?).await.ok()?;
        let message = self.waiting.pop_front()?;
        let id = message.get("id").and_then(request_id);
        let is_answer = message.get("method").is_none();
        Some(match self.tap.inspect(message, None, permit) {
            Disposition::ForSdk(message) => match serde_json::from_value(message) {
                Ok(message) => Some(message),
                // An answer that cannot be parsed becomes an error for its request, because there will not be another
                // answer.
                Err(error) if is_answer && id.is_some() => {
                    let error = ErrorData::internal_error(
                        format!("the server's answer is not a valid MCP message: {error}"),
                        None,
                    );
                    Some(ServerJsonRpcMessage::error(error, id))
                }
                Err(_) => {
                    self.tap.count_invalid();
                    None
                }
            },
            Disposition::Answered(id) => Some(empty_response(id)),
            Disposition::Consumed => None,
        })
    }
}
