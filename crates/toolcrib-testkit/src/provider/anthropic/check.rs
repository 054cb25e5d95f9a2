//! Checks for requests that the Messages API rejects.

use std::collections::HashSet;

use serde_json::Value;

use super::read::blocks;
use super::{binding, hosted, pairs};
use crate::provider::dialect::{ApiError, bad_request, list};
use crate::provider::options::{Options, RejectedFeature};

pub(in crate::provider) fn check(request: &Value, options: &Options) -> Result<(), ApiError> {
    lacking(request, options)?;
    tools(request)?;
    caching(request)?;
    pairs::check(request, options)?;
    references(request)?;
    if options.bind_thinking { binding::check(request) } else { Ok(()) }
}

/// Checks a request to count tokens. The request must have no hosted search tools. Its messages are not checked.
pub(in crate::provider) fn check_count(request: &Value, options: &Options) -> Result<(), ApiError> {
    lacking(request, options)?;
    if list(&request["tools"]).iter().any(|tool| hosted(tool).is_some()) {
        return Err(bad_request("Server tools are not supported in the token counting API."));
    }
    tools(request)
}

/// Rejects requests that use a feature in `options.rejects`.
fn lacking(request: &Value, options: &Options) -> Result<(), ApiError> {
    for (at, tool) in list(&request["tools"]).iter().enumerate() {
        if let Some(kind) = hosted(tool) {
            if options.rejects_feature(RejectedFeature::ToolSearch) {
                return Err(bad_request(format!(
                    "tools.{at}: Input tag '{}' found using 'type' does not match any of the expected tags: \
                     'bash_20250124', 'custom', 'text_editor_20250728', 'web_search_20250305'",
                    tool["type"].as_str().unwrap_or_default()
                )));
            }
            if options.rejects_feature(RejectedFeature::Bm25) && kind.ends_with("bm25") {
                return Err(bad_request("BM25 tool search is not supported on Bedrock"));
            }
        }
        if options.rejects_feature(RejectedFeature::DeferLoading)
            && tool.get("defer_loading").is_some()
        {
            return Err(bad_request(format!(
                "tools.{at}.custom.defer_loading: Extra inputs are not permitted"
            )));
        }
    }
    if options.rejects_feature(RejectedFeature::ToolReference)
        && blocks(request).any(|block| block["type"] == "tool_reference")
    {
        return Err(bad_request("messages: value did not match any expected variant"));
    }
    Ok(())
}

fn tools(request: &Value) -> Result<(), ApiError> {
    let tools = list(&request["tools"]);
    let mut seen = HashSet::new();
    for tool in tools {
        if !seen.insert(tool["name"].as_str().unwrap_or_default()) {
            return Err(bad_request("tools: Tool names must be unique."));
        }
        if tool["defer_loading"] == true
            && tool.get("cache_control").is_some_and(|mark| !mark.is_null())
        {
            return Err(bad_request(format!(
                "Tool '{}' cannot have both defer_loading=true and cache_control set. Tools with defer_loading \
                 cannot use prompt caching.",
                tool["name"].as_str().unwrap_or_default()
            )));
        }
    }
    if !tools.is_empty() && tools.iter().all(|tool| tool["defer_loading"] == true) {
        return Err(bad_request("At least one tool must have defer_loading=false."));
    }
    Ok(())
}

fn caching(request: &Value) -> Result<(), ApiError> {
    let marked =
        list(&request["tools"]).iter().chain(list(&request["system"])).chain(blocks(request));
    let count = marked
        .filter(|block| block.get("cache_control").is_some_and(|mark| !mark.is_null()))
        .count();
    if count > 4 {
        return Err(bad_request(format!(
            "A maximum of 4 blocks with cache_control may be provided. Found {count}."
        )));
    }
    Ok(())
}

fn references(request: &Value) -> Result<(), ApiError> {
    let known: HashSet<&str> =
        list(&request["tools"]).iter().filter_map(|tool| tool["name"].as_str()).collect();
    for block in blocks(request).filter(|block| block["type"] == "tool_reference") {
        let name = block["tool_name"].as_str().unwrap_or_default();
        if !known.contains(name) {
            return Err(bad_request(format!(
                "Tool reference '{name}' not found in available tools"
            )));
        }
    }
    Ok(())
}
