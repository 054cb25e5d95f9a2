//! Requests of the four APIs as a client writes them. `client_responses` reads the responses.

use serde_json::{Value, json};
use toolcrib_dialect::Api;
use toolcrib_testkit::provider::Dialect;

use crate::client_responses::Call;

/// One kind of request: an API, with or without streaming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClientCase {
    pub(crate) api: Api,
    pub(crate) stream: bool,
}

pub(crate) const APIS: [Api; 4] = [Api::Chat, Api::Responses, Api::Messages, Api::Gemini];

/// Returns every API, with and without streaming.
pub(crate) fn cases() -> impl Iterator<Item = ClientCase> {
    APIS.into_iter().flat_map(|api| [false, true].map(|stream| ClientCase { api, stream }))
}

/// Returns every API with streaming.
pub(crate) fn streams() -> impl Iterator<Item = ClientCase> {
    cases().filter(|case| case.stream)
}

/// A tool: its name, its description, its schema.
pub(crate) type Tool = (String, String, Value);

/// The goal that the scripted model pursues in most tests.
pub(crate) const GOAL: &str = r#"goal: crm__find_customer {"q":"Ada"}"#;

/// Returns `count` tools of a made-up company. The first is `crm__find_customer {q}`.
pub(crate) fn tools(count: usize) -> Vec<Tool> {
    let mut tools = vec![(
        "crm__find_customer".to_owned(),
        "Finds a customer of ours by name or number.".to_owned(),
        json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}),
    )];
    let jobs = ["list", "create", "delete", "archive", "export"];
    let things = ["invoice", "order", "parcel", "meeting", "contract", "ticket", "budget"];
    for at in 0..count.saturating_sub(1) {
        let (job, thing, office) = (jobs[at % 5], things[at / 5 % 7], at / 35);
        tools.push((
            format!("office{office}__{job}_{thing}"),
            format!("Lets you {job} one {thing} of office {office}, with all that belongs to it."),
            json!({"type": "object", "properties": {
                "key": {"type": "string", "description": format!("Which {thing}, by its key.")},
                "reason": {"type": "string", "description": "Why, for the protocol."},
                "quiet": {"type": "boolean", "description": "Whether nobody is told."}
            }, "required": ["key"]}),
        ));
    }
    tools
}

impl ClientCase {
    /// Returns the scripted provider's name for the API.
    pub(crate) fn dialect(self) -> Dialect {
        match self.api {
            Api::Chat => Dialect::Chat,
            Api::Responses => Dialect::Responses,
            Api::Messages => Dialect::Anthropic,
            Api::Gemini => Dialect::Gemini,
        }
    }

    pub(crate) fn model(self) -> &'static str {
        match self.api {
            Api::Chat | Api::Responses => "gpt-5.4",
            Api::Messages => "claude-opus-4-5",
            Api::Gemini => "gemini-3-pro",
        }
    }

    pub(crate) fn path(self) -> String {
        self.path_of(self.model())
    }

    /// Returns the path of a request to this model.
    pub(crate) fn path_of(self, model: &str) -> String {
        match (self.api, self.stream) {
            (Api::Chat, _) => "/v1/chat/completions".into(),
            (Api::Responses, _) => "/v1/responses".into(),
            (Api::Messages, _) => "/v1/messages".into(),
            (Api::Gemini, false) => format!("/v1beta/models/{model}:generateContent"),
            (Api::Gemini, true) => format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
        }
    }

    /// Returns the header in which this API's clients send their credential, and the prefix of the header's value.
    pub(crate) fn credential(self) -> (&'static str, &'static str) {
        match self.api {
            Api::Chat | Api::Responses => ("authorization", "Bearer "),
            Api::Messages => ("x-api-key", ""),
            Api::Gemini => ("x-goog-api-key", ""),
        }
    }

    /// Returns the first request of a conversation.
    pub(crate) fn ask(self, text: &str, tools: &[Tool]) -> Value {
        self.body(&[self.user(text)], tools)
    }

    /// Returns the body of a request with this history.
    pub(crate) fn body(self, history: &[Value], tools: &[Tool]) -> Value {
        let tools: Vec<Value> = tools.iter().map(|tool| self.tool(tool)).collect();
        let mut body = match self.api {
            Api::Chat => json!({"model": self.model(), "messages": history}),
            Api::Responses => json!({"model": self.model(), "input": history}),
            Api::Messages => {
                json!({"model": self.model(), "max_tokens": 1000, "messages": history})
            }
            Api::Gemini => json!({"contents": history}),
        };
        if !tools.is_empty() {
            body["tools"] = match self.api {
                Api::Gemini => json!([{"functionDeclarations": tools}]),
                _ => tools.into(),
            };
        }
        if self.stream && self.api != Api::Gemini {
            body["stream"] = true.into();
        }
        body
    }

    fn tool(self, (name, description, schema): &Tool) -> Value {
        let function = json!({"name": name, "description": description});
        let mut tool = function.clone();
        match self.api {
            Api::Chat => {
                tool = json!({"type": "function", "function": function});
                tool["function"]["parameters"] = schema.clone();
            }
            Api::Responses => {
                tool["type"] = "function".into();
                tool["parameters"] = schema.clone();
            }
            Api::Messages => tool["input_schema"] = schema.clone(),
            Api::Gemini => tool["parametersJsonSchema"] = schema.clone(),
        }
        tool
    }

    /// Returns a message of the user.
    pub(crate) fn user(self, text: &str) -> Value {
        match self.api {
            Api::Gemini => json!({"role": "user", "parts": [{"text": text}]}),
            _ => json!({"role": "user", "content": text}),
        }
    }

    /// Returns the message with the result of a tool call.
    pub(crate) fn result(self, call: &Call, text: &str) -> Value {
        let (id, name) = (&call.id, &call.name);
        match self.api {
            Api::Chat => json!({"role": "tool", "tool_call_id": id, "content": text}),
            Api::Responses => {
                json!({"type": "function_call_output", "call_id": id, "output": text})
            }
            Api::Messages => json!({"role": "user", "content":
                [{"type": "tool_result", "tool_use_id": id, "content": text}]}),
            Api::Gemini => json!({"role": "user", "parts":
                [{"functionResponse": {"id": id, "name": name, "response": {"output": text}}}]}),
        }
    }

    /// Returns the history in the body of a request.
    pub(crate) fn history(self, body: &Value) -> Vec<Value> {
        let name = match self.api {
            Api::Chat | Api::Messages => "messages",
            Api::Responses => "input",
            Api::Gemini => "contents",
        };
        body[name].as_array().unwrap().clone()
    }

    /// Whether a body is an error in the format of this API.
    pub(crate) fn is_error(self, body: &Value, status: u16) -> bool {
        let error = &body["error"];
        error["message"].is_string()
            && match self.api {
                Api::Chat | Api::Responses => error["type"].is_string(),
                Api::Messages => body["type"] == "error" && error["type"].is_string(),
                Api::Gemini => error["code"] == status && error["status"].is_string(),
            }
    }
}
