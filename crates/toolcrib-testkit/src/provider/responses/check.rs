//! Checks for requests that the Responses API rejects.

use serde_json::Value;

use super::pairs;
use crate::provider::dialect::{ApiError, bad_request, list};
use crate::provider::options::{Options, RejectedFeature};

pub(in crate::provider) fn check(request: &Value, options: &Options) -> Result<(), ApiError> {
    lacking(request, options)?;
    tools(request)?;
    for (at, item) in list(&request["input"]).iter().enumerate() {
        let length = item["call_id"].as_str().map_or(0, str::len);
        if length > 64 {
            return Err(bad_request(format!(
                "Invalid 'input[{at}].call_id': string too long. Expected a string with maximum length 64, but got \
                 a string with length {length} instead."
            )));
        }
        if item["type"] == "additional_tools" && item["role"] != "developer" {
            return Err(bad_request(format!(
                "Invalid value: 'input[{at}].role'. Supported values are: 'developer'."
            )));
        }
    }
    pairs::check(request, options)
}

/// Rejects requests that use a feature in `options.rejects`.
fn lacking(request: &Value, options: &Options) -> Result<(), ApiError> {
    let unknown = |what: &str, path: &str| {
        Err(bad_request(format!(
            "Invalid value: '{what}'. Supported values are: 'function', 'custom', 'mcp'. ({path})"
        )))
    };
    for (at, tool) in list(&request["tools"]).iter().enumerate() {
        let path = format!("tools[{at}].type");
        if tool["type"] == "tool_search" && options.rejects_feature(RejectedFeature::ToolSearch) {
            return unknown("tool_search", &path);
        }
        if tool["type"] == "namespace" && options.rejects_feature(RejectedFeature::Namespace) {
            return unknown("namespace", &path);
        }
        if deferred(tool) && options.rejects_feature(RejectedFeature::DeferLoading) {
            return Err(bad_request(format!("Unknown parameter: 'tools[{at}].defer_loading'.")));
        }
    }
    for (at, item) in list(&request["input"]).iter().enumerate() {
        if item["type"] == "additional_tools"
            && options.rejects_feature(RejectedFeature::AdditionalTools)
        {
            return unknown("additional_tools", &format!("input[{at}].type"));
        }
    }
    Ok(())
}

/// Whether a tool is deferred, or is a namespace with a deferred member.
fn deferred(tool: &Value) -> bool {
    tool["defer_loading"] == true
        || list(&tool["tools"]).iter().any(|member| member["defer_loading"] == true)
}

fn tools(request: &Value) -> Result<(), ApiError> {
    let tools = list(&request["tools"]);
    let searches = tools.iter().filter(|tool| tool["type"] == "tool_search").count();
    if searches > 1 {
        return Err(bad_request("Invalid value: 'tools'. Only one tool_search tool is allowed."));
    }
    if searches == 0 && tools.iter().any(deferred) {
        return Err(bad_request(
            "Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search.",
        ));
    }
    for (at, tool) in tools.iter().enumerate() {
        let missing = |field: &str| {
            Err(bad_request(format!("Missing required parameter: 'tools[{at}].{field}'.")))
        };
        let described = tool["description"].as_str().is_some_and(|text| !text.is_empty());
        if tool["type"] == "tool_search" && tool["execution"] == "client" && !described {
            return missing("description");
        }
        if tool["type"] == "namespace" {
            if tool.get("defer_loading").is_some() {
                return Err(bad_request(format!(
                    "Unknown parameter: 'tools[{at}].defer_loading'."
                )));
            }
            if !described {
                return missing("description");
            }
            if list(&tool["tools"]).is_empty() {
                return missing("tools");
            }
        }
    }
    Ok(())
}
