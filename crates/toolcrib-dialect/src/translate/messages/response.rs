//! Writes complete responses and errors of Messages.

use serde::Serialize;
use toolcrib_text::json::Fields;

use crate::translate::backend_error::BackendError;
use crate::translate::chat_request::RawJson;
use crate::translate::chat_response::{
    self, ChatResponse, FinishReason, ResponseCall, ResponseHead,
};

/// A message of the Messages API, either complete or as it is at the start of a stream.
#[derive(Debug, Serialize)]
pub(super) struct OutputMessage<'a> {
    id: String,
    r#type: &'static str,
    role: &'static str,
    model: &'a str,
    content: Vec<OutputBlock<'a>>,
    stop_reason: Option<&'static str>,
    stop_sequence: Option<&'static str>,
    usage: MessagesUsage,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum OutputBlock<'a> {
    Text { text: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: RawJson },
}

/// Token counts of Messages. Each input token is counted in only one field: as uncached, read from a cache, or written
/// to it.
#[derive(Debug, Default, Serialize)]
#[expect(clippy::struct_field_names, reason = "the API's own names")]
pub(super) struct MessagesUsage {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
}

impl From<chat_response::ChatUsage> for MessagesUsage {
    fn from(usage: chat_response::ChatUsage) -> Self {
        Self {
            input_tokens: usage.input.saturating_sub(usage.cached).saturating_sub(usage.written),
            cache_creation_input_tokens: usage.written,
            cache_read_input_tokens: usage.cached,
            output_tokens: usage.output,
        }
    }
}

impl<'a> OutputMessage<'a> {
    /// Returns a message without content, as it is at the start of a stream. `model` is the model that the client
    /// requested. It is used if the backend reports none.
    pub(super) fn begin(head: &'a ResponseHead, model: &'a str) -> Self {
        Self {
            id: format!("msg_{}", head.id),
            r#type: "message",
            role: "assistant",
            model: head.model.as_deref().unwrap_or(model),
            content: Vec::new(),
            stop_reason: None,
            stop_sequence: None,
            usage: MessagesUsage::default(),
        }
    }
}

/// Returns a complete response as JSON.
pub(super) fn message(response: &ChatResponse, model: &str) -> String {
    let mut message = OutputMessage::begin(&response.head, model);
    if !response.text.is_empty() {
        message.content.push(OutputBlock::Text { text: &response.text });
    }
    message.content.extend(response.calls.iter().map(tool_use));
    message.stop_reason = Some(stop_reason(response.finish));
    message.usage = response.usage.into();
    serde_json::to_string(&message).unwrap_or_default()
}

fn tool_use(call: &ResponseCall) -> OutputBlock<'_> {
    OutputBlock::ToolUse { id: &call.id, name: &call.name, input: input(&call.arguments) }
}

/// Returns the arguments as an object. Missing arguments become an empty object. Any other text that is not a JSON
/// object is put under the key `_raw`, so that the tool rejects it and the model sees what it wrote. With an empty
/// object instead, some tools would run a call that the model never made.
fn input(arguments: &str) -> RawJson {
    let arguments = arguments.trim();
    match arguments {
        "" | "null" => RawJson::new("{}"),
        _ if Fields::read(arguments).is_some() => RawJson::new(arguments),
        _ => {
            #[derive(Serialize)]
            struct UnparsedInput<'a> {
                _raw: &'a str,
            }
            RawJson::new(
                &serde_json::to_string(&UnparsedInput { _raw: arguments }).unwrap_or_default(),
            )
        }
    }
}

pub(super) fn stop_reason(finish: FinishReason) -> &'static str {
    match finish {
        FinishReason::Stop => "end_turn",
        FinishReason::ToolCalls => "tool_use",
        FinishReason::Length => "max_tokens",
        FinishReason::ContentFilter => "refusal",
    }
}

/// Returns an error as JSON, for a response body or for the data of an error event.
pub(super) fn error(error: &BackendError) -> String {
    #[derive(Serialize)]
    struct ErrorBody<'a> {
        r#type: &'static str,
        error: ErrorObject<'a>,
    }
    #[derive(Serialize)]
    struct ErrorObject<'a> {
        r#type: &'static str,
        message: &'a str,
    }
    let kind = match error.status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        503 | 529 => "overloaded_error",
        504 => "timeout_error",
        _ => "api_error",
    };
    let inner = ErrorObject { r#type: kind, message: &error.message };
    serde_json::to_string(&ErrorBody { r#type: "error", error: inner }).unwrap_or_default()
}
