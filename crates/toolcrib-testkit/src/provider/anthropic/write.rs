//! Writes a reply as a Messages response, either complete or as a stream of events.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{binding, hosted};
use crate::provider::dialect::{ResponseBody, ResponseContext, list};
use crate::provider::model::{ModelReply, ReplyBlock};
use crate::provider::script::StopReason;
use crate::provider::sse;

pub(in crate::provider) fn write(
    reply: &ModelReply,
    mut context: ResponseContext<'_>,
    stream: bool,
) -> ResponseBody {
    let id = context.ids.make("msg_");
    let content = content(reply, &mut context);
    let stop = match reply.stop {
        StopReason::Length => "max_tokens",
        StopReason::Natural if reply.calls() => "tool_use",
        StopReason::Natural => "end_turn",
    };
    let usage = json!({
        "input_tokens": context.input,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": context.output,
        "service_tier": "standard",
    });
    let message = |content: &[Value], stop: Option<&str>, usage: &Value| {
        json!({
            "id": id,
            "type": "message",
            "role": "assistant",
            "model": context.model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": null,
            "usage": usage,
        })
    };
    if !stream {
        return ResponseBody::Json(message(&content, Some(stop), &usage));
    }
    let mut opening = usage.clone();
    opening["output_tokens"] = 1.into();
    let mut events = vec![sse::named(
        &json!({"type": "message_start", "message": message(&[], None, &opening)}),
    )];
    for (index, block) in content.iter().enumerate() {
        events.extend(stream_block(index, block));
        if index == 0 {
            events.insert(2, sse::named(&json!({"type": "ping"})));
        }
    }
    events.push(sse::named(&json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": null},
        "usage": {
            "input_tokens": context.input,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": context.output,
        },
    })));
    events.push(sse::named(&json!({"type": "message_stop"})));
    ResponseBody::Events(events)
}

fn content(reply: &ModelReply, context: &mut ResponseContext<'_>) -> Vec<Value> {
    let search =
        list(&context.request["tools"]).iter().find_map(hosted).unwrap_or("tool_search_tool_bm25");
    let mut content_blocks: Vec<Value> = Vec::new();
    for block in &reply.blocks {
        match block {
            ReplyBlock::Thinking(text) => {
                let signature = binding::sign(context.request, &content_blocks);
                content_blocks
                    .push(json!({"type": "thinking", "thinking": text, "signature": signature}));
            }
            ReplyBlock::Text(text) => content_blocks.push(json!({"type": "text", "text": text})),
            ReplyBlock::Call { name, arguments, .. } => {
                let mut block = json!({"type": "tool_use"});
                if context.options.call_ids {
                    block["id"] = context.ids.make("toolu_").into();
                }
                block["name"] = name.as_str().into();
                block["input"] = arguments.clone();
                block["caller"] = json!({"type": "direct"});
                content_blocks.push(block);
            }
            ReplyBlock::HostedSearch { query, found, open } => {
                let id = context.ids.make("srvtoolu_");
                let input = if search.ends_with("regex") {
                    json!({"pattern": query.split_whitespace().collect::<Vec<_>>().join("|")})
                } else {
                    json!({"query": query})
                };
                content_blocks.push(json!({
                    "type": "server_tool_use", "id": id, "name": search, "input": input, "caller": {"type": "direct"},
                }));
                if !open {
                    content_blocks.push(result(&id, found));
                }
            }
            ReplyBlock::HostedSearchResult { id, found } => content_blocks.push(result(id, found)),
            ReplyBlock::ClientSearch { .. } => {}
        }
    }
    content_blocks
}

fn result(id: &str, found: &[String]) -> Value {
    let references: Vec<Value> =
        found.iter().map(|name| json!({"type": "tool_reference", "tool_name": name})).collect();
    json!({
        "type": "tool_search_tool_result",
        "tool_use_id": id,
        "content": {"type": "tool_search_tool_search_result", "tool_references": references},
    })
}

/// Returns the events that stream one block: its start, its content in pieces, and its end.
fn stream_block(index: usize, block: &Value) -> Vec<Bytes> {
    let mut start = block.clone();
    let mut deltas: Vec<Value> = Vec::new();
    match block["type"].as_str() {
        Some("text") => {
            start["text"] = "".into();
            let pieces = sse::pieces(block["text"].as_str().unwrap_or_default(), 9);
            deltas.extend(pieces.iter().map(|piece| json!({"type": "text_delta", "text": piece})));
        }
        Some("thinking") => {
            start["thinking"] = "".into();
            start["signature"] = "".into();
            let pieces = sse::pieces(block["thinking"].as_str().unwrap_or_default(), 9);
            deltas.extend(
                pieces.iter().map(|piece| json!({"type": "thinking_delta", "thinking": piece})),
            );
            deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
        }
        Some("tool_use" | "server_tool_use") => {
            start["input"] = json!({});
            deltas.push(json!({"type": "input_json_delta", "partial_json": ""}));
            let pieces = sse::pieces(&block["input"].to_string(), 7);
            deltas.extend(
                pieces
                    .iter()
                    .map(|piece| json!({"type": "input_json_delta", "partial_json": piece})),
            );
        }
        _ => {}
    }
    let mut events = vec![sse::named(
        &json!({"type": "content_block_start", "index": index, "content_block": start}),
    )];
    events.extend(deltas.iter().map(|delta| {
        sse::named(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
    }));
    events.push(sse::named(&json!({"type": "content_block_stop", "index": index})));
    events
}
