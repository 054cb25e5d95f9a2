//! Calls and results in messages: each call answered in the very next message, results first.

use std::collections::HashSet;

use serde_json::Value;

use crate::provider::dialect::{Fault, bad, list};

pub(super) fn check(request: &Value) -> Result<(), Fault> {
    let messages = list(&request["messages"]);
    if messages.is_empty() {
        return Err(bad("messages: at least one message is required"));
    }
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let content = list(&message["content"]);
        let results = content.iter().take_while(|block| block["type"] == "tool_result").count();
        let answered: HashSet<&str> =
            content[..results].iter().filter_map(|block| block["tool_use_id"].as_str()).collect();
        let left: Vec<&str> = open.iter().filter(|id| !answered.contains(*id)).copied().collect();
        if !left.is_empty() {
            return Err(unanswered(at - 1, &left));
        }
        for (block_at, block) in content.iter().enumerate() {
            let id = block["tool_use_id"].as_str().unwrap_or_default();
            if block["type"] == "tool_result" && !open.contains(&id) {
                return Err(bad(format!(
                    "messages.{at}.content.{block_at}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. \
                     Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                )));
            }
            if block["type"] == "text" && block["text"] == "" {
                return Err(bad("messages: text content blocks must be non-empty"));
            }
        }
        let calls = content.iter().filter(|block| block["type"] == "tool_use");
        open = calls.filter_map(|block| block["id"].as_str()).collect();
        let distinct: HashSet<&str> = open.iter().copied().collect();
        if distinct.len() < open.len() {
            return Err(bad(format!("messages.{at}: `tool_use` ids must be unique")));
        }
    }
    if open.is_empty() { Ok(()) } else { Err(unanswered(messages.len() - 1, &open)) }
}

fn unanswered(at: usize, ids: &[&str]) -> Fault {
    bad(format!(
        "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each \
         `tool_use` block must have a corresponding `tool_result` block in the next message.",
        ids.join(", ")
    ))
}
