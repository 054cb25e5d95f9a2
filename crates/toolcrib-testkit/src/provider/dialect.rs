//! The four APIs, and how each one checks, reads and answers a request.

use bytes::Bytes;
use serde_json::Value;

use crate::provider::ids::Ids;
use crate::provider::model::ModelReply;
use crate::provider::options::Options;
use crate::provider::parsed_request::ParsedRequest;
use crate::provider::responses::History;
use crate::provider::{anthropic, canned_response, chat, gemini, responses};

/// An LLM API.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Dialect {
    /// `OpenAI` Chat Completions.
    Chat,
    /// `OpenAI` Responses.
    Responses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini `generateContent`.
    Gemini,
}

/// An error that the API returns for an invalid request.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: u16,
    pub(crate) message: String,
}

pub(crate) fn bad_request(message: impl Into<String>) -> ApiError {
    ApiError { status: 400, message: message.into() }
}

/// Everything that is needed to write a response, except the model's reply.
pub(crate) struct ResponseContext<'a> {
    pub(crate) request: &'a Value,
    pub(crate) options: &'a Options,
    pub(crate) model: String,
    pub(crate) ids: Ids,
    /// The number of input tokens to report: a quarter of the request's bytes, rounded up.
    pub(crate) input: u64,
    /// The number of output tokens to report: a quarter of the reply's bytes, rounded up.
    pub(crate) output: u64,
    pub(crate) history: &'a History,
}

/// The body of a response, in the format of its API.
pub(crate) enum ResponseBody {
    Json(Value),
    /// A stream of server-sent events.
    Events(Vec<Bytes>),
}

impl Dialect {
    /// Returns the body of an error response of this API.
    pub fn error(self, status: u16, message: &str) -> Value {
        canned_response::error_body(self, status, message)
    }

    pub(crate) fn check(self, request: &Value, options: &Options) -> Result<(), ApiError> {
        match self {
            Self::Chat => chat::check(request, options),
            Self::Responses => responses::check(request, options),
            Self::Anthropic => anthropic::check(request, options),
            Self::Gemini => gemini::check(request),
        }
    }

    pub(crate) fn read(self, request: &Value) -> ParsedRequest {
        match self {
            Self::Chat => chat::read(request),
            Self::Responses => responses::read(request),
            Self::Anthropic => anthropic::read(request),
            Self::Gemini => gemini::read(request),
        }
    }

    pub(crate) fn write(
        self,
        reply: &ModelReply,
        context: ResponseContext<'_>,
        stream: bool,
    ) -> ResponseBody {
        match self {
            Self::Chat => chat::write(reply, context, stream),
            Self::Responses => responses::write(reply, context, stream),
            Self::Anthropic => anthropic::write(reply, context, stream),
            Self::Gemini => gemini::write(reply, context, stream),
        }
    }
}

/// Returns the items of a JSON array, or an empty slice if the value is not an array.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
