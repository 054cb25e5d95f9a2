//! Converts a `generateContent` request to a [`ParsedRequest`].

use serde_json::Value;

use crate::provider::dialect::list;
use crate::provider::parsed_request::{DeclaredTool, HistoryBlock, LoadState, ParsedRequest};

pub(in crate::provider) fn read(request: &Value) -> ParsedRequest {
    let mut parsed = ParsedRequest::default();
    for tool in list(&request["tools"]) {
        for function in list(either(tool, "functionDeclarations", "function_declarations")) {
            let name = function["name"].as_str().unwrap_or_default();
            let schema = ["parametersJsonSchema", "parameters_json_schema", "parameters"];
            let schema =
                schema.into_iter().find_map(|key| function.get(key)).unwrap_or(&Value::Null);
            parsed.tools.push(DeclaredTool::new(
                name,
                &function["description"],
                schema,
                LoadState::Loaded,
            ));
        }
    }
    for content in list(&request["contents"]) {
        for part in list(&content["parts"]) {
            if let Some(call) = call(part) {
                parsed.add_model_block(HistoryBlock::Call(
                    call["name"].as_str().unwrap_or_default().to_owned(),
                ));
            } else if let Some(response) = response(part) {
                parsed.add_result(
                    response["name"].as_str().unwrap_or_default(),
                    outcome(&response["response"]),
                );
            } else if content["role"] == "model" {
                parsed.add_model_block(HistoryBlock::Text);
            } else if let Some(text) = part["text"].as_str() {
                parsed.add_user_text(text);
            }
        }
    }
    parsed
}

/// Returns the value of a key, which may be spelled in camel case or in snake case, as in the real API.
fn either<'a>(value: &'a Value, camel: &str, snake: &str) -> &'a Value {
    value.get(camel).unwrap_or(&value[snake])
}

pub(super) fn call(part: &Value) -> Option<&Value> {
    Some(either(part, "functionCall", "function_call")).filter(|call| call.is_object())
}

pub(super) fn response(part: &Value) -> Option<&Value> {
    Some(either(part, "functionResponse", "function_response"))
        .filter(|response| response.is_object())
}

pub(super) fn signature(part: &Value) -> Option<&str> {
    either(part, "thoughtSignature", "thought_signature").as_str()
}

/// Returns the text of a function response. SDKs put a result under `output` or `result`, and an error under `error`.
fn outcome(response: &Value) -> String {
    let keys = ["output", "result", "error"];
    let value = keys.into_iter().find_map(|key| response.get(key)).unwrap_or(response);
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
