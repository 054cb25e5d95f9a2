//! What Chat Completions refuses: calls without answers, answers without calls.

use serde_json::Value;

use crate::provider::dialect::{Fault, bad, list};

pub(in crate::provider) fn check(request: &Value) -> Result<(), Fault> {
    let mut open: Vec<&str> = Vec::new();
    for message in list(&request["messages"]) {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let Some(at) = open.iter().position(|call| *call == id) else {
                return Err(bad(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message \
                     with 'tool_calls'.",
                ));
            };
            open.remove(at);
            continue;
        }
        answered(&open)?;
        open = list(&message["tool_calls"]).iter().filter_map(|call| call["id"].as_str()).collect();
    }
    answered(&open)
}

fn answered(open: &[&str]) -> Result<(), Fault> {
    if open.is_empty() {
        return Ok(());
    }
    Err(bad(format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
         'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    )))
}
