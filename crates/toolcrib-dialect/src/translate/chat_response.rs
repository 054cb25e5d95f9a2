//! Reads a Chat Completions response.

use toolcrib_text::json::{self, Fields};

use super::lenient;
use crate::usage;

/// Maximum size of a response id, in bytes. It is limited because the id of each item begins with the response id, so a
/// long id would be repeated in every item.
const MAX_ID_BYTES: usize = 256;

/// A complete Chat Completions response.
#[derive(Debug)]
pub(super) struct ChatResponse {
    pub(super) head: ResponseHead,
    pub(super) text: String,
    pub(super) calls: Vec<ResponseCall>,
    pub(super) finish: FinishReason,
    pub(super) usage: ChatUsage,
}

/// The metadata of a response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ResponseHead {
    pub(super) id: String,
    /// The model that answered, if the backend reported it.
    pub(super) model: Option<String>,
    /// The time at which the response was created, as Unix time in seconds.
    pub(super) created: u64,
}

/// A call that the model made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResponseCall {
    pub(super) id: String,
    pub(super) name: String,
    /// The arguments as JSON text. They are not validated.
    pub(super) arguments: String,
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FinishReason {
    /// The model finished.
    Stop,
    /// The model waits for the results of calls.
    ToolCalls,
    /// The model reached a token limit, so the last part may be truncated.
    Length,
    /// A content filter stopped the model, so the last part may be truncated.
    ContentFilter,
}

impl FinishReason {
    /// Converts a `finish_reason`. `calls` says whether the message has calls. Some servers send `stop` for such a
    /// message, so the calls take precedence.
    pub(super) fn new(reason: &str, calls: bool) -> Self {
        match reason {
            "length" => Self::Length,
            "content_filter" => Self::ContentFilter,
            _ if calls => Self::ToolCalls,
            _ => Self::Stop,
        }
    }

    pub(super) fn is_truncated(self) -> bool {
        matches!(self, Self::Length | Self::ContentFilter)
    }
}

/// Token counts of Chat Completions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ChatUsage {
    /// The number of all input tokens.
    pub(super) input: u64,
    /// The number of input tokens that were read from a cache.
    pub(super) cached: u64,
    /// The number of input tokens that were written to a cache.
    pub(super) written: u64,
    /// The number of all output tokens.
    pub(super) output: u64,
    /// The number of output tokens that were used for hidden reasoning.
    pub(super) reasoning: u64,
}

impl ChatUsage {
    /// Reads the token counts of a response or a chunk, if it has any.
    pub(super) fn read(fields: &Fields<'_>) -> Option<Self> {
        let used = usage::parse(lenient::value(fields, "usage")?)?;
        Some(Self {
            input: usage::token_count(&used, &["prompt_tokens"]),
            cached: usage::token_count(&used, &["prompt_tokens_details", "cached_tokens"]),
            written: usage::token_count(&used, &["prompt_tokens_details", "cache_write_tokens"]),
            output: usage::token_count(&used, &["completion_tokens"]),
            reasoning: usage::token_count(
                &used,
                &["completion_tokens_details", "reasoning_tokens"],
            ),
        })
    }
}

impl ResponseHead {
    /// Reads the metadata of a response or a chunk. `fallback` is used as the id if there is none.
    pub(super) fn read(fields: &Fields<'_>, fallback: &str) -> Self {
        let id = lenient::text(fields, "id").filter(|id| (1..=MAX_ID_BYTES).contains(&id.len()));
        Self {
            id: id.unwrap_or_else(|| fallback.to_owned()),
            model: lenient::text(fields, "model").filter(|model| !model.is_empty()),
            created: fields.get("created").and_then(|raw| raw.parse().ok()).unwrap_or_default(),
        }
    }

    /// Returns an id for the call at `position`, for servers that omit call ids.
    pub(super) fn call_id(&self, position: usize) -> String {
        format!("call_{}_{position}", self.id)
    }
}

impl ChatResponse {
    /// Reads a response. Returns `None` if the body is not a Chat Completions response. `fallback` is used as the id if
    /// there is none.
    pub(super) fn read(body: &[u8], fallback: &str) -> Option<Self> {
        let fields = Fields::read(std::str::from_utf8(body).ok()?)?;
        let choices = json::items(fields.get("choices")?)?;
        let choice = Fields::read(choices.first()?.get())?;
        let message = lenient::object(&choice, "message")?;
        let head = ResponseHead::read(&fields, fallback);
        let mut calls = Vec::new();
        for raw in message.get("tool_calls").and_then(json::items).unwrap_or_default() {
            let Some(call) = Fields::read(raw.get()) else { continue };
            let Some(function) = lenient::object(&call, "function") else { continue };
            let id = lenient::text(&call, "id").filter(|id| !id.is_empty());
            calls.push(ResponseCall {
                id: id.unwrap_or_else(|| head.call_id(calls.len())),
                name: lenient::text(&function, "name").unwrap_or_default(),
                arguments: arguments(&function),
            });
        }
        let reason = lenient::text(&choice, "finish_reason").unwrap_or_default();
        Some(Self {
            head,
            text: message_text(&message),
            finish: FinishReason::new(&reason, !calls.is_empty()),
            calls,
            usage: ChatUsage::read(&fields).unwrap_or_default(),
        })
    }
}

/// Returns the text of a message or a delta, whose content is a string or a list of parts. A refusal counts as text.
/// Reasoning is left out: it has no signature, so no client could send it back.
pub(super) fn message_text(message: &Fields<'_>) -> String {
    let mut text = lenient::text(message, "content").unwrap_or_default();
    for part in message.get("content").and_then(json::items).unwrap_or_default() {
        if let Some(part) = Fields::read(part.get())
            && lenient::text(&part, "type").as_deref() == Some("text")
        {
            text.push_str(&lenient::text(&part, "text").unwrap_or_default());
        }
    }
    text.push_str(&lenient::text(message, "refusal").unwrap_or_default());
    text
}

/// Returns the arguments of a call, or a piece of them. Some servers send an object instead of a string.
pub(super) fn arguments(function: &Fields<'_>) -> String {
    let raw = lenient::value(function, "arguments").unwrap_or_default();
    lenient::string(raw).unwrap_or_else(|| raw.to_owned())
}
