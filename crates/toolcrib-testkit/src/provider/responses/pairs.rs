//! Checks that each call has exactly one output, and that a call of a function outside the default namespace names the
//! function's namespace.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::provider::dialect::{ApiError, bad_request, list};
use crate::provider::options::Options;

pub(super) fn check(request: &Value, options: &Options) -> Result<(), ApiError> {
    let input = list(&request["input"]);
    let shown = |id: Option<&str>| id.unwrap_or("(none)").to_owned();
    let mut outputs: HashMap<Option<&str>, usize> = HashMap::new();
    for item in input.iter().filter(|item| output_label(item).is_some()) {
        *outputs.entry(item["call_id"].as_str()).or_default() += 1;
    }
    let calls_made = input.iter().filter(|item| call_label(item).is_some());
    let without_id = calls_made.filter(|item| item["call_id"].is_null()).count();
    let namespaces = Namespaces::of(request);
    let mut calls: HashSet<Option<&str>> = HashSet::new();
    for item in input {
        let id = item["call_id"].as_str();
        if let Some(label) = call_label(item) {
            if options.call_ids && id.is_none() {
                return Err(bad_request("Missing required parameter: 'input[].call_id'."));
            }
            let wanted = if id.is_none() { without_id } else { 1 };
            match outputs.get(&id) {
                Some(found) if *found == wanted => {}
                Some(found) if *found > wanted => {
                    return Err(bad_request(format!(
                        "Multiple tool outputs found for {label} {}.",
                        shown(id)
                    )));
                }
                _ => {
                    return Err(bad_request(format!(
                        "No tool output found for {label} {}.",
                        shown(id)
                    )));
                }
            }
            calls.insert(id);
            namespaces.check(item)?;
        } else if let Some(label) = output_label(item)
            && !calls.contains(&id)
        {
            return Err(bad_request(format!(
                "No tool call found for {label} with call_id {}.",
                shown(id)
            )));
        }
    }
    Ok(())
}

/// Returns what the API's error messages call an item that needs an output. `None` if the item needs no output.
fn call_label(item: &Value) -> Option<&'static str> {
    match item["type"].as_str()? {
        "function_call" => Some("function call"),
        "custom_tool_call" => Some("custom tool call"),
        "tool_search_call" if item["execution"] == "client" => Some("tool search call"),
        _ => None,
    }
}

/// Returns what the API's error messages call an item that is an output. `None` if the item is not an output.
fn output_label(item: &Value) -> Option<&'static str> {
    match item["type"].as_str()? {
        "function_call_output" => Some("function call output"),
        "custom_tool_call_output" => Some("custom tool call output"),
        "tool_search_output" if item["execution"] == "client" => Some("tool search output"),
        _ => None,
    }
}

/// The names of the functions in the default namespace, and the names of all other functions. Deferred functions are
/// not in the default namespace.
struct Namespaces<'a> {
    default: HashSet<&'a str>,
    elsewhere: HashSet<&'a str>,
}

impl<'a> Namespaces<'a> {
    fn of(request: &'a Value) -> Self {
        let mut namespaces = Self { default: HashSet::new(), elsewhere: HashSet::new() };
        for tool in list(&request["tools"]) {
            let loaded = tool["type"] != "namespace" && tool["defer_loading"] != true;
            let place = if loaded { &mut namespaces.default } else { &mut namespaces.elsewhere };
            place.extend(names(tool));
        }
        for item in list(&request["input"]) {
            namespaces.elsewhere.extend(list(&item["tools"]).iter().flat_map(names));
        }
        namespaces
    }

    /// Rejects a call without a namespace if its function is not in the default namespace but in another one. Calls of
    /// functions that no longer exist are accepted.
    fn check(&self, item: &Value) -> Result<(), ApiError> {
        let name = item["name"].as_str().unwrap_or_default();
        let bare = item["namespace"].as_str().is_none();
        if bare && self.elsewhere.contains(name) && !self.default.contains(name) {
            return Err(bad_request(format!(
                "Missing namespace for function_call '{name}'. It does not exist in the default namespace."
            )));
        }
        Ok(())
    }
}

fn names(tool: &Value) -> Vec<&str> {
    let members = list(&tool["tools"]).iter().filter_map(|member| member["name"].as_str());
    let own = tool["name"].as_str().filter(|_| tool["type"] != "namespace");
    members.chain(own).collect()
}
