//! Writes `tools` for Messages: deferred tools, Toolcrib's own tools, and the cache breakpoint.
//!
//! The API rejects a cache breakpoint on a deferred tool, and dropping the breakpoint would lose the client's cache. So
//! the breakpoint is moved to the last tool that is sent in full. A request never gets more breakpoints than the client
//! set, so the API's limit of four per request remains the client's responsibility.

use toolcrib_core::DefinitionFormat;
use toolcrib_text::json::Fields;

use super::content::{items, json_list};
use crate::mode::{HostedSearch, Mode};
use crate::tool_list::{self, ToolEdit, ToolListEdit};

/// Writes the client's tools, then Toolcrib's own tools, then the tools that a search found.
pub(super) fn write(input: &str, edit: &ToolListEdit<'_>) -> String {
    let defer = |fields: &Fields<'_>| {
        fields.with(&[("defer_loading", Some("true".into())), ("cache_control", None)])
    };
    let mut entries = tool_list::edited_entries(input, edit, &defer);
    entries.extend(own_tools(edit, &entries));
    if let Some(breakpoint) = displaced_breakpoint(input, edit)
        && let Some(last) = entries.iter_mut().rev().find(|entry| is_loaded(entry))
        && let Some(fields) = Fields::read(last)
    {
        *last = fields.with(&[("cache_control", Some(breakpoint))]);
    }
    entries.extend(edit.appended.iter().map(|found| without_breakpoint(found)));
    json_list(&entries)
}

fn own_tools(edit: &ToolListEdit<'_>, entries: &[String]) -> Vec<String> {
    let Mode::Hosted(search) = edit.mode else {
        return edit.own.iter().map(|own| own.definition(DefinitionFormat::Anthropic)).collect();
    };
    if !edit.counts_tokens {
        let kind = match search {
            HostedSearch::Regex => "regex",
            HostedSearch::Bm25 | HostedSearch::Namespaces => "bm25",
        };
        let tool = format!(
            r#"{{"type":"tool_search_tool_{kind}_20251119","name":"tool_search_tool_{kind}"}}"#
        );
        return vec![tool];
    }
    // The token counting endpoint rejects the provider's own tools. It also rejects a list in which every tool is
    // deferred, so a plain search tool is added to such a list.
    if entries.iter().any(|entry| is_loaded(entry)) {
        return Vec::new();
    }
    let placeholder = r#"{"name":"tool_search","description":"Finds deferred tools.","input_schema":{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}}"#;
    vec![placeholder.to_owned()]
}

/// Returns the client's last cache breakpoint if it is on a tool that is not sent in full.
fn displaced_breakpoint(input: &str, edit: &ToolListEdit<'_>) -> Option<String> {
    let mut breakpoint = None;
    for item in items(input).unwrap_or_default() {
        let Some(fields) = Fields::read(item) else { continue };
        let Some(here) = breakpoint_of(&fields) else { continue };
        let keep = tool_list::name(&fields).map_or(ToolEdit::Keep, |name| (edit.tool_edit)(&name));
        breakpoint = match keep {
            ToolEdit::Remove | ToolEdit::MarkDeferred => Some(here.to_owned()),
            ToolEdit::Replace(text)
                if Fields::read(text).is_none_or(|stub| breakpoint_of(&stub).is_none()) =>
            {
                Some(here.to_owned())
            }
            ToolEdit::Keep | ToolEdit::Replace(_) => None,
        };
    }
    breakpoint
}

fn breakpoint_of<'a>(fields: &Fields<'a>) -> Option<&'a str> {
    fields.get("cache_control").filter(|raw| *raw != "null")
}

fn is_loaded(entry: &str) -> bool {
    Fields::read(entry).is_some_and(|fields| fields.get("defer_loading") != Some("true"))
}

/// Returns the definition of a found tool without its cache breakpoint, which has been moved to another tool.
fn without_breakpoint(definition: &str) -> String {
    match Fields::read(definition).filter(|fields| fields.get("cache_control").is_some()) {
        Some(fields) => fields.with(&[("cache_control", None)]),
        None => definition.to_owned(),
    }
}
