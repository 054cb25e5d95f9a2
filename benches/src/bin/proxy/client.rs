//! Builds requests as the clients of the four APIs send them.

use serde_json::{Value, json};
use toolcrib_bench::{BenchError, lines, repeated};
use toolcrib_testkit::provider::Dialect;

pub(crate) const APIS: [Dialect; 4] =
    [Dialect::Chat, Dialect::Responses, Dialect::Anthropic, Dialect::Gemini];

/// Repeated 50 times, this is a system prompt of about the length that agents send.
const SYSTEM: &str =
    "You are the office's assistant. Use tools where they help, and say what you did. ";

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) headers: String,
    pub(crate) body: String,
}

/// Returns the name of an API, as printed in the tables.
pub(crate) fn name(api: Dialect) -> &'static str {
    match api {
        Dialect::Chat => "Chat Completions",
        Dialect::Responses => "Responses",
        Dialect::Anthropic => "Messages",
        Dialect::Gemini => "Gemini",
    }
}

/// Returns `count` tools of the measured catalog, skipping the first `from`. A different `from` gives different tools.
pub(crate) fn tools(from: usize, count: usize) -> Result<Vec<Value>, BenchError> {
    Ok(repeated(&lines()?, from + count).skip(from).collect())
}

/// Returns a user message that makes the scripted model call one of the tools with `{}`. The chosen tool has no
/// required arguments, so the call is valid and the search is the only hidden round.
pub(crate) fn goal(tools: &[Value]) -> String {
    let bare =
        |tool: &&Value| tool["input_schema"]["required"].as_array().is_none_or(Vec::is_empty);
    let tool = tools.iter().find(bare).unwrap_or(&Value::Null);
    format!("goal: {} {{}}", tool["name"].as_str().unwrap_or_default())
}

impl Request {
    /// Creates the first request of a conversation, with these tools and with `says` as the user message.
    pub(crate) fn new(api: Dialect, tools: &[Value], says: &str, stream: bool) -> Self {
        let system = SYSTEM.repeat(50);
        let (name, text, schema) = ("name", "description", "input_schema");
        let declare = |write: &dyn Fn(&Value, &Value, &Value) -> Value| -> Vec<Value> {
            tools.iter().map(|tool| write(&tool[name], &tool[text], &tool[schema])).collect()
        };
        let (path, key, body) = match api {
            Dialect::Chat => {
                let tools = declare(&|name, text, schema| {
                    json!({"type": "function", "function":
                        {"name": name, "description": text, "parameters": schema}})
                });
                let messages = json!([{"role": "system", "content": system}, {"role": "user", "content": says}]);
                let body = json!({"model": "gpt-5.2", "messages": messages, "tools": tools, "stream": stream});
                ("/v1/chat/completions", "Authorization: Bearer sk-client", body)
            }
            Dialect::Responses => {
                let tools = declare(&|name, text, schema| {
                    json!({"type": "function", "name": name, "description": text,
                        "parameters": schema, "strict": false})
                });
                let input = json!([{"role": "user", "content": says}]);
                let body = json!({"model": "gpt-5.2", "instructions": system, "input": input,
                    "tools": tools, "stream": stream});
                ("/v1/responses", "Authorization: Bearer sk-client", body)
            }
            Dialect::Anthropic => {
                let tools = declare(
                    &|name, text, schema| json!({"name": name, "description": text, "input_schema": schema}),
                );
                let messages = json!([{"role": "user", "content": says}]);
                let body = json!({"model": "claude-opus-5", "max_tokens": 4096, "system": system,
                    "messages": messages, "tools": tools, "stream": stream});
                ("/v1/messages", "x-api-key: sk-client\r\nanthropic-version: 2023-06-01", body)
            }
            Dialect::Gemini => {
                let tools = declare(
                    &|name, text, schema| json!({"name": name, "description": text, "parametersJsonSchema": schema}),
                );
                let body = json!({
                    "contents": [{"role": "user", "parts": [{"text": says}]}],
                    "systemInstruction": {"parts": [{"text": system}]},
                    "tools": [{"functionDeclarations": tools}],
                });
                let path = if stream {
                    "/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse"
                } else {
                    "/v1beta/models/gemini-3-pro-preview:generateContent"
                };
                (path, "x-goog-api-key: sk-client", body)
            }
        };
        let headers = format!("{key}\r\nUser-Agent: bench/1\r\nAccept: */*\r\n");
        Self { path: path.to_owned(), headers, body: body.to_string() }
    }
}
