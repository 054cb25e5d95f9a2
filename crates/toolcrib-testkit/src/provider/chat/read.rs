//! Converts a Chat Completions request to a [`ParsedRequest`].

use serde_json::Value;

use crate::provider::dialect::list;
use crate::provider::parsed_request::{
    DeclaredTool, HistoryBlock, LoadState, ParsedRequest, PendingCalls, plain,
};

pub(in crate::provider) fn read(request: &Value) -> ParsedRequest {
    let mut parsed = ParsedRequest::default();
    for tool in list(&request["tools"]) {
        let function = if tool["custom"].is_object() { &tool["custom"] } else { &tool["function"] };
        let name = function["name"].as_str().unwrap_or_default();
        parsed.tools.push(DeclaredTool::new(
            name,
            &function["description"],
            &function["parameters"],
            LoadState::Loaded,
        ));
    }
    let mut pending = PendingCalls::default();
    for message in list(&request["messages"]) {
        match message["role"].as_str() {
            Some("user") => parsed.add_user_text(&plain(&message["content"])),
            Some("assistant") => {
                parsed.add_model_block(HistoryBlock::Text);
                for call in list(&message["tool_calls"]) {
                    let name = call["function"]["name"].as_str().unwrap_or_default();
                    pending.add(&call["id"], name);
                    parsed.add_model_block(HistoryBlock::Call(name.to_owned()));
                }
            }
            Some("tool") => {
                let name = pending.resolve(&message["tool_call_id"]).unwrap_or_default();
                parsed.add_result(name, plain(&message["content"]));
            }
            _ => {}
        }
    }
    parsed
}
