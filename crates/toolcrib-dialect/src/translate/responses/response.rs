//! Writes complete responses and errors of the Responses API.

use serde::{Deserialize, Serialize};
use toolcrib_text::json::Fields;

use crate::translate::backend_error::BackendError;
use crate::translate::chat_request::RawJson;
use crate::translate::chat_response::{
    self, ChatResponse, FinishReason, ResponseCall, ResponseHead,
};
use crate::translate::lenient;

/// The parts of a request that its response repeats, and the names of the request's custom tools.
#[derive(Debug, Default)]
pub(super) struct RequestEcho {
    model: String,
    custom: Vec<String>,
    fields: EchoedFields,
}

/// The fields of the request that the response repeats, with the client's values or OpenAI's defaults.
#[derive(Debug, Default, Serialize)]
struct EchoedFields {
    instructions: Option<RawJson>,
    max_output_tokens: Option<RawJson>,
    metadata: Option<RawJson>,
    parallel_tool_calls: Option<RawJson>,
    reasoning: Option<RawJson>,
    temperature: Option<RawJson>,
    text: Option<RawJson>,
    tool_choice: Option<RawJson>,
    tools: Option<RawJson>,
    top_p: Option<RawJson>,
    user: Option<RawJson>,
}

impl RequestEcho {
    pub(super) fn new(fields: &Fields<'_>, custom: Vec<String>) -> Self {
        let raw = |key: &str| RawJson::of(fields, key);
        let or = |key: &str, default: &str| raw(key).or_else(|| Some(RawJson::new(default)));
        Self {
            model: lenient::text(fields, "model").unwrap_or_default(),
            custom,
            fields: EchoedFields {
                instructions: raw("instructions"),
                max_output_tokens: raw("max_output_tokens"),
                metadata: or("metadata", "{}"),
                parallel_tool_calls: or("parallel_tool_calls", "true"),
                reasoning: or("reasoning", r#"{"effort":null,"summary":null}"#),
                temperature: or("temperature", "1.0"),
                text: or("text", r#"{"format":{"type":"text"}}"#),
                tool_choice: or("tool_choice", r#""auto""#),
                tools: or("tools", "[]"),
                top_p: or("top_p", "1.0"),
                user: raw("user"),
            },
        }
    }

    /// Returns the item for a call from the model.
    pub(super) fn call(
        &self,
        call: &ResponseCall,
        id: &str,
        status: &'static str,
    ) -> ResponsesItem {
        let (call_id, name) = (call.id.clone(), call.name.clone());
        if self.is_custom(&name) {
            let input = input(&call.arguments);
            return ResponsesItem::CustomToolCall {
                id: format!("ctc_{id}"),
                status,
                call_id,
                name,
                input,
            };
        }
        let arguments = call.arguments.clone();
        ResponsesItem::FunctionCall { id: format!("fc_{id}"), status, call_id, name, arguments }
    }

    pub(super) fn is_custom(&self, name: &str) -> bool {
        self.custom.iter().any(|custom| custom == name)
    }
}

/// The response object of the API: at the start of a stream, complete, or failed.
#[derive(Serialize)]
pub(super) struct ResponseObject<'a> {
    id: String,
    object: &'static str,
    created_at: u64,
    pub(super) status: &'static str,
    pub(super) error: Option<ResponseError<'a>>,
    pub(super) incomplete_details: Option<IncompleteDetails>,
    model: &'a str,
    pub(super) output: &'a [ResponsesItem],
    previous_response_id: Option<&'static str>,
    /// Always `false`, because nothing is stored, even if the client requested it. The client must be told, because it
    /// might otherwise try to continue from this response.
    store: bool,
    truncation: &'static str,
    pub(super) usage: Option<ResponsesUsage>,
    #[serde(flatten)]
    echo: &'a EchoedFields,
}

#[derive(Serialize)]
pub(super) struct ResponseError<'a> {
    code: &'a str,
    message: &'a str,
}

#[derive(Serialize)]
pub(super) struct IncompleteDetails {
    reason: &'static str,
}

/// An item in the output of a response.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ResponsesItem {
    Message {
        id: String,
        status: &'static str,
        role: &'static str,
        content: Vec<TextPart>,
    },
    FunctionCall {
        id: String,
        status: &'static str,
        call_id: String,
        name: String,
        arguments: String,
    },
    CustomToolCall {
        id: String,
        status: &'static str,
        call_id: String,
        name: String,
        input: String,
    },
}

/// A part of a message item's content.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum TextPart {
    OutputText { text: String, annotations: [(); 0], logprobs: [(); 0] },
}

impl TextPart {
    pub(super) fn new(text: String) -> Self {
        Self::OutputText { text, annotations: [], logprobs: [] }
    }
}

impl ResponsesItem {
    pub(super) fn message(id: &str, status: &'static str, content: Vec<TextPart>) -> Self {
        Self::Message { id: format!("msg_{id}"), status, role: "assistant", content }
    }
}

