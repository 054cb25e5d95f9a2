//! Whole responses and errors, as Responses has them.

use serde::{Deserialize, Serialize};
use toolcrib_text::json::Fields;

use crate::translate::ask::Raw;
use crate::translate::foreign;
use crate::translate::reply::{self, Call, Finish, Head, Reply};
use crate::translate::trouble::Trouble;

/// What a response repeats of its request, and which of the functions stand for custom tools.
#[derive(Debug, Default)]
pub(super) struct Echo {
    model: String,
    custom: Vec<String>,
    fields: Repeated,
}

/// The fields that are repeated as they came, and else as OpenAI would fill them in.
#[derive(Debug, Default, Serialize)]
struct Repeated {
    instructions: Option<Raw>,
    max_output_tokens: Option<Raw>,
    metadata: Option<Raw>,
    parallel_tool_calls: Option<Raw>,
    reasoning: Option<Raw>,
    temperature: Option<Raw>,
    text: Option<Raw>,
    tool_choice: Option<Raw>,
    tools: Option<Raw>,
    top_p: Option<Raw>,
    user: Option<Raw>,
}

impl Echo {
    pub(super) fn of(fields: &Fields<'_>, custom: Vec<String>) -> Self {
        let raw = |key: &str| Raw::of(fields, key);
        let or = |key: &str, default: &str| raw(key).or_else(|| Some(Raw::new(default)));
        Self {
            model: foreign::text(fields, "model").unwrap_or_default(),
            custom,
            fields: Repeated {
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

    /// The item for a call of the model.
    pub(super) fn call(&self, call: &Call, id: &str, status: &'static str) -> Item {
        let (call_id, name) = (call.id.clone(), call.name.clone());
        if self.is_custom(&name) {
            let input = input(&call.arguments);
            return Item::CustomToolCall { id: format!("ctc_{id}"), status, call_id, name, input };
        }
        let arguments = call.arguments.clone();
        Item::FunctionCall { id: format!("fc_{id}"), status, call_id, name, arguments }
    }

    pub(super) fn is_custom(&self, name: &str) -> bool {
        self.custom.iter().any(|custom| custom == name)
    }
}

/// A response, at any stage.
#[derive(Serialize)]
pub(super) struct Response<'a> {
    id: String,
    object: &'static str,
    created_at: u64,
    pub(super) status: &'static str,
    pub(super) error: Option<Failure<'a>>,
    pub(super) incomplete_details: Option<Incomplete>,
    model: &'a str,
    pub(super) output: &'a [Item],
    previous_response_id: Option<&'static str>,
    /// Nothing is kept, whatever was asked: who goes on from this id must hear so.
    store: bool,
    truncation: &'static str,
    pub(super) usage: Option<Usage>,
    #[serde(flatten)]
    echo: &'a Repeated,
}

#[derive(Serialize)]
pub(super) struct Failure<'a> {
    code: &'a str,
    message: &'a str,
}

#[derive(Serialize)]
pub(super) struct Incomplete {
    reason: &'static str,
}

/// A part of the output.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item {
    Message {
        id: String,
        status: &'static str,
        role: &'static str,
        content: Vec<Part>,
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

/// A part of a message.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part {
    OutputText { text: String, annotations: [(); 0], logprobs: [(); 0] },
}

impl Part {
    pub(super) fn new(text: String) -> Self {
        Self::OutputText { text, annotations: [], logprobs: [] }
    }
}

impl Item {
    pub(super) fn message(id: &str, status: &'static str, content: Vec<Part>) -> Self {
        Self::Message { id: format!("msg_{id}"), status, role: "assistant", content }
    }
}

/// Tokens, as Responses counts them.
#[derive(Serialize)]
pub(super) struct Usage {
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

impl From<reply::Usage> for Usage {
    fn from(usage: reply::Usage) -> Self {
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

impl<'a> Response<'a> {
    /// A response that has only begun.
    pub(super) fn begin(head: &'a Head, echo: &'a Echo) -> Self {
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

    /// The response as it ended.
    pub(super) fn end(self, output: &'a [Item], finish: Finish, usage: reply::Usage) -> Self {
        let reason = match finish {
            Finish::Stop | Finish::Calls => None,
            Finish::Length => Some("max_output_tokens"),
            Finish::Filter => Some("content_filter"),
        };
        Self {
            status: status(reason.is_some()),
            incomplete_details: reason.map(|reason| Incomplete { reason }),
            output,
            usage: Some(usage.into()),
            ..self
        }
    }

    /// The response as it failed.
    pub(super) fn fail(self, output: &'a [Item], trouble: &'a Trouble) -> Self {
        let code = trouble.code.as_deref().unwrap_or(match trouble.status {
            429 => "rate_limit_exceeded",
            _ => "server_error",
        });
        let error = Some(Failure { code, message: &trouble.message });
        Self { status: "failed", error, output, ..self }
    }
}

pub(super) fn status(cut: bool) -> &'static str {
    if cut { "incomplete" } else { "completed" }
}

/// A whole response.
pub(super) fn response(reply: &Reply, echo: &Echo) -> String {
    let mut output = Vec::new();
    let last = usize::from(!reply.text.is_empty()) + reply.calls.len();
    let place = |at: usize| {
        let cut = at + 1 == last && reply.finish.is_cut();
        (format!("{}_{at}", reply.head.id), status(cut))
    };
    if !reply.text.is_empty() {
        let (id, status) = place(0);
        output.push(Item::message(&id, status, vec![Part::new(reply.text.clone())]));
    }
    for call in &reply.calls {
        let (id, status) = place(output.len());
        output.push(echo.call(call, &id, status));
    }
    let response = Response::begin(&reply.head, echo).end(&output, reply.finish, reply.usage);
    serde_json::to_string(&response).unwrap_or_default()
}

/// The text of a custom tool, out of the arguments of its function. A model that wrote something else
/// may well have written the text itself.
pub(super) fn input(arguments: &str) -> String {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Arguments {
        input: String,
    }
    match serde_json::from_str::<Arguments>(arguments) {
        Ok(arguments) => arguments.input,
        Err(_) => arguments.to_owned(),
    }
}

/// The body of an error. OpenAI's APIs share its shape, so that it passes as it came where it has it.
pub(super) fn error(trouble: &Trouble) -> String {
    #[derive(Serialize)]
    struct Body {
        error: Raw,
    }
    #[derive(Serialize)]
    struct Inner<'a> {
        message: &'a str,
        r#type: &'static str,
        param: Option<&'static str>,
        code: Option<&'static str>,
    }
    let kind = match trouble.status {
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    };
    let raw = trouble.raw.clone().unwrap_or_else(|| {
        let inner = Inner { message: &trouble.message, r#type: kind, param: None, code: None };
        serde_json::to_string(&inner).unwrap_or_default()
    });
    serde_json::to_string(&Body { error: Raw::new(&raw) }).unwrap_or_default()
}
