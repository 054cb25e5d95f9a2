//! The agent's side of Chat Completions.

use serde_json::{Value, json};

use super::{
    AgentRequest, ApiClient, Call, ModelMessage, ParsedResponse, SYSTEM, add, list, text,
    with_call_id,
};
use crate::tools::Tool;

pub(super) struct Chat;

impl ApiClient for Chat {
    fn history(&self) -> &'static str {
        "messages"
    }

    fn tools(&self, tools: &[Tool]) -> Value {
        let function = |tool: &Tool| json!({"name": tool.name, "description": tool.description, "parameters": tool.schema});
        tools.iter().map(|tool| json!({"type": "function", "function": function(tool)})).collect()
    }

    fn initial_history(&self) -> Vec<Value> {
        vec![json!({"role": "system", "content": SYSTEM})]
    }

    fn user(&self, text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    fn results(&self, results: &[(&Call, String)]) -> Vec<Value> {
        let result = |(call, text): &(&Call, String)| {
            with_call_id(json!({"role": "tool", "content": text}), "tool_call_id", call)
        };
        results.iter().map(result).collect()
    }

    fn calls<'a>(&self, echo: &'a mut [Value]) -> (Vec<&'a mut Value>, &'static str) {
        let calls = echo.iter_mut().filter_map(|message| message.get_mut("tool_calls"));
        (calls.filter_map(Value::as_array_mut).flatten().collect(), "id")
    }

    fn request(&self, ask: &AgentRequest<'_>) -> (&'static str, Value) {
        let mut body = json!({
            "model": "gpt-5.2", "reasoning_effort": "low",
            "messages": ask.history, "tools": ask.tools,
        });
        if ask.stream {
            body["stream"] = true.into();
            body["stream_options"] = json!({"include_usage": true});
        }
        ("/v1/chat/completions", body)
    }

    fn whole(&self, body: &Value) -> ParsedResponse {
        let choice = &body["choices"][0];
        (turn(&choice["message"], &choice["finish_reason"]), vec![choice["message"].clone()])
    }

    fn events(&self, events: &[Value]) -> ParsedResponse {
        let mut message = json!({"role": "assistant", "content": null});
        let mut calls: Vec<Value> = Vec::new();
        let mut stop = Value::Null;
        for choice in events.iter().flat_map(|event| list(&event["choices"])) {
            assert!(stop.is_null(), "nothing follows the end: {choice}");
            let delta = &choice["delta"];
            for key in ["content", "reasoning_content"] {
                if !text(&delta[key]).is_empty() {
                    add(&mut message, key, &delta[key]);
                }
            }
            for piece in list(&delta["tool_calls"]) {
                let at = usize::try_from(piece["index"].as_u64().unwrap()).unwrap();
                if at == calls.len() {
                    calls.push(piece.clone());
                    calls[at].as_object_mut().unwrap().shift_remove("index");
                } else {
                    let arguments = &piece["function"]["arguments"];
                    add(&mut calls[at]["function"], "arguments", arguments);
                }
            }
            stop = choice["finish_reason"].clone();
        }
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        (turn(&message, &stop), vec![message])
    }
}

fn turn(message: &Value, stop: &Value) -> ModelMessage {
    let call = |call: &Value| Call {
        id: text(&call["id"]).to_owned(),
        name: text(&call["function"]["name"]).to_owned(),
        arguments: serde_json::from_str(text(&call["function"]["arguments"])).unwrap(),
    };
    ModelMessage {
        thoughts: text(&message["reasoning_content"]).to_owned(),
        text: text(&message["content"]).to_owned(),
        calls: list(&message["tool_calls"]).iter().map(call).collect(),
        stop: text(stop).to_owned(),
    }
}
