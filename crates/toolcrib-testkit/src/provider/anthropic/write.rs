//! A reply as a Messages answer, whole or as events.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{binding, hosted};
use crate::provider::dialect::{Sheet, Written, list};
use crate::provider::mind::{Emit, Reply};
use crate::provider::script::Stop;
use crate::provider::sse;

pub(in crate::provider) fn write(reply: &Reply, mut sheet: Sheet<'_>, stream: bool) -> Written {
    let id = sheet.ids.make("msg_");
    let content = content(reply, &mut sheet);
    let stop = match reply.stop {
        Stop::Length => "max_tokens",
        Stop::Natural if reply.calls() => "tool_use",
        Stop::Natural => "end_turn",
    };
    let usage = json!({
        "input_tokens": sheet.input,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": sheet.output,
        "service_tier": "standard",
    });
    let message = |content: &[Value], stop: Option<&str>, usage: &Value| {
        json!({
            "id": id,
            "type": "message",
            "role": "assistant",
            "model": sheet.model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": null,
            "usage": usage,
        })
    };
    if !stream {
        return Written::Whole(message(&content, Some(stop), &usage));
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
            "input_tokens": sheet.input,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": sheet.output,
        },
    })));
    events.push(sse::named(&json!({"type": "message_stop"})));
    Written::Events(events)
}

/// The blocks of the message.
fn content(reply: &Reply, sheet: &mut Sheet<'_>) -> Vec<Value> {
    let search =
        list(&sheet.request["tools"]).iter().find_map(hosted).unwrap_or("tool_search_tool_bm25");
    let mut blocks: Vec<Value> = Vec::new();
    for emit in &reply.emits {
        match emit {
            Emit::Thinking(text) => {
                let signature = binding::sign(sheet.request, &blocks);
                blocks.push(json!({"type": "thinking", "thinking": text, "signature": signature}));
            }
            Emit::Text(text) => blocks.push(json!({"type": "text", "text": text})),
            Emit::Call { name, arguments, .. } => {
                let mut block = json!({"type": "tool_use"});
                if sheet.options.call_ids {
                    block["id"] = sheet.ids.make("toolu_").into();
                }
                block["name"] = name.as_str().into();
                block["input"] = arguments.clone();
                block["caller"] = json!({"type": "direct"});
                blocks.push(block);
            }
            Emit::Hosted { query, found, open } => {
                let id = sheet.ids.make("srvtoolu_");
                let input = if search.ends_with("regex") {
                    json!({"pattern": query.split_whitespace().collect::<Vec<_>>().join("|")})
                } else {
                    json!({"query": query})
                };
                blocks.push(json!({
                    "type": "server_tool_use", "id": id, "name": search, "input": input, "caller": {"type": "direct"},
                }));
                if !open {
                    blocks.push(result(&id, found));
                }
            }
            Emit::Late { id, found } => blocks.push(result(id, found)),
            Emit::Client { .. } => {}
        }
    }
    blocks
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

/// The events of one block: its start, its content in pieces, its end.
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
