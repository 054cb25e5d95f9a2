//! Whole responses and errors, as Messages has them.

use serde::Serialize;
use toolcrib_text::json::Fields;

use crate::translate::ask::Raw;
use crate::translate::reply::{self, Call, Finish, Head, Reply};
use crate::translate::trouble::Trouble;

/// A message, whole or at its beginning.
#[derive(Debug, Serialize)]
pub(super) struct Message<'a> {
    id: String,
    r#type: &'static str,
    role: &'static str,
    model: &'a str,
    content: Vec<Block<'a>>,
    stop_reason: Option<&'static str>,
    stop_sequence: Option<&'static str>,
    usage: Usage,
}

/// A part of its content.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text { text: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: Raw },
}

/// Tokens, as Messages counts them: each token once, be it fresh, read from a cache or written to it.
#[derive(Debug, Default, Serialize)]
#[expect(clippy::struct_field_names, reason = "the API's own names")]
pub(super) struct Usage {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
}

impl From<reply::Usage> for Usage {
    fn from(usage: reply::Usage) -> Self {
        Self {
            input_tokens: usage.input.saturating_sub(usage.cached).saturating_sub(usage.written),
            cache_creation_input_tokens: usage.written,
            cache_read_input_tokens: usage.cached,
            output_tokens: usage.output,
        }
    }
}

impl<'a> Message<'a> {
    /// A message that has only begun. `model` is the one that was asked for.
    pub(super) fn begin(head: &'a Head, model: &'a str) -> Self {
        Self {
            id: format!("msg_{}", head.id),
            r#type: "message",
            role: "assistant",
            model: head.model.as_deref().unwrap_or(model),
            content: Vec::new(),
            stop_reason: None,
            stop_sequence: None,
            usage: Usage::default(),
        }
    }
}

/// A whole response.
pub(super) fn message(reply: &Reply, model: &str) -> String {
    let mut message = Message::begin(&reply.head, model);
    if !reply.text.is_empty() {
        message.content.push(Block::Text { text: &reply.text });
    }
    message.content.extend(reply.calls.iter().map(tool_use));
    message.stop_reason = Some(stop_reason(reply.finish));
    message.usage = reply.usage.into();
    serde_json::to_string(&message).unwrap_or_default()
}

fn tool_use(call: &Call) -> Block<'_> {
    Block::ToolUse { id: &call.id, name: &call.name, input: input(&call.arguments) }
}

/// Arguments as the object that they must be. What is none is kept under `_raw`: the tool will refuse
/// it, and the model sees what it wrote. An empty object in its place would be a call that the model
/// never made, and one that some tools accept.
fn input(arguments: &str) -> Raw {
    let arguments = arguments.trim();
    match arguments {
        "" | "null" => Raw::new("{}"),
        _ if Fields::read(arguments).is_some() => Raw::new(arguments),
        _ => {
            #[derive(Serialize)]
            struct Unread<'a> {
                _raw: &'a str,
            }
            Raw::new(&serde_json::to_string(&Unread { _raw: arguments }).unwrap_or_default())
        }
    }
}

pub(super) fn stop_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::Calls => "tool_use",
        Finish::Length => "max_tokens",
        Finish::Filter => "refusal",
    }
}

/// The body of an error, and the data of an event that is one.
pub(super) fn error(trouble: &Trouble) -> String {
    #[derive(Serialize)]
    struct Body<'a> {
        r#type: &'static str,
        error: Inner<'a>,
    }
    #[derive(Serialize)]
    struct Inner<'a> {
        r#type: &'static str,
        message: &'a str,
    }
    let kind = match trouble.status {
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
    let error = Inner { r#type: kind, message: &trouble.message };
    serde_json::to_string(&Body { r#type: "error", error }).unwrap_or_default()
}
