//! A reply as a `generateContent` answer, or as one whole object per event.

use serde_json::{Value, json};

use super::SIGNATURE;
use crate::provider::dialect::{Sheet, Written};
use crate::provider::mind::{Emit, Reply};
use crate::provider::script::Stop;
use crate::provider::sse;

pub(in crate::provider) fn write(reply: &Reply, mut sheet: Sheet<'_>, stream: bool) -> Written {
    let id = sheet.ids.make("");
    let finish = match reply.stop {
        Stop::Natural => "STOP",
        Stop::Length => "MAX_TOKENS",
    };
    let mut parts: Vec<Value> = Vec::new();
    let mut signed = false;
    for emit in &reply.emits {
        match emit {
            Emit::Thinking(text) => {
                parts.extend(
                    pieces(text, stream)
                        .into_iter()
                        .map(|text| json!({"text": text, "thought": true})),
                );
            }
            Emit::Text(text) => {
                parts.extend(pieces(text, stream).into_iter().map(|text| json!({"text": text})));
            }
            Emit::Call { name, arguments, .. } => {
                let mut call = json!({"name": name, "args": arguments});
                if sheet.options.call_ids {
                    call["id"] = sheet.ids.make("").into();
                }
                let mut part = json!({"functionCall": call});
                // Only the first of several calls at once is signed.
                if !signed {
                    part["thoughtSignature"] = sheet.ids.make(SIGNATURE).into();
                    signed = true;
                }
                parts.push(part);
            }
            Emit::Hosted { .. } | Emit::Late { .. } | Emit::Client { .. } => {}
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
                "promptTokenCount": sheet.input,
                "candidatesTokenCount": output,
                "totalTokenCount": sheet.input + output,
                "cachedContentTokenCount": 0,
                "thoughtsTokenCount": 0,
                "toolUsePromptTokenCount": 0,
            },
            "modelVersion": sheet.model,
            "responseId": id,
        })
    };
    if !stream {
        return Written::Whole(answer(&parts, Some(finish), sheet.output));
    }
    let mut events: Vec<_> =
        parts.iter().map(|part| sse::data(&answer(std::slice::from_ref(part), None, 0))).collect();
    events.push(sse::data(&answer(&[json!({"text": ""})], Some(finish), sheet.output)));
    Written::Events(events)
}

fn pieces(text: &str, stream: bool) -> Vec<String> {
    if stream { sse::pieces(text, 9) } else { vec![text.to_owned()] }
}
