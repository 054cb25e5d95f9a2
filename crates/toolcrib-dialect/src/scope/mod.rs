//! Removes the tools outside the caller's scope from a body. This is called narrowing.
//!
//! The four APIs have tools in many places: lists, groups in lists, entries of the history, tool choices, servers that
//! the provider calls, and objects that the provider stores. [`narrow`] goes through all of them. If it cannot decide,
//! it rejects the body: for a caller with a limited scope, an error is better than a tool outside the scope.
//!
//! Reading order: `key_check` and `known_keys` (no key may hide tools), `tool_entries` (lists of tools), `history` and
//! `loading_blocks` (entries that load tools), `tool_choice`, `response_form` (the response must be one that can be
//! checked), `violation` (why a body is rejected).

mod history;
mod key_check;
mod known_keys;
mod loading_blocks;
mod response_form;
mod tool_choice;
mod tool_entries;
mod violation;

use toolcrib_text::json::{self, Fields};

pub(crate) use self::key_check::history_key;
pub use self::known_keys::fold_key;
pub(crate) use self::response_form::check as check_form;
use self::tool_entries::{NarrowedEntry, Narrowing, filter, items, list};
pub use self::violation::ScopeViolation;
use crate::api::Api;

/// A function that returns whether a tool is in the caller's scope, given all of its names. The tool is in the scope if
/// at least one of its names is allowed and none is hidden.
pub type ToolFilter<'a> = &'a dyn Fn(&[&str]) -> bool;

/// Fields that make the provider run a tool. Each has the names that are looked up in the caller's scope.
const HOSTED_TOOL_FIELDS: [(&str, &[&str]); 6] = [
    ("web_search_options", &["web_search_options", "web_search"]),
    ("search_parameters", &["search_parameters"]),
    ("plugins", &["plugins"]),
    ("connectors", &["connectors"]),
    ("data_sources", &["data_sources"]),
    ("dataSources", &["data_sources"]),
];

/// Fields that refer to a stored object of the provider that may contain tools. `previous_response_id` is not among
/// them, because tools are sent again with each request. Tools that the previous response loaded were already checked
/// in the request for that response.
const STORED_FIELDS: [&str; 5] =
    ["conversation", "prompt", "container", "cachedContent", "cached_content"];

/// Changes to the top level of a body.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct BodyChanges {
    /// Fields whose lists of tools change, with the new lists.
    pub(crate) tools: Vec<(&'static str, String)>,
    /// Other fields that change, with their new values. `None` removes the field.
    pub(crate) others: Vec<(&'static str, Option<String>)>,
}

/// Returns the changes that remove every tool that is not `visible` from a body. `body` is the top level of `text`.
pub(crate) fn narrow(
    api: Api,
    text: &str,
    body: &Fields<'_>,
    visible: ToolFilter<'_>,
) -> Result<BodyChanges, ScopeViolation> {
    key_check::check(api, text)?;
    let narrow = Narrowing { api, visible };
    let given = |key: &str| body.get(key).filter(|raw| *raw != "null");
    for field in STORED_FIELDS {
        if given(field).is_some() {
            return Err(ScopeViolation::StoredReference(field));
        }
    }
    let mut changes = BodyChanges::default();
    for key in ["tools", "functions"] {
        if let Some(raw) = given(key) {
            let left = narrow.tools(key, raw, None)?;
            changes.tools.extend(left.map(|left| (key, list(&left))));
        }
    }
    for (field, names) in HOSTED_TOOL_FIELDS {
        if given(field).is_some() && !narrow.sees(names) {
            changes.others.push((field, None));
        }
    }
    for key in ["toolConfig", "tool_config"] {
        if let (Some(raw), Api::Gemini) = (given(key), api) {
            changes.others.extend(narrow.tool_config(raw)?.map(|new| (key, Some(new))));
        }
    }
    let tools = changes.tools.iter().find(|(key, _)| *key == "tools").map(|(_, new)| new.as_str());
    let servers = hosted_servers(api, tools.or_else(|| given("tools")).unwrap_or("[]"));
    for key in ["tool_choice", "function_call"] {
        if let (Some(raw), false) = (given(key), api == Api::Gemini) {
            changes.others.extend(narrow.choice(key, raw, &servers)?.map(|new| (key, Some(new))));
        }
    }
    if let (Some(raw), Api::Messages) = (given("system"), api) {
        history::require_no_loading_blocks("system", raw)?;
    }
    if let (Some(raw), Api::Messages) = (given("mcp_servers"), api) {
        let left = filter(&items("mcp_servers", raw)?, |raw| narrow.server(raw, &servers))?;
        let left = left.map(|left| (!left.is_empty()).then(|| list(&left)));
        changes.others.extend(left.map(|left| ("mcp_servers", left)));
    }
    let history = key_check::history_key(api);
    if let Some(raw) = given(history) {
        let left = narrow.history(raw, &servers)?;
        changes.others.extend(left.map(|left| (history, Some(left))));
    }
    Ok(changes)
}

/// Returns the names of the hosted servers in a list of tools. The tools outside the scope must already be removed from
/// the list.
fn hosted_servers(api: Api, tools: &str) -> Vec<String> {
    let (kind, key) = match api {
        Api::Messages => ("mcp_toolset", "mcp_server_name"),
        Api::Responses => ("mcp", "server_label"),
        Api::Chat | Api::Gemini => return Vec::new(),
    };
    let entries = json::items(tools).unwrap_or_default();
    let entries = entries.iter().filter_map(|raw| Fields::read(raw.get()));
    let servers = entries.filter(|it| it.string("type").as_deref() == Some(kind));
    servers.filter_map(|it| it.string(key)).collect()
}

impl Narrowing<'_> {
    /// Removes tools outside the scope from an entry of `mcp_servers`. The entry itself or one of `toolsets` must limit
    /// the server's tools; otherwise the entry is removed.
    fn server(self, raw: &str, toolsets: &[String]) -> Result<NarrowedEntry, ScopeViolation> {
        let of = "mcp_servers";
        let server = Fields::read(raw).ok_or(ScopeViolation::UnnamedTool(of))?;
        let name = server.string("name").ok_or(ScopeViolation::UnnamedTool(of))?;
        let Some(config) = server.get("tool_configuration").filter(|raw| *raw != "null") else {
            let is_declared = toolsets.contains(&name);
            return Ok(if is_declared { NarrowedEntry::Unchanged } else { NarrowedEntry::Removed });
        };
        let config = Fields::read(config).ok_or(ScopeViolation::UnnamedTool(of))?;
        let Some(allowed) = config.get("allowed_tools").filter(|raw| *raw != "null") else {
            return Ok(NarrowedEntry::Removed);
        };
        Ok(match self.members(&name, allowed)? {
            None => NarrowedEntry::Unchanged,
            Some(left) if left.is_empty() => NarrowedEntry::Removed,
            Some(left) => {
                let config = config.with(&[("allowed_tools", Some(list(&left)))]);
                NarrowedEntry::Changed(server.with(&[("tool_configuration", Some(config))]))
            }
        })
    }
}
