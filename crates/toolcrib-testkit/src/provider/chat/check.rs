//! What Chat Completions refuses: calls without answers, answers without calls.

use serde_json::Value;

use crate::provider::ask::Open;
use crate::provider::dialect::{Fault, bad, list};
use crate::provider::options::Options;

pub(in crate::provider) fn check(request: &Value, options: &Options) -> Result<(), Fault> {
    let mut open = Open::default();
    for message in list(&request["messages"]) {
        if message["role"] == "tool" {
            if open.answer(&message["tool_call_id"]).is_none() {
                return Err(bad(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message \
                     with 'tool_calls'.",
                ));
            }
            continue;
        }
        answered(&open.ids())?;
        open = Open::default();
        for call in list(&message["tool_calls"]) {
            if options.call_ids && !call["id"].is_string() {
                return Err(bad("Missing required parameter: 'messages[].tool_calls[].id'."));
            }
            open.call(&call["id"], "");
        }
    }
    answered(&open.ids())
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
