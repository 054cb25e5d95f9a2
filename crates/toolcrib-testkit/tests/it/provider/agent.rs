//! A minimal agent for all four APIs. It sends its history, reads the calls in the response, and answers them.

use serde_json::{Value, json};
use toolcrib_testkit::provider::Dialect;

pub(crate) const ALL: [Dialect; 4] =
    [Dialect::Chat, Dialect::Responses, Dialect::Anthropic, Dialect::Gemini];

/// An agent in one conversation.
pub(crate) struct Agent {
    dialect: Dialect,
    url: String,
    tools: Vec<Value>,
    history: Vec<Value>,
}

/// One message of the model, as an agent sees it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ModelMessage {
    pub(crate) text: String,
    pub(crate) calls: Vec<Call>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

/// Returns the definition of a tool with one argument.
pub(crate) fn tool(name: &str) -> Value {
    let schema =
        json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]});
    json!({"name": name, "description": format!("Does {name}"), "schema": schema})
}

pub(crate) fn client() -> reqwest::Client {
    toolcrib_tls::client_builder().build().unwrap()
}

pub(crate) async fn post(url: &str, body: &Value) -> (u16, Value) {
    let answer = client().post(url).json(body).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

impl Agent {
    pub(crate) fn new(dialect: Dialect, url: &str, tools: &[&str], goal: &str) -> Self {
        let tools = tools.iter().map(|name| tool(name)).collect();
        let mut agent = Self { dialect, url: url.to_owned(), tools, history: Vec::new() };
        agent.user(goal);
        agent
    }

    pub(crate) fn user(&mut self, text: &str) {
        self.history.push(match self.dialect {
            Dialect::Gemini => json!({"role": "user", "parts": [{"text": text}]}),
            _ => json!({"role": "user", "content": text}),
        });
    }

    pub(crate) fn endpoint(&self) -> String {
        let path = match self.dialect {
            Dialect::Chat => "/v1/chat/completions",
            Dialect::Responses => "/v1/responses",
            Dialect::Anthropic => "/v1/messages",
            Dialect::Gemini => "/v1beta/models/gemini-3-pro:generateContent",
        };
        format!("{}{path}", self.url)
    }

    pub(crate) fn body(&self) -> Value {
        let tools = self.tools.iter().map(|tool| {
            let (name, description, schema) = (&tool["name"], &tool["description"], &tool["schema"]);
            match self.dialect {
                Dialect::Chat => json!({"type": "function", "function":
                    {"name": name, "description": description, "parameters": schema}}),
                Dialect::Responses => {
                    json!({"type": "function", "name": name, "description": description, "parameters": schema})
                }
                Dialect::Anthropic => json!({"name": name, "description": description, "input_schema": schema}),
                Dialect::Gemini => {
                    json!({"name": name, "description": description, "parametersJsonSchema": schema})
                }
            }
        });
        let tools: Vec<Value> = tools.collect();
        match self.dialect {
            Dialect::Chat => json!({"model": "m", "messages": self.history, "tools": tools}),
            Dialect::Responses => json!({"model": "m", "input": self.history, "tools": tools}),
            Dialect::Anthropic => {
                json!({"model": "m", "max_tokens": 100, "messages": self.history, "tools": tools})
            }
            Dialect::Gemini => {
                json!({"contents": self.history, "tools": [{"functionDeclarations": tools}]})
            }
        }
    }

    /// Sends the conversation, adds the response to the history, and returns the model's message.
    pub(crate) async fn turn(&mut self) -> ModelMessage {
        let (status, answer) = post(&self.endpoint(), &self.body()).await;
        assert_eq!(status, 200, "{answer}");
        match self.dialect {
            Dialect::Chat => {
                let message = &answer["choices"][0]["message"];
                self.history.push(message.clone());
                let calls =
                    message["tool_calls"].as_array().into_iter().flatten().map(|call| Call {
                        id: text(&call["id"]),
                        name: text(&call["function"]["name"]),
                        arguments: serde_json::from_str(
                            call["function"]["arguments"].as_str().unwrap(),
                        )
                        .unwrap(),
                    });
                ModelMessage { text: text(&message["content"]), calls: calls.collect() }
            }
            Dialect::Responses => {
                let output = answer["output"].as_array().unwrap();
                self.history.extend(output.iter().cloned());
                let mut message = ModelMessage::default();
                for item in output {
                    if item["type"] == "message" {
                        message.text += item["content"][0]["text"].as_str().unwrap();
                    } else if item["type"] == "function_call" {
                        message.calls.push(Call {
                            id: text(&item["call_id"]),
                            name: text(&item["name"]),
                            arguments: serde_json::from_str(item["arguments"].as_str().unwrap())
                                .unwrap(),
                        });
                    }
                }
                message
            }
            Dialect::Anthropic => {
                let content = answer["content"].as_array().unwrap();
                self.history.push(json!({"role": "assistant", "content": content}));
                let mut message = ModelMessage::default();
                for block in content {
                    if block["type"] == "text" {
                        message.text += block["text"].as_str().unwrap();
                    } else if block["type"] == "tool_use" {
                        let arguments = block["input"].clone();
                        message.calls.push(Call {
                            id: text(&block["id"]),
                            name: text(&block["name"]),
                            arguments,
                        });
                    }
                }
                message
            }
            Dialect::Gemini => {
                let content = &answer["candidates"][0]["content"];
                self.history.push(content.clone());
                let mut message = ModelMessage::default();
                for part in content["parts"].as_array().unwrap() {
                    if part["functionCall"].is_object() {
                        let call = &part["functionCall"];
                        let arguments = call["args"].clone();
                        message.calls.push(Call {
                            id: text(&call["id"]),
                            name: text(&call["name"]),
                            arguments,
                        });
                    } else {
                        message.text += part["text"].as_str().unwrap();
                    }
                }
                message
            }
        }
    }

    /// Adds the results of the calls in the last message to the history.
    pub(crate) fn results(&mut self, results: &[(&Call, String)]) {
        match self.dialect {
            Dialect::Chat => self.history.extend(
                results.iter().map(|(call, text)| json!({"role": "tool", "tool_call_id": call.id, "content": text})),
            ),
            Dialect::Responses => self.history.extend(results.iter().map(
                |(call, text)| json!({"type": "function_call_output", "call_id": call.id, "output": text}),
            )),
            Dialect::Anthropic => {
                let blocks = results.iter().map(
                    |(call, text)| json!({"type": "tool_result", "tool_use_id": call.id, "content": text}),
                );
                let content: Vec<Value> = blocks.collect();
                self.history.push(json!({"role": "user", "content": content}));
            }
            Dialect::Gemini => {
                let parts = results.iter().map(|(call, text)| {
                    json!({"functionResponse": {"id": call.id, "name": call.name, "response": {"output": text}}})
                });
                let parts: Vec<Value> = parts.collect();
                self.history.push(json!({"role": "user", "parts": parts}));
            }
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
