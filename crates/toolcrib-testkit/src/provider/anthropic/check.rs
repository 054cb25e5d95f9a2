//! What the Messages API refuses.

use std::collections::HashSet;

use serde_json::Value;

use super::read::blocks;
use super::{binding, hosted, pairs};
use crate::provider::dialect::{Fault, bad, list};
use crate::provider::options::{Options, Refusal};

pub(in crate::provider) fn check(request: &Value, options: &Options) -> Result<(), Fault> {
    lacking(request, options)?;
    tools(request)?;
    caching(request)?;
    pairs::check(request, options)?;
    references(request)?;
    if options.binding { binding::check(request) } else { Ok(()) }
}

/// The count of tokens refuses server tools, and checks no conversation.
pub(in crate::provider) fn check_count(request: &Value, options: &Options) -> Result<(), Fault> {
    lacking(request, options)?;
    if list(&request["tools"]).iter().any(|tool| hosted(tool).is_some()) {
        return Err(bad("Server tools are not supported in the token counting API."));
    }
    tools(request)
}

/// Features that this backend does not have, by option.
fn lacking(request: &Value, options: &Options) -> Result<(), Fault> {
    for (at, tool) in list(&request["tools"]).iter().enumerate() {
        if let Some(kind) = hosted(tool) {
            if options.refuses(Refusal::ToolSearch) {
                return Err(bad(format!(
                    "tools.{at}: Input tag '{}' found using 'type' does not match any of the expected tags: \
                     'bash_20250124', 'custom', 'text_editor_20250728', 'web_search_20250305'",
                    tool["type"].as_str().unwrap_or_default()
                )));
            }
            if options.refuses(Refusal::Bm25) && kind.ends_with("bm25") {
                return Err(bad("BM25 tool search is not supported on Bedrock"));
            }
        }
        if options.refuses(Refusal::DeferLoading) && tool.get("defer_loading").is_some() {
            return Err(bad(format!(
                "tools.{at}.custom.defer_loading: Extra inputs are not permitted"
            )));
        }
    }
    if options.refuses(Refusal::ToolReference)
        && blocks(request).any(|block| block["type"] == "tool_reference")
    {
        return Err(bad("messages: value did not match any expected variant"));
    }
    Ok(())
}

fn tools(request: &Value) -> Result<(), Fault> {
    let tools = list(&request["tools"]);
    let mut seen = HashSet::new();
    for tool in tools {
        if !seen.insert(tool["name"].as_str().unwrap_or_default()) {
            return Err(bad("tools: Tool names must be unique."));
        }
        if tool["defer_loading"] == true
            && tool.get("cache_control").is_some_and(|mark| !mark.is_null())
        {
            return Err(bad(format!(
                "Tool '{}' cannot have both defer_loading=true and cache_control set. Tools with defer_loading \
                 cannot use prompt caching.",
                tool["name"].as_str().unwrap_or_default()
            )));
        }
    }
    if !tools.is_empty() && tools.iter().all(|tool| tool["defer_loading"] == true) {
        return Err(bad("At least one tool must have defer_loading=false."));
    }
    Ok(())
}

fn caching(request: &Value) -> Result<(), Fault> {
    let marked =
        list(&request["tools"]).iter().chain(list(&request["system"])).chain(blocks(request));
    let count = marked
        .filter(|block| block.get("cache_control").is_some_and(|mark| !mark.is_null()))
        .count();
    if count > 4 {
        return Err(bad(format!(
            "A maximum of 4 blocks with cache_control may be provided. Found {count}."
        )));
    }
    Ok(())
}

fn references(request: &Value) -> Result<(), Fault> {
    let known: HashSet<&str> =
        list(&request["tools"]).iter().filter_map(|tool| tool["name"].as_str()).collect();
    for block in blocks(request).filter(|block| block["type"] == "tool_reference") {
        let name = block["tool_name"].as_str().unwrap_or_default();
        if !known.contains(name) {
            return Err(bad(format!("Tool reference '{name}' not found in available tools")));
        }
    }
    Ok(())
}
