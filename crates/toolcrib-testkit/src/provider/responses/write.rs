//! Writes a reply as a response object, either complete or as a stream of numbered events.

use bytes::Bytes;
use serde_json::{Value, json};

use super::items::items;
use crate::provider::dialect::{ResponseBody, ResponseContext};
use crate::provider::model::ModelReply;
use crate::provider::script::StopReason;
use crate::provider::sse;

/// The time at which all responses claim to be created. It is fixed, so that responses are the same on every run.
const CREATED: u64 = 1_790_000_000;

pub(in crate::provider) fn write(
    reply: &ModelReply,
    mut context: ResponseContext<'_>,
    stream: bool,
) -> ResponseBody {
    let id = context.ids.make("resp_");
    let output = items(reply, &mut context);
    if context.options.keep_requests {
        context.history.keep(context.request, &id, &output);
    }
    let (status, details) = match reply.stop {
        StopReason::Natural => ("completed", Value::Null),
        StopReason::Length => ("incomplete", json!({"reason": "max_output_tokens"})),
    };
    let usage = json!({
        "input_tokens": context.input,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": context.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": context.input + context.output,
    });
    let opening = response(&context, &id, "in_progress");
    let mut closing = response(&context, &id, status);
    closing["incomplete_details"] = details;
    closing["output"] = output.clone().into();
    closing["usage"] = usage;
    if !stream {
        return ResponseBody::Json(closing);
    }
    let mut events = Events::default();
    events.push("response.created", json!({"response": opening}));
    events.push("response.in_progress", json!({"response": opening}));
    for (index, item) in output.iter().enumerate() {
        stream_item(index, item, &mut events, &mut context);
    }
    events.push(&format!("response.{status}"), json!({"response": closing}));
    ResponseBody::Events(events.written)
}

/// Returns the response object without its output items. Most of its fields repeat the request.
fn response(context: &ResponseContext<'_>, id: &str, status: &str) -> Value {
    let asked =
        |key: &str, otherwise: Value| context.request.get(key).cloned().unwrap_or(otherwise);
    json!({
        "id": id,
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "background": false,
        "error": null,
        "incomplete_details": null,
        "instructions": asked("instructions", Value::Null),
        "max_output_tokens": asked("max_output_tokens", Value::Null),
        "max_tool_calls": null,
        "model": context.model,
        "output": [],
        "parallel_tool_calls": asked("parallel_tool_calls", true.into()),
        "previous_response_id": asked("previous_response_id", Value::Null),
        "reasoning": asked("reasoning", json!({"effort": null, "summary": null})),
        "service_tier": "default",
        "store": asked("store", true.into()),
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": asked("tool_choice", "auto".into()),
        "tools": asked("tools", json!([])),
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": null,
        "metadata": asked("metadata", json!({})),
    })
}

/// The events of a stream. Each gets the next sequence number.
#[derive(Default)]
struct Events {
    written: Vec<Bytes>,
}

impl Events {
    fn push(&mut self, kind: &str, mut fields: Value) {
        let mut event = json!({"type": kind, "sequence_number": self.written.len()});
        if let (Some(event), Some(fields)) = (event.as_object_mut(), fields.as_object_mut()) {
            event.append(fields);
        }
        self.written.push(sse::named(&event));
    }
}

/// Writes the events that stream one output item.
fn stream_item(index: usize, item: &Value, events: &mut Events, context: &mut ResponseContext<'_>) {
    let id = &item["id"];
    let mut added = item.clone();
    if item.get("status").is_some() {
        added["status"] = "in_progress".into();
    }
    match item["type"].as_str() {
        Some("message") => added["content"] = json!([]),
        Some("reasoning") => added["summary"] = json!([]),
        Some("function_call") => added["arguments"] = "".into(),
        Some("tool_search_call") => {
            added["arguments"] = json!({});
            // The id in this event is deliberately wrong, because in the real API only the id in the `done` event is
            // valid.
            if item["execution"] == "client" {
                added["call_id"] = context.ids.make("call_").into();
            }
        }
        _ => {}
    }
    events.push("response.output_item.added", json!({"output_index": index, "item": added}));
    match item["type"].as_str() {
        Some("message") => {
            let at = json!({"item_id": id, "output_index": index, "content_index": 0});
            let part = &item["content"][0];
            let text = part["text"].as_str().unwrap_or_default();
            let mut empty = part.clone();
            empty["text"] = "".into();
            events.push("response.content_part.added", with(&at, "part", &empty));
            for piece in sse::pieces(text, 9) {
                let delta = with(&with(&at, "delta", &piece.into()), "logprobs", &json!([]));
                events.push("response.output_text.delta", delta);
            }
            let done = with(&with(&at, "text", &text.into()), "logprobs", &json!([]));
            events.push("response.output_text.done", done);
            events.push("response.content_part.done", with(&at, "part", part));
        }
        Some("reasoning") => {
            let at = json!({"item_id": id, "output_index": index, "summary_index": 0});
            let part = &item["summary"][0];
            let text = part["text"].as_str().unwrap_or_default();
            let empty = json!({"type": "summary_text", "text": ""});
            events.push("response.reasoning_summary_part.added", with(&at, "part", &empty));
            for piece in sse::pieces(text, 9) {
                events.push(
                    "response.reasoning_summary_text.delta",
                    with(&at, "delta", &piece.into()),
                );
            }
            events.push("response.reasoning_summary_text.done", with(&at, "text", &text.into()));
            events.push("response.reasoning_summary_part.done", with(&at, "part", part));
        }
        Some("function_call") => {
            let at = json!({"item_id": id, "output_index": index});
            for piece in sse::pieces(item["arguments"].as_str().unwrap_or_default(), 7) {
                events.push(
                    "response.function_call_arguments.delta",
                    with(&at, "delta", &piece.into()),
                );
            }
            let done = with(&with(&at, "arguments", &item["arguments"]), "name", &item["name"]);
            events.push("response.function_call_arguments.done", done);
        }
        _ => {}
    }
    events.push("response.output_item.done", json!({"output_index": index, "item": item}));
}

/// Returns a copy of the object with the field `key` set.
fn with(object: &Value, key: &str, value: &Value) -> Value {
    let mut object = object.clone();
    object[key] = value.clone();
    object
}
