//! The agent's side of Anthropic's Messages API.

use serde_json::{Value, json};

use super::{
    AgentRequest, ApiClient, Call, ModelMessage, ParsedResponse, SYSTEM, add, list, text,
    with_call_id,
};
use crate::tools::Tool;

pub(super) struct Messages;

impl ApiClient for Messages {
    fn history(&self) -> &'static str {
        "messages"
    }

    fn tools(&self, tools: &[Tool]) -> Value {
        let tool = |tool: &Tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema});
        let mut tools: Vec<Value> = tools.iter().map(tool).collect();
        // This marks the complete list of tools for caching, as Anthropic's documentation advises.
        if let Some(last) = tools.last_mut() {
            last["cache_control"] = json!({"type": "ephemeral"});
        }
        tools.into()
    }

    fn user(&self, text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    fn results(&self, results: &[(&Call, String)]) -> Vec<Value> {
        let result = |(call, text): &(&Call, String)| {
            with_call_id(json!({"type": "tool_result", "content": text}), "tool_use_id", call)
        };
        vec![json!({"role": "user", "content": results.iter().map(result).collect::<Vec<_>>()})]
    }

    fn calls<'a>(&self, echo: &'a mut [Value]) -> (Vec<&'a mut Value>, &'static str) {
        let blocks = echo.iter_mut().filter_map(|message| message["content"].as_array_mut());
        (blocks.flatten().filter(|block| block["type"] == "tool_use").collect(), "id")
    }

    fn request(&self, ask: &AgentRequest<'_>) -> (&'static str, Value) {
        let mut body = json!({
            "model": "claude-opus-5", "max_tokens": 4000, "system": SYSTEM,
            "messages": ask.history, "tools": ask.tools,
        });
        if ask.thinks {
            body["thinking"] = json!({"type": "adaptive"});
        }
        if ask.stream {
            body["stream"] = true.into();
        }
        ("/v1/messages", body)
    }

    fn whole(&self, body: &Value) -> ParsedResponse {
        (turn(list(&body["content"]), &body["stop_reason"]), echo(&body["content"]))
    }

    fn events(&self, events: &[Value]) -> ParsedResponse {
        let mut blocks: Vec<Value> = Vec::new();
        let mut inputs: Vec<String> = Vec::new();
        let mut stop = Value::Null;
        assert_eq!(events.iter().filter(|event| event["type"] == "message_start").count(), 1);
        for event in events {
            let at = usize::try_from(event["index"].as_u64().unwrap_or_default()).unwrap();
            match text(&event["type"]) {
                "content_block_start" => {
                    assert_eq!(at, blocks.len());
                    blocks.push(event["content_block"].clone());
                    inputs.push(String::new());
                }
                "content_block_delta" => {
                    let delta = &event["delta"];
                    for key in ["text", "thinking", "signature"] {
                        if delta.get(key).is_some() {
                            add(&mut blocks[at], key, &delta[key]);
                        }
                    }
                    inputs[at].push_str(text(&delta["partial_json"]));
                }
                "message_delta" => stop = event["delta"]["stop_reason"].clone(),
                _ => {}
            }
        }
        for (block, input) in blocks.iter_mut().zip(&inputs).filter(|(_, input)| !input.is_empty())
        {
            block["input"] = serde_json::from_str(input).unwrap();
        }
        (turn(&blocks, &stop), echo(&blocks.into()))
    }
}

fn echo(content: &Value) -> Vec<Value> {
    vec![json!({"role": "assistant", "content": content})]
}

fn turn(blocks: &[Value], stop: &Value) -> ModelMessage {
    let mut turn = ModelMessage { stop: text(stop).to_owned(), ..ModelMessage::default() };
    for block in blocks {
        match text(&block["type"]) {
            "text" => turn.text.push_str(text(&block["text"])),
            "thinking" => turn.thoughts.push_str(text(&block["thinking"])),
            "tool_use" => turn.calls.push(Call {
                id: text(&block["id"]).to_owned(),
                name: text(&block["name"]).to_owned(),
                arguments: block["input"].clone(),
            }),
            other => panic!("an agent does not know what `{other}` is: {block}"),
        }
    }
    turn
}
