//! `generateContent` and `streamGenerateContent`.

use serde_json::{Value, json};

use super::{Ask, Call, Heard, SYSTEM, Turn, Voice, list, text};
use crate::tools::Tool;

pub(super) struct Gemini;

impl Voice for Gemini {
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
        let result = |(call, text): &(&Call, String)| json!({"functionResponse": {"id": call.id, "name": call.name, "response": {"result": text}}});
        vec![json!({"role": "user", "parts": results.iter().map(result).collect::<Vec<_>>()})]
    }

    fn request(&self, ask: &Ask<'_>) -> (&'static str, Value) {
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

    fn whole(&self, body: &Value) -> Heard {
        self.events(std::slice::from_ref(body))
    }

    fn events(&self, events: &[Value]) -> Heard {
        let mut turn = Turn::default();
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
                    // The end of a stream is a part without content, which the SDK leaves out.
                    continue;
                } else {
                    turn.text.push_str(text(&part["text"]));
                }
                parts.push(part.clone());
            }
        }
        (turn, vec![json!({"role": "model", "parts": parts})])
    }
}
