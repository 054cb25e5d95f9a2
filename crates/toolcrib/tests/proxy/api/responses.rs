//! The agent's side of the Responses API. The agent sends the complete history in every request.

use serde_json::{Value, json};

use super::{
    AgentRequest, ApiClient, Call, ModelMessage, ParsedResponse, SYSTEM, list, text, with_call_id,
};
use crate::tools::Tool;

pub(super) struct Responses;

impl ApiClient for Responses {
    fn history(&self) -> &'static str {
        "input"
    }

    fn tools(&self, tools: &[Tool]) -> Value {
        let function = |tool: &Tool| {
            json!({
                "type": "function", "name": tool.name, "description": tool.description,
                "parameters": tool.schema, "strict": false,
            })
        };
        tools.iter().map(function).collect()
    }

    fn user(&self, text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    fn results(&self, results: &[(&Call, String)]) -> Vec<Value> {
        let result = |(call, text): &(&Call, String)| {
            with_call_id(json!({"type": "function_call_output", "output": text}), "call_id", call)
        };
        results.iter().map(result).collect()
    }

    fn calls<'a>(&self, echo: &'a mut [Value]) -> (Vec<&'a mut Value>, &'static str) {
        (echo.iter_mut().filter(|item| item["type"] == "function_call").collect(), "call_id")
    }

    fn request(&self, ask: &AgentRequest<'_>) -> (&'static str, Value) {
        let mut body = json!({
            "model": "gpt-5.2", "instructions": SYSTEM, "reasoning": {"summary": "auto"},
            "include": ["reasoning.encrypted_content"], "input": ask.history, "tools": ask.tools,
        });
        if ask.stream {
            body["stream"] = true.into();
        }
        ("/v1/responses", body)
    }

    fn whole(&self, body: &Value) -> ParsedResponse {
        let mut turn = ModelMessage::default();
        for item in list(&body["output"]) {
            match text(&item["type"]) {
                "message" => turn.text.push_str(text(&item["content"][0]["text"])),
                "reasoning" => turn.thoughts.push_str(text(&item["summary"][0]["text"])),
                "function_call" => turn.calls.push(Call {
                    id: text(&item["call_id"]).to_owned(),
                    name: text(&item["name"]).to_owned(),
                    arguments: serde_json::from_str(text(&item["arguments"])).unwrap(),
                }),
                other => panic!("an agent does not know what `{other}` is: {item}"),
            }
        }
        let why = text(&body["incomplete_details"]["reason"]);
        format!("{} {why}", text(&body["status"])).trim_end().clone_into(&mut turn.stop);
        (turn, list(&body["output"]).to_vec())
    }

    fn events(&self, events: &[Value]) -> ParsedResponse {
        let numbers: Vec<u64> =
            events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
        let parsed = self.whole(&events.last().unwrap()["response"]);
        let all = |kind: &str| -> String {
            let of_kind = events.iter().filter(|event| event["type"] == kind);
            of_kind.map(|event| text(&event["delta"])).collect()
        };
        assert_eq!(all("response.output_text.delta"), parsed.0.text);
        parsed
    }
}
