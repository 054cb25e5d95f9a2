//! Checks for requests that Chat Completions rejects: calls without results, and results without calls.

use serde_json::Value;

use crate::provider::dialect::{ApiError, bad_request, list};
use crate::provider::options::Options;
use crate::provider::parsed_request::PendingCalls;

pub(in crate::provider) fn check(request: &Value, options: &Options) -> Result<(), ApiError> {
    let mut pending = PendingCalls::default();
    for message in list(&request["messages"]) {
        if message["role"] == "tool" {
            if pending.resolve(&message["tool_call_id"]).is_none() {
                return Err(bad_request(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message \
                     with 'tool_calls'.",
                ));
            }
            continue;
        }
        answered(&pending.ids())?;
        pending = PendingCalls::default();
        for call in list(&message["tool_calls"]) {
            if options.call_ids && !call["id"].is_string() {
                return Err(bad_request(
                    "Missing required parameter: 'messages[].tool_calls[].id'.",
                ));
            }
            pending.add(&call["id"], "");
        }
    }
    answered(&pending.ids())
}

fn answered(pending: &[&str]) -> Result<(), ApiError> {
    if pending.is_empty() {
        return Ok(());
    }
    Err(bad_request(format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
         'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        pending.join(", ")
    )))
}
