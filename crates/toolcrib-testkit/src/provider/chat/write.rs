//! Writes a reply as a chat completion, either complete or in chunks, with the quirks of compatible servers.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::provider::dialect::{ResponseBody, ResponseContext};
use crate::provider::model::{ModelReply, ReplyBlock};
use crate::provider::options::{ChatQuirk, Options};
use crate::provider::script::StopReason;
use crate::provider::sse;

/// The time at which all responses claim to be created. It is fixed, so that responses are the same on every run.
const CREATED: u64 = 1_790_000_000;

pub(in crate::provider) fn write(
    reply: &ModelReply,
    mut context: ResponseContext<'_>,
    stream: bool,
) -> ResponseBody {
    let id = context.ids.make("chatcmpl-");
    let calls: Vec<Call> = reply
        .blocks
        .iter()
        .filter_map(|block| match block {
            ReplyBlock::Call { name, arguments, .. } => Some(Call {
                id: context.options.call_ids.then(|| context.ids.make("call_")),
                name: name.clone(),
                arguments: arguments.clone(),
            }),
            _ => None,
        })
        .collect();
    let finish = match reply.stop {
        StopReason::Length => "length",
        StopReason::Natural
            if calls.is_empty() || context.options.has_quirk(ChatQuirk::StopWithCalls) =>
        {
            "stop"
        }
        StopReason::Natural => "tool_calls",
    };
    let usage = json!({
        "prompt_tokens": context.input,
        "completion_tokens": context.output,
        "total_tokens": context.input + context.output,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    });
    let answer = ChatResponse { id, finish, usage, calls, reply, context };
    if stream { ResponseBody::Events(answer.chunks()) } else { ResponseBody::Json(answer.whole()) }
}

struct Call {
    id: Option<String>,
    name: String,
    arguments: Value,
}

struct ChatResponse<'a> {
    id: String,
    finish: &'static str,
    usage: Value,
    calls: Vec<Call>,
    reply: &'a ModelReply,
    context: ResponseContext<'a>,
}

impl ChatResponse<'_> {
    fn whole(&self) -> Value {
        let mut content = String::new();
        let mut thoughts = String::new();
        for block in &self.reply.blocks {
            match block {
                ReplyBlock::Text(text) => content.push_str(text),
                ReplyBlock::Thinking(text) => thoughts.push_str(text),
                _ => {}
            }
        }
        let content =
            if content.is_empty() && !self.calls.is_empty() { Value::Null } else { content.into() };
        let mut message =
            json!({"role": "assistant", "content": content, "refusal": null, "annotations": []});
        if !thoughts.is_empty() {
            message["reasoning_content"] = thoughts.into();
        }
        if !self.calls.is_empty() {
            let calls = self.calls.iter().map(|call| {
                let arguments = if self.context.options.has_quirk(ChatQuirk::ObjectArguments) {
                    call.arguments.clone()
                } else {
                    call.arguments.to_string().into()
                };
                let function = json!({"name": call.name, "arguments": arguments});
                without_null_id(json!({"id": call.id, "type": "function", "function": function}))
            });
            message["tool_calls"] = calls.collect();
        }
        let count = self.context.request["n"].as_u64().unwrap_or(1);
        let choices: Vec<Value> = (0..count)
            .map(|index| json!({"index": index, "message": message, "logprobs": null, "finish_reason": self.finish}))
            .collect();
        json!({
            "id": self.id,
            "object": "chat.completion",
            "created": CREATED,
            "model": self.context.model,
            "choices": choices,
            "usage": self.usage,
            "service_tier": "default",
            "system_fingerprint": "fp_scripted",
        })
    }

    fn chunks(&self) -> Vec<Bytes> {
        let mut deltas = vec![json!({"role": "assistant", "content": "", "refusal": null})];
        let mut calls = self.calls.iter().enumerate();
        for block in &self.reply.blocks {
            match block {
                ReplyBlock::Text(text) => deltas
                    .extend(sse::pieces(text, 9).iter().map(|piece| json!({"content": piece}))),
                ReplyBlock::Thinking(text) => {
                    deltas.extend(
                        sse::pieces(text, 9)
                            .iter()
                            .map(|piece| json!({"reasoning_content": piece})),
                    );
                }
                ReplyBlock::Call { .. } => {
                    if let Some((index, call)) = calls.next() {
                        deltas.extend(fragments(index, call, self.context.options));
                    }
                }
                _ => {}
            }
        }
        let asked = self.context.request["stream_options"]["include_usage"] == true;
        let chunk = |choices: Value, usage: Option<&Value>| {
            let mut chunk = json!({
                "id": self.id,
                "object": "chat.completion.chunk",
                "created": CREATED,
                "model": self.context.model,
                "service_tier": "default",
                "system_fingerprint": "fp_scripted",
                "choices": choices,
            });
            if asked {
                chunk["usage"] = usage.cloned().unwrap_or_default();
            }
            sse::data(&chunk)
        };
        let choice = |delta: &Value, finish: Option<&str>| json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
        let mut events: Vec<Bytes> =
            deltas.iter().map(|delta| chunk(choice(delta, None), None)).collect();
        events.push(chunk(choice(&json!({}), Some(self.finish)), None));
        if asked {
            events.push(chunk(json!([]), Some(&self.usage)));
        }
        events.push(Bytes::from_static(b"data: [DONE]\n\n"));
        events
    }
}

/// Returns the streamed deltas of one tool call.
fn fragments(index: usize, call: &Call, options: &Options) -> Vec<Value> {
    let arguments = call.arguments.to_string();
    let whole = |name: &str, arguments: &str| {
        without_null_id(
            json!({"index": index, "id": call.id, "type": "function", "function": {"name": name, "arguments": arguments}}),
        )
    };
    let mut fragments = if options.has_quirk(ChatQuirk::WholeCall) {
        vec![whole(&call.name, &arguments)]
    } else if options.has_quirk(ChatQuirk::SplitName) {
        let half = call.name.len() / 2;
        let half = (half..=call.name.len()).find(|at| call.name.is_char_boundary(*at)).unwrap_or(0);
        let (first, rest) = call.name.split_at(half);
        vec![whole(first, ""), json!({"index": index, "function": {"name": rest, "arguments": ""}})]
    } else {
        vec![whole(&call.name, "")]
    };
    if !options.has_quirk(ChatQuirk::WholeCall) {
        let pieces = sse::pieces(&arguments, 7);
        fragments.extend(
            pieces.iter().map(|piece| json!({"index": index, "function": {"arguments": piece}})),
        );
    }
    for fragment in &mut fragments {
        if options.has_quirk(ChatQuirk::NoIndex) {
            if let Some(fragment) = fragment.as_object_mut() {
                fragment.shift_remove("index");
            }
        } else if options.has_quirk(ChatQuirk::SameIndex) {
            fragment["index"] = 0.into();
        }
        if options.has_quirk(ChatQuirk::NoIndex) || options.has_quirk(ChatQuirk::SameIndex) {
            fragment["id"] = call.id.clone().into();
            *fragment = without_null_id(fragment.take());
        }
    }
    fragments.into_iter().map(|fragment| json!({"tool_calls": [fragment]})).collect()
}

/// Removes the key `id` from a call or a fragment if its value is null.
fn without_null_id(mut call: Value) -> Value {
    if let Some(fields) = call.as_object_mut().filter(|fields| fields["id"].is_null()) {
        fields.shift_remove("id");
    }
    call
}
