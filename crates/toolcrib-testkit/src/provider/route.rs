//! Determines the API and the response format from the path of a request.

use serde_json::Value;

use crate::provider::dialect::Dialect;
use crate::provider::received_request::ReceivedRequest;

/// The API, the response format and the model that a path selects.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) dialect: Dialect,
    pub(crate) format: ResponseFormat,
    /// The model, if the path names it.
    pub(crate) model: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ResponseFormat {
    /// JSON or server-sent events, depending on `stream` in the request body.
    Body,
    /// One JSON object.
    Whole,
    /// Server-sent events.
    Events,
    /// A JSON array with the objects that would otherwise be sent as events.
    Array,
    /// A token count.
    Count,
}

impl Route {
    /// Returns the route of a request, or `None` if the request neither generates a response nor counts tokens.
    pub(crate) fn of(request: &ReceivedRequest) -> Option<Self> {
        if request.method != "POST" {
            return None;
        }
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        // Only the end of a path is compared, because the base URLs of OpenAI's SDKs contain `/v1` and those of
        // Anthropic's do not, and a proxy may use either.
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
