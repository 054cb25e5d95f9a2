//! Converts a Messages request to a [`ParsedRequest`].

use std::collections::HashSet;

use serde_json::Value;

use super::hosted;
use crate::provider::dialect::list;
use crate::provider::parsed_request::{
    DeclaredTool, HistoryBlock, LoadState, NativeSearch, ParsedRequest, PendingCalls, plain,
};

pub(in crate::provider) fn read(request: &Value) -> ParsedRequest {
    let mut parsed = ParsedRequest::default();
    let found = references(request);
    for tool in list(&request["tools"]) {
        if hosted(tool).is_some() {
            parsed.native_search = Some(NativeSearch::Hosted);
            continue;
        }
        let name = tool["name"].as_str().unwrap_or_default();
        let load = match (tool["defer_loading"] == true, found.contains(name)) {
            (false, _) => LoadState::Loaded,
            (true, false) => LoadState::Deferred,
            (true, true) => LoadState::Revealed,
        };
        parsed.tools.push(DeclaredTool::new(
            name,
            &tool["description"],
            &tool["input_schema"],
            load,
        ));
    }
    let answered: HashSet<&str> = blocks(request)
        .filter(|block| block["type"] == "tool_search_tool_result")
        .filter_map(|block| block["tool_use_id"].as_str())
        .collect();
    let mut pending = PendingCalls::default();
    for message in list(&request["messages"]) {
        let model = message["role"] == "assistant";
        if let Some(text) = message["content"].as_str() {
            if model {
                parsed.add_model_block(HistoryBlock::Text);
            } else {
                parsed.add_user_text(text);
            }
        }
        for block in list(&message["content"]) {
            match block["type"].as_str() {
                Some("text") if model => parsed.add_model_block(HistoryBlock::Text),
                Some("text") => parsed.add_user_text(block["text"].as_str().unwrap_or_default()),
                Some("tool_use") => {
                    let name = block["name"].as_str().unwrap_or_default();
                    pending.add(&block["id"], name);
                    parsed.add_model_block(HistoryBlock::Call(name.to_owned()));
                }
                Some("server_tool_use") => {
                    let id = block["id"].as_str().unwrap_or_default();
                    let input = &block["input"];
                    let query =
                        input["query"].as_str().or(input["pattern"].as_str()).unwrap_or_default();
                    parsed.add_model_block(HistoryBlock::HostedSearch {
                        id: id.into(),
                        query: query.into(),
                        open: !answered.contains(id),
                    });
                }
                Some("tool_result") => {
                    let name = pending.resolve(&block["tool_use_id"]).unwrap_or_default();
                    parsed.add_result(name, plain(&block["content"]));
                }
                _ => {}
            }
        }
    }
    parsed
}

/// Returns every content block of every message, including blocks inside tool results.
pub(super) fn blocks(request: &Value) -> impl Iterator<Item = &Value> {
    list(&request["messages"]).iter().flat_map(|message| list(&message["content"])).flat_map(
        |block| {
            let inner =
                list(&block["content"]).iter().chain(list(&block["content"]["tool_references"]));
            std::iter::once(block).chain(inner)
        },
    )
}

/// Returns the names of the tools in the `tool_reference` and `tool_addition` blocks of the history.
pub(super) fn references(request: &Value) -> HashSet<&str> {
    let results = blocks(request).filter(|block| block["type"] == "tool_reference");
    let added = blocks(request).filter(|block| block["type"] == "tool_addition");
    results
        .filter_map(|block| block["tool_name"].as_str())
        .chain(added.filter_map(|block| block["tool"]["name"].as_str()))
        .collect()
}
