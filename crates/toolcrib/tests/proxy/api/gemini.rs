//! The agent's side of Gemini's `generateContent` and `streamGenerateContent`.

use serde_json::{Value, json};

use super::{AgentRequest, ApiClient, Call, ModelMessage, ParsedResponse, SYSTEM, list, text};
use crate::tools::Tool;

pub(super) struct Gemini;

impl ApiClient for Gemini {
    fn history(&self) -> &'static str {
        "contents"
    }

    fn tools(&self, tools: &[Tool]) -> Value {
        let function = |tool: &Tool| json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.schema});
        json!([{"functionDeclarations": tools.iter().map(function).collect::<Vec<_>>()}])
    }

    fn user(&self, text: &str) -> Value {
        json!({"role": "user", "parts": [{"text": text}]})
    }

    fn results(&self, results: &[(&Call, String)]) -> Vec<Value> {
        let result = |(call, text): &(&Call, String)| {
            let mut response = json!({"name": call.name, "response": {"result": text}});
            if !call.id.is_empty() {
                response["id"] = call.id.as_str().into();
            }
            json!({"functionResponse": response})
        };
        vec![json!({"role": "user", "parts": results.iter().map(result).collect::<Vec<_>>()})]
    }

    fn request(&self, ask: &AgentRequest<'_>) -> (&'static str, Value) {
        let body = json!({
            "systemInstruction": {"parts": [{"text": SYSTEM}]},
            "generationConfig": {"thinkingConfig": {"includeThoughts": true}},
            "contents": ask.history,
            "tools": ask.tools,
        });
        if ask.stream {
            ("/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse", body)
        } else {
            ("/v1beta/models/gemini-3-pro:generateContent", body)
        }
    }

    fn whole(&self, body: &Value) -> ParsedResponse {
        self.events(std::slice::from_ref(body))
    }

    fn events(&self, events: &[Value]) -> ParsedResponse {
        let mut turn = ModelMessage::default();
        let mut parts: Vec<Value> = Vec::new();
        for candidate in events.iter().flat_map(|event| list(&event["candidates"])) {
            assert!(turn.stop.is_empty(), "nothing follows the end: {candidate}");
            text(&candidate["finishReason"]).clone_into(&mut turn.stop);
            for part in list(&candidate["content"]["parts"]) {
                let call = &part["functionCall"];
                if call.is_object() {
                    turn.calls.push(Call {
                        id: text(&call["id"]).to_owned(),
                        name: text(&call["name"]).to_owned(),
                        arguments: call["args"].clone(),
                    });
                } else if part["thought"] == true {
                    turn.thoughts.push_str(text(&part["text"]));
                } else if text(&part["text"]).is_empty() {
                    // The last event of a stream contains a part without content, which the SDK drops.
                    continue;
                } else {
                    turn.text.push_str(text(&part["text"]));
                }
                parts.push(part.clone());
            }
        }
        (turn, vec![json!({"role": "model", "parts": parts})])
    }

    fn calls<'a>(&self, echo: &'a mut [Value]) -> (Vec<&'a mut Value>, &'static str) {
        let parts = echo.iter_mut().filter_map(|entry| entry["parts"].as_array_mut()).flatten();
        (parts.filter_map(|part| part.get_mut("functionCall")).collect(), "id")
    }

    /// Changes ids and signatures as Gemini CLI 0.61 does. It invents missing ids, and prefixes existing ids with the
    /// tool's name. The first call of a message gets a signature if it has none.
    fn rewrite_ids(&self, turn: &mut ModelMessage, echo: &mut [Value], at: usize) {
        let parts = echo.iter_mut().filter_map(|entry| entry["parts"].as_array_mut()).flatten();
        let parts = parts.filter(|part| part.get("functionCall").is_some());
        for (position, (part, call)) in parts.zip(&mut turn.calls).enumerate() {
            call.id = if call.id.is_empty() {
                format!("{}_1763326800000_{}", call.name, at * 100 + position)
            } else {
                format!("{}__{}", call.name, call.id)
            };
            part["functionCall"]["id"] = call.id.as_str().into();
            if position == 0 && part.get("thoughtSignature").is_none() {
                part["thoughtSignature"] = "skip_thought_signature_validator".into();
            }
        }
    }
}
