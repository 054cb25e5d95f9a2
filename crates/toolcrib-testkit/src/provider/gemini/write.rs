//! Writes a reply as a `generateContent` response, either complete or as a stream whose events are complete objects.

use serde_json::{Value, json};

use super::SIGNATURE;
use crate::provider::dialect::{ResponseBody, ResponseContext};
use crate::provider::model::{ModelReply, ReplyBlock};
use crate::provider::script::StopReason;
use crate::provider::sse;

pub(in crate::provider) fn write(
    reply: &ModelReply,
    mut context: ResponseContext<'_>,
    stream: bool,
) -> ResponseBody {
    let id = context.ids.make("");
    let finish = match reply.stop {
        StopReason::Natural => "STOP",
        StopReason::Length => "MAX_TOKENS",
    };
    let mut parts: Vec<Value> = Vec::new();
    let mut signed = false;
    for block in &reply.blocks {
        match block {
            ReplyBlock::Thinking(text) => {
                parts.extend(
                    pieces(text, stream)
                        .into_iter()
                        .map(|text| json!({"text": text, "thought": true})),
                );
            }
            ReplyBlock::Text(text) => {
                parts.extend(pieces(text, stream).into_iter().map(|text| json!({"text": text})));
            }
            ReplyBlock::Call { name, arguments, .. } => {
                let mut call = json!({"name": name, "args": arguments});
                if context.options.call_ids {
                    call["id"] = context.ids.make("").into();
                }
                let mut part = json!({"functionCall": call});
                // If there are several parallel calls, only the first is signed.
                if !signed {
                    part["thoughtSignature"] = context.ids.make(SIGNATURE).into();
                    signed = true;
                }
                parts.push(part);
            }
            ReplyBlock::HostedSearch { .. }
            | ReplyBlock::HostedSearchResult { .. }
            | ReplyBlock::ClientSearch { .. } => {}
        }
    }
    let answer = |parts: &[Value], finish: Option<&str>, output: u64| {
        let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
        if let Some(finish) = finish {
            candidate["finishReason"] = finish.into();
        }
        json!({
            "candidates": [candidate],
            "usageMetadata": {
                "promptTokenCount": context.input,
                "candidatesTokenCount": output,
                "totalTokenCount": context.input + output,
                "cachedContentTokenCount": 0,
                "thoughtsTokenCount": 0,
                "toolUsePromptTokenCount": 0,
            },
            "modelVersion": context.model,
            "responseId": id,
        })
    };
    if !stream {
        return ResponseBody::Json(answer(&parts, Some(finish), context.output));
    }
    let mut events: Vec<_> =
        parts.iter().map(|part| sse::data(&answer(std::slice::from_ref(part), None, 0))).collect();
    events.push(sse::data(&answer(&[json!({"text": ""})], Some(finish), context.output)));
    ResponseBody::Events(events)
}

fn pieces(text: &str, stream: bool) -> Vec<String> {
    if stream { sse::pieces(text, 9) } else { vec![text.to_owned()] }
}
