//! Converts a Responses request, with its history already expanded, to a [`ParsedRequest`].

use serde_json::Value;

use crate::provider::dialect::list;
use crate::provider::parsed_request::{
    DeclaredTool, HistoryBlock, LoadState, NativeSearch, ParsedRequest, PendingCalls, plain,
};

pub(in crate::provider) fn read(request: &Value) -> ParsedRequest {
    let mut parsed = ParsedRequest::default();
    declare(&mut parsed, list(&request["tools"]), false);
    let mut pending = PendingCalls::default();
    for item in list(&request["input"]) {
        let kind = item["type"].as_str().unwrap_or("message");
        match kind {
            "message" if item["role"] == "user" => parsed.add_user_text(&plain(&item["content"])),
            "message" if item["role"] == "assistant" => parsed.add_model_block(HistoryBlock::Text),
            "function_call" | "custom_tool_call" => {
                let name = item["name"].as_str().unwrap_or_default();
                pending.add(&item["call_id"], name);
                parsed.add_model_block(HistoryBlock::Call(name.to_owned()));
            }
            "function_call_output" | "custom_tool_call_output" => {
                let name = pending.resolve(&item["call_id"]).unwrap_or_default();
                parsed.add_result(name, plain(&item["output"]));
            }
            "tool_search_call" if item["execution"] == "client" => {
                parsed.add_model_block(HistoryBlock::ClientSearch);
            }
            "tool_search_call" => {
                parsed.add_model_block(HistoryBlock::HostedSearch {
                    id: String::new(),
                    query: String::new(),
                    open: false,
                });
            }
            "tool_search_output" => {
                declare(&mut parsed, list(&item["tools"]), true);
                if item["execution"] == "client" {
                    parsed.add_result("tool_search", String::new());
                }
            }
            "additional_tools" => declare(&mut parsed, list(&item["tools"]), true),
            _ => {}
        }
    }
    parsed
}

fn declare(parsed: &mut ParsedRequest, tools: &[Value], revealed: bool) {
    let load = |tool: &Value| match (revealed, tool["defer_loading"] == true) {
        (true, _) => LoadState::Revealed,
        (false, true) => LoadState::Deferred,
        (false, false) => LoadState::Loaded,
    };
    let read = |tool: &Value| {
        let name = tool["name"].as_str().unwrap_or_default();
        DeclaredTool::new(name, &tool["description"], &tool["parameters"], load(tool))
    };
    for tool in tools {
        match tool["type"].as_str() {
            Some("function" | "custom") => parsed.tools.push(read(tool)),
            Some("namespace") => {
                for member in list(&tool["tools"]) {
                    let mut member = read(member);
                    member.namespace = tool["name"].as_str().map(str::to_owned);
                    parsed.tools.push(member);
                }
            }
            Some("tool_search") => {
                let client = tool["execution"] == "client";
                parsed.native_search =
                    Some(if client { NativeSearch::Client } else { NativeSearch::Hosted });
            }
            _ => {}
        }
    }
}
