//! Checks that each tool call has a result in the next message, before any other content.

use std::collections::HashSet;

use serde_json::Value;

use crate::provider::dialect::{ApiError, bad_request, list};
use crate::provider::options::Options;
use crate::provider::parsed_request::PendingCalls;

pub(super) fn check(request: &Value, options: &Options) -> Result<(), ApiError> {
    let messages = list(&request["messages"]);
    if messages.is_empty() {
        return Err(bad_request("messages: at least one message is required"));
    }
    let mut pending = PendingCalls::default();
    for (at, message) in messages.iter().enumerate() {
        let content = list(&message["content"]);
        let results = content.iter().take_while(|block| block["type"] == "tool_result").count();
        // A result after any other content is an error.
        let mut unexpected = content[results..].iter().find(|block| block["type"] == "tool_result");
        for block in &content[..results] {
            if pending.resolve(&block["tool_use_id"]).is_none() {
                unexpected = unexpected.or(Some(block));
            }
        }
        if !pending.ids().is_empty() {
            return Err(unanswered(at - 1, &pending.ids()));
        }
        if let Some(block) = unexpected {
            let id = block["tool_use_id"].as_str().unwrap_or_default();
            return Err(bad_request(format!(
                "messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. \
                 Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )));
        }
        if content.iter().any(|block| block["type"] == "text" && block["text"] == "") {
            return Err(bad_request("messages: text content blocks must be non-empty"));
        }
        pending = PendingCalls::default();
        let mut distinct = HashSet::new();
        for block in content.iter().filter(|block| block["type"] == "tool_use") {
            let id = block["id"].as_str();
            if options.call_ids && id.is_none() {
                return Err(bad_request(format!("messages.{at}: tool_use.id: Field required")));
            }
            if id.is_some_and(|id| !distinct.insert(id)) {
                return Err(bad_request(format!("messages.{at}: `tool_use` ids must be unique")));
            }
            pending.add(&block["id"], "");
        }
    }
    let left = pending.ids();
    if left.is_empty() { Ok(()) } else { Err(unanswered(messages.len() - 1, &left)) }
}

fn unanswered(at: usize, ids: &[&str]) -> ApiError {
    bad_request(format!(
        "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each \
         `tool_use` block must have a corresponding `tool_result` block in the next message.",
        ids.join(", ")
    ))
}
