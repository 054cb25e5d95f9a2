//! Thinking blocks that are bound to everything before them.
//!
//! A signature contains a hash of the prompt up to its block, without thinking blocks, and a hash of the signature of
//! the previous thinking block. An edit anywhere before a block therefore invalidates the block. Removing a thinking
//! block from the middle invalidates the next one. The first thinking blocks of a history may be removed, because the
//! second hash is checked only if another thinking block comes before. Anything that the model does not see, such as
//! `cache_control` and deferred tools without a reference, is not part of the first hash.

use serde_json::{Map, Value};

use super::read::references;
use crate::provider::dialect::{ApiError, bad_request, list};

/// The prefix of signatures, as in the real API.
const OPENING: &str = "EqQB";

/// Returns the signature of a thinking block that follows the messages of `request` and then the blocks `before`.
pub(super) fn sign(request: &Value, before: &[Value]) -> String {
    let messages = list(&request["messages"]);
    let hash = prefix(request, messages, before);
    let mut thoughts = messages.iter().flat_map(|message| list(&message["content"])).chain(before);
    let last = thoughts.rfind(|block| block["type"] == "thinking");
    let last = last.and_then(|block| block["signature"].as_str()).unwrap_or_default();
    format!("{OPENING}{hash}{}", digest(last.as_bytes()))
}

/// Checks for each thinking block that nothing before it has changed since the block was signed.
pub(super) fn check(request: &Value) -> Result<(), ApiError> {
    let messages = list(&request["messages"]);
    let mut previous: Option<&str> = None;
    for (at, message) in messages.iter().enumerate() {
        let content = list(&message["content"]);
        for (block_at, block) in
            content.iter().enumerate().filter(|(_, block)| block["type"] == "thinking")
        {
            let signature = block["signature"].as_str().unwrap_or_default();
            let hash = prefix(request, &messages[..at], &content[..block_at]);
            let follows =
                previous.is_none_or(|previous| signature.ends_with(&digest(previous.as_bytes())));
            if !signature.starts_with(&format!("{OPENING}{hash}")) || !follows {
                return Err(bad_request(format!(
                    "messages.{at}.content.{block_at}: Invalid `signature` in `thinking` block. The block is bound \
                     to a different conversation."
                )));
            }
            previous = Some(signature);
        }
    }
    Ok(())
}

fn prefix(request: &Value, messages: &[Value], before: &[Value]) -> String {
    // A deferred tool is part of the prompt only after its first reference, so only references in `messages` count.
    let mut so_far = request.clone();
    so_far["messages"] = messages.to_vec().into();
    let found = references(&so_far);
    let tools: Vec<Value> = list(&request["tools"])
        .iter()
        .filter(|tool| {
            tool["defer_loading"] != true
                || found.contains(tool["name"].as_str().unwrap_or_default())
        })
        .map(canonical)
        .collect();
    let mut turns: Vec<(Value, Vec<Value>)> = Vec::new();
    let tail = Value::Array(before.to_vec());
    let assistant = Value::from("assistant");
    let all = messages.iter().map(|message| (&message["role"], &message["content"]));
    for (role, content) in all.chain([(&assistant, &tail)]) {
        let blocks = match content {
            Value::String(text) => vec![serde_json::json!({"text": text, "type": "text"})],
            other => list(other)
                .iter()
                .filter(|block| block["type"] != "thinking")
                .map(canonical)
                .collect(),
        };
        turns.push((role.clone(), blocks));
    }
    let system = match &request["system"] {
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    let whole = serde_json::to_vec(&(tools, system, turns)).unwrap_or_default();
    digest(&whole)
}

/// Returns the block as the model sees it: without the fields that are invisible to the model, and with sorted keys.
fn canonical(block: &Value) -> Value {
    match block {
        Value::Object(fields) => {
            let mut kept: Vec<(&String, &Value)> =
                fields.iter().filter(|(key, value)| !silent(key, value)).collect();
            kept.sort_by_key(|(key, _)| *key);
            let kept = kept.into_iter().map(|(key, value)| {
                // The keys of arguments and schemas are not sorted, because the model sees their order.
                let exact = matches!(key.as_str(), "input" | "input_schema");
                (key.clone(), if exact { value.clone() } else { canonical(value) })
            });
            Value::Object(kept.collect::<Map<String, Value>>())
        }
        Value::Array(items) => items.iter().map(canonical).collect(),
        other => other.clone(),
    }
}

/// Whether a field is invisible to the model.
fn silent(key: &str, value: &Value) -> bool {
    match key {
        "cache_control" | "caller" | "citations" | "defer_loading" => true,
        "is_error" => value != true,
        _ => value.is_null(),
    }
}

fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..40].to_owned()
}
