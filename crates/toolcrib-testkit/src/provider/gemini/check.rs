//! Checks for requests that `generateContent` rejects.

use serde_json::Value;

use super::read::{call, response, signature};
use super::{FILLERS, SIGNATURE};
use crate::provider::dialect::{ApiError, bad_request, list};

pub(in crate::provider) fn check(request: &Value) -> Result<(), ApiError> {
    let has = |keys: &[&str]| {
        keys.iter().any(|key| request.get(key).is_some_and(|value| !value.is_null()))
    };
    if has(&["cachedContent", "cached_content"])
        && has(&["tools", "toolConfig", "tool_config", "systemInstruction", "system_instruction"])
    {
        return Err(bad_request(
            "CachedContent can not be used with GenerateContent request setting system_instruction, tools or \
             tool_config.\n\nProposed fix: move those values to CachedContent from GenerateContent request.",
        ));
    }
    let contents = list(&request["contents"]);
    for (at, content) in contents.iter().enumerate() {
        let parts = list(&content["parts"]);
        let calls: Vec<&Value> = parts.iter().filter(|part| call(part).is_some()).collect();
        let responses = parts.iter().filter(|part| response(part).is_some()).count();
        let before = at.checked_sub(1).map_or(0, |before| {
            list(&contents[before]["parts"]).iter().filter(|part| call(part).is_some()).count()
        });
        if responses != before {
            return Err(bad_request(
                "Please ensure that the number of function response parts is equal to the number of function call \
                 parts of the function call turn.",
            ));
        }
        if let Some(first) = calls.first() {
            signed(first, at)?;
        }
        if !calls.is_empty() && at + 1 == contents.len() {
            return Err(bad_request(
                "Please ensure that function call turn comes immediately after a user turn or after a function \
                 response turn.",
            ));
        }
    }
    Ok(())
}

/// Checks that a call has a signature from this provider, or one of the accepted placeholders. Only the first call of a
/// message must pass this check, because the API requires no signature on the others.
fn signed(part: &Value, at: usize) -> Result<(), ApiError> {
    let name = call(part).and_then(|call| call["name"].as_str()).unwrap_or_default();
    match signature(part) {
        None => Err(bad_request(format!(
            "Function call is missing a thought_signature in functionCall parts. This is required for tools to work \
             correctly, and missing thought_signature may lead to degraded model performance. Additional data, \
             function call `default_api:{name}` , position {}.",
            at + 1
        ))),
        Some(signature) if signature.starts_with(SIGNATURE) || FILLERS.contains(&signature) => {
            Ok(())
        }
        Some(_) => Err(bad_request("Corrupted thought signature.")),
    }
}
