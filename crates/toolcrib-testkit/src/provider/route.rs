//! Maps a path to an API and a response format.

use serde_json::Value;

use crate::provider::dialect::Dialect;
use crate::provider::received_request::ReceivedRequest;

/// The API, the response format and the model that a path selects.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) dialect: Dialect,
    pub(crate) format: ResponseFormat,
    /// The model, if it is part of the path.
    pub(crate) model: Option<String>,
}

/// The format of the response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ResponseFormat {
    /// JSON or events, as the body of the request asks for.
    Body,
    /// One JSON object.
    Whole,
    /// Server-sent events.
    Events,
    /// A JSON array of the objects that would be events.
    Array,
    /// A token count.
    Count,
}

impl Route {
    /// Returns `None` for every path that is not a generation.
    pub(crate) fn of(request: &ReceivedRequest) -> Option<Self> {
        if request.method != "POST" {
            return None;
        }
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        // OpenAI's SDKs have a base URL with `/v1`, Anthropic's without; a proxy may use either.
        let route = |dialect, format| Some(Self { dialect, format, model: None });
        if path.ends_with("/chat/completions") {
            return route(Dialect::Chat, ResponseFormat::Body);
        }
        if path.ends_with("/responses") {
            return route(Dialect::Responses, ResponseFormat::Body);
        }
        if path.ends_with("/messages") {
            return route(Dialect::Anthropic, ResponseFormat::Body);
        }
        if path.ends_with("/messages/count_tokens") {
            return route(Dialect::Anthropic, ResponseFormat::Count);
        }
        let (model, method) = path.rsplit_once("/models/")?.1.split_once(':')?;
        let format = match method {
            "generateContent" => ResponseFormat::Whole,
            "streamGenerateContent" if query.split('&').any(|pair| pair == "alt=sse") => {
                ResponseFormat::Events
            }
            "streamGenerateContent" => ResponseFormat::Array,
            "countTokens" => ResponseFormat::Count,
            _ => return None,
        };
        Some(Self { dialect: Dialect::Gemini, format, model: Some(model.to_owned()) })
    }

    pub(crate) fn model(&self, request: &Value) -> String {
        self.model
            .clone()
            .unwrap_or_else(|| request["model"].as_str().unwrap_or("scripted").to_owned())
    }
}