/// Token counts of the Responses API.
#[derive(Serialize)]
pub(super) struct ResponsesUsage {
    input_tokens: u64,
    input_tokens_details: InputDetails,
    output_tokens: u64,
    output_tokens_details: OutputDetails,
    total_tokens: u64,
}

#[derive(Serialize)]
struct InputDetails {
    cached_tokens: u64,
    cache_write_tokens: u64,
}

#[derive(Serialize)]
struct OutputDetails {
    reasoning_tokens: u64,
}

impl From<chat_response::ChatUsage> for ResponsesUsage {
    fn from(usage: chat_response::ChatUsage) -> Self {
        Self {
            input_tokens: usage.input,
            input_tokens_details: InputDetails {
                cached_tokens: usage.cached,
                cache_write_tokens: usage.written,
            },
            output_tokens: usage.output,
            output_tokens_details: OutputDetails { reasoning_tokens: usage.reasoning },
            total_tokens: usage.input.saturating_add(usage.output),
        }
    }
}

impl<'a> ResponseObject<'a> {
    /// Returns a response without output, as it is at the start of a stream.
    pub(super) fn begin(head: &'a ResponseHead, echo: &'a RequestEcho) -> Self {
        Self {
            id: format!("resp_{}", head.id),
            object: "response",
            created_at: head.created,
            status: "in_progress",
            error: None,
            incomplete_details: None,
            model: head.model.as_deref().unwrap_or(&echo.model),
            output: &[],
            previous_response_id: None,
            store: false,
            truncation: "disabled",
            usage: None,
            echo: &echo.fields,
        }
    }

    /// Returns the response as it is at the end, whether complete or truncated.
    pub(super) fn end(
        self,
        output: &'a [ResponsesItem],
        finish: FinishReason,
        usage: chat_response::ChatUsage,
    ) -> Self {
        let reason = match finish {
            FinishReason::Stop | FinishReason::ToolCalls => None,
            FinishReason::Length => Some("max_output_tokens"),
            FinishReason::ContentFilter => Some("content_filter"),
        };
        Self {
            status: item_status(reason.is_some()),
            incomplete_details: reason.map(|reason| IncompleteDetails { reason }),
            output,
            usage: Some(usage.into()),
            ..self
        }
    }

    /// Returns the response as it is after a failure.
    pub(super) fn fail(self, output: &'a [ResponsesItem], error: &'a BackendError) -> Self {
        let code = error.code.as_deref().unwrap_or(match error.status {
            429 => "rate_limit_exceeded",
            _ => "server_error",
        });
        let error = Some(ResponseError { code, message: &error.message });
        Self { status: "failed", error, output, ..self }
    }
}

pub(super) fn item_status(truncated: bool) -> &'static str {
    if truncated { "incomplete" } else { "completed" }
}

/// Returns a complete response as JSON.
pub(super) fn response(reply: &ChatResponse, echo: &RequestEcho) -> String {
    let mut output = Vec::new();
    let last = usize::from(!reply.text.is_empty()) + reply.calls.len();
    let id_and_status = |at: usize| {
        let truncated = at + 1 == last && reply.finish.is_truncated();
        (format!("{}_{at}", reply.head.id), item_status(truncated))
    };
    if !reply.text.is_empty() {
        let (id, status) = id_and_status(0);
        output.push(ResponsesItem::message(&id, status, vec![TextPart::new(reply.text.clone())]));
    }
    for call in &reply.calls {
        let (id, status) = id_and_status(output.len());
        output.push(echo.call(call, &id, status));
    }
    let response = ResponseObject::begin(&reply.head, echo).end(&output, reply.finish, reply.usage);
    serde_json::to_string(&response).unwrap_or_default()
}

/// Returns the input of a custom tool. `arguments` are those of the function that replaces it. If they are not the
/// expected object, the model probably wrote the input directly, so they are returned unchanged.
pub(super) fn input(arguments: &str) -> String {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct CustomArguments {
        input: String,
    }
    match serde_json::from_str::<CustomArguments>(arguments) {
        Ok(arguments) => arguments.input,
        Err(_) => arguments.to_owned(),
    }
}

/// Returns an error as JSON. All of OpenAI's APIs have the same error format, so a backend's error in this format is
/// forwarded unchanged.
pub(super) fn error(error: &BackendError) -> String {
    #[derive(Serialize)]
    struct ErrorBody {
        error: RawJson,
    }
    #[derive(Serialize)]
    struct ErrorObject<'a> {
        message: &'a str,
        r#type: &'static str,
        param: Option<&'static str>,
        code: Option<&'static str>,
    }
    let kind = match error.status {
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    };
    let raw = error.raw.clone().unwrap_or_else(|| {
        let inner = ErrorObject { message: &error.message, r#type: kind, param: None, code: None };
        serde_json::to_string(&inner).unwrap_or_default()
    });
    serde_json::to_string(&ErrorBody { error: RawJson::new(&raw) }).unwrap_or_default()
}
