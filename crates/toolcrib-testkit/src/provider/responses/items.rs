//! Writes a reply as output items of the Responses API.

use serde_json::{Value, json};

use crate::provider::dialect::{ResponseContext, list};
use crate::provider::model::{ModelReply, ReplyBlock};

pub(super) fn items(reply: &ModelReply, context: &mut ResponseContext<'_>) -> Vec<Value> {
    let sealed =
        list(&context.request["include"]).iter().any(|what| what == "reasoning.encrypted_content");
    let mut items: Vec<Value> = Vec::new();
    for block in &reply.blocks {
        let ids = &mut context.ids;
        match block {
            ReplyBlock::Thinking(text) => {
                let mut item = json!({
                    "id": ids.make("rs_"), "type": "reasoning", "summary": [{"type": "summary_text", "text": text}],
                });
                if sealed {
                    item["encrypted_content"] = ids.make("gAAAA").into();
                }
                items.push(item);
            }
            ReplyBlock::Text(text) => items.push(json!({
                "id": ids.make("msg_"),
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": text}],
            })),
            ReplyBlock::Call { name, namespace, arguments } => {
                let mut item = json!({
                    "id": ids.make("fc_"),
                    "type": "function_call",
                    "status": "completed",
                    "arguments": arguments.to_string(),
                });
                if context.options.call_ids {
                    item["call_id"] = ids.make("call_").into();
                }
                item["name"] = name.as_str().into();
                if let Some(namespace) = namespace {
                    item["namespace"] = namespace.clone().into();
                }
                items.push(item);
            }
            ReplyBlock::HostedSearch { found, .. } => {
                let tools = loaded(context.request, found);
                let paths: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
                items.push(json!({
                    "id": ids.make("tsc_"),
                    "type": "tool_search_call",
                    "execution": "server",
                    "call_id": null,
                    "status": "completed",
                    "arguments": {"paths": paths},
                }));
                items.push(json!({
                    "id": ids.make("tso_"),
                    "type": "tool_search_output",
                    "execution": "server",
                    "call_id": null,
                    "status": "completed",
                    "tools": tools,
                }));
            }
            ReplyBlock::ClientSearch { query } => items.push(json!({
                "id": ids.make("tsc_"),
                "type": "tool_search_call",
                "execution": "client",
                "call_id": ids.make("call_"),
                "status": "completed",
                "arguments": {"query": query},
            })),
            ReplyBlock::HostedSearchResult { .. } => {}
        }
    }
    items
}

/// Returns the tools that a hosted search loads: the deferred functions in `found`, and every namespace with a member
/// in `found`.
fn loaded(request: &Value, found: &[String]) -> Vec<Value> {
    let is_found = |tool: &Value| found.iter().any(|name| tool["name"] == name.as_str());
    list(&request["tools"])
        .iter()
        .filter(|tool| match tool["type"].as_str() {
            Some("namespace") => list(&tool["tools"]).iter().any(is_found),
            _ => tool["defer_loading"] == true && is_found(tool),
        })
        .cloned()
        .collect()
}
