//! Edits the `tools` of a request.
//!
//! The client's order is kept. The provider's own tools and unreadable entries stay unchanged. Only deferred tools are
//! removed or replaced.

use toolcrib_core::disclosure::OwnTool;
use toolcrib_text::json::{self, Fields};

use crate::limits::MAX_TOOLS;
use crate::mode::Mode;

/// How one of the client's tools is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToolEdit<'a> {
    /// Send the tool unchanged.
    Keep,
    /// Do not send the tool.
    Remove,
    /// Send the tool, marked as deferred for the provider.
    MarkDeferred,
    /// Send this definition instead of the tool.
    Replace(&'a str),
}

/// The changes to the `tools` of a request.
pub(crate) struct ToolListEdit<'a> {
    pub(crate) mode: Mode,
    /// Whether the request only counts tokens.
    pub(crate) counts_tokens: bool,
    /// Returns what to do with the tool that has this name.
    pub(crate) tool_edit: &'a dyn Fn(&str) -> ToolEdit<'a>,
    /// Returns the server or group of the tool that has this name.
    pub(crate) group: &'a dyn Fn(&str) -> Option<&'a str>,
    /// Toolcrib's own tools to add.
    pub(crate) own: &'a [OwnTool],
    /// Definitions of found tools, to add at the end.
    pub(crate) appended: &'a [&'a str],
}

/// A function that writes the edited `tools` in the format of one API.
pub(crate) type WriteTools = fn(&str, &ToolListEdit<'_>) -> String;

/// Returns the name of an entry. Returns `None` if the entry has no name, such as `{"googleSearch": {}}`.
pub(crate) fn name(fields: &Fields<'_>) -> Option<String> {
    let inner = ["function", "custom"].iter().find_map(|key| fields.get(key));
    inner
        .and_then(Fields::read)
        .as_ref()
        .and_then(|inner| inner.string("name"))
        .or_else(|| fields.string("name"))
}

/// If an entry is a group of tools, returns the key of the list that contains its members, and the members.
pub(crate) fn members<'a>(fields: &Fields<'a>) -> Option<(&'static str, Vec<&'a str>)> {
    let keys: &[&'static str] = match fields.string("type").as_deref() {
        Some("namespace") => &["tools"],
        None => &["functionDeclarations", "function_declarations"],
        Some(_) => &[],
    };
    let (key, list) = keys.iter().find_map(|key| Some((*key, fields.get(key)?)))?;
    Some((key, json::items(list)?.into_iter().map(serde_json::value::RawValue::get).collect()))
}

/// Returns the names of all tools in a list, including those in groups.
pub(crate) fn names(input: &str) -> Vec<String> {
    let mut all = Vec::new();
    for item in json::items(input).unwrap_or_default() {
        let Some(fields) = Fields::read(item.get()) else { continue };
        match members(&fields) {
            Some((_, members)) => {
                all.extend(members.iter().filter_map(|member| name(&Fields::read(member)?)));
            }
            None => all.extend(name(&fields)),
        }
    }
    all
}

/// Returns the number of tools in a list, including those in groups. If the list clearly has no more than
/// [`MAX_TOOLS`], returns 0 without counting.
pub(crate) fn count_if_many(input: &str) -> usize {
    // Each tool is an object, so it has at least one brace. Most lists have far fewer braces than the limit and need
    // not be parsed.
    if memchr::memchr_iter(b'{', input.as_bytes()).count() <= MAX_TOOLS {
        return 0;
    }
    let in_group = |raw: &str| members(&Fields::read(raw)?).map(|(_, members)| members.len());
    let items = json::items(input).unwrap_or_default();
    items.iter().map(|item| in_group(item.get()).unwrap_or(1)).sum()
}

/// The names of bridge tools in Toolcrib, Hermes and other programs that use the same names.
const BRIDGE_TOOLS: [&str; 4] = ["tool_search", "tool_search_regex", "tool_describe", "tool_call"];

/// Whether a client's tools include a tool search that the client answers itself. `tool_call` without `tool_describe`
/// is not enough evidence, because a tool with that name may do anything.
pub(crate) fn has_client_search(input: &str) -> bool {
    // Most requests contain none of these words, so their tools need not be parsed.
    let words = ["tool_search", "ToolSearch", "tool_describe"];
    if !words.iter().any(|word| input.contains(word)) {
        return false;
    }
    let names = names(input);
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    let types = json::items(input).unwrap_or_default();
    let mut types = types.iter().filter_map(|item| Fields::read(item.get())?.string("type"));
    has("tool_search")
        || has("ToolSearch")
        || (has("tool_describe") && has("tool_call"))
        || types.any(|kind| kind.starts_with("tool_search") || kind.ends_with(":tool_search"))
}

/// Returns the bridge tools of the client's servers, for example of a gateway with tool search. Bridge tools give
/// access to other tools. If they were deferred, the model would first have to search for them.
pub(crate) fn server_bridge_tools<'a>(
    names: impl Iterator<Item = &'a String> + Clone,
) -> Vec<&'a str> {
    let has_server_prefix = |name: &str, part: &str| {
        let server = name.strip_suffix(part).unwrap_or_default();
        server.ends_with(['_', '-', '.', ':', '/'])
    };
    let mut all = names.clone();
    if !all.any(|name| has_server_prefix(name, "tool_search")) {
        return Vec::new();
    }
    let bridge = |name: &&String| BRIDGE_TOOLS.iter().any(|part| has_server_prefix(name, part));
    let mut bridges: Vec<&str> = names.filter(bridge).map(String::as_str).collect();
    bridges.sort_unstable();
    bridges
}

/// Returns the entries of the client's `tools` after the edit. `defer` writes an entry that is marked as deferred. A
/// group without remaining members is removed, unless its entry also contains hosted tools.
pub(crate) fn edited_entries(
    input: &str,
    edit: &ToolListEdit<'_>,
    defer: &dyn Fn(&Fields<'_>) -> String,
) -> Vec<String> {
    let one = |text: &str| -> Option<String> {
        let fields = Fields::read(text);
        let name = fields.as_ref().and_then(name);
        let (Some(fields), Some(name)) = (fields, name) else { return Some(text.to_owned()) };
        match (edit.tool_edit)(&name) {
            ToolEdit::Keep => Some(text.to_owned()),
            ToolEdit::Remove => None,
            ToolEdit::MarkDeferred => Some(defer(&fields)),
            ToolEdit::Replace(new) => Some(new.to_owned()),
        }
    };
    let entry = |text: &str| -> Option<String> {
        let Some(fields) = Fields::read(text) else { return Some(text.to_owned()) };
        let Some((key, members)) = members(&fields) else { return one(text) };
        let left: Vec<String> = members.iter().filter_map(|member| one(member)).collect();
        if left.iter().map(String::as_str).eq(members.iter().copied()) {
            return Some(text.to_owned());
        }
        let list = (!left.is_empty()).then(|| format!("[{}]", left.join(",")));
        // In Gemini's API, one entry can contain function declarations and hosted tools.
        let has_more = key != "tools" && fields.iter().any(|(other, _)| other != key);
        (list.is_some() || has_more).then(|| fields.with(&[(key, list)]))
    };
    json::items(input).unwrap_or_default().iter().filter_map(|item| entry(item.get())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_that_are_kept_keep_their_bytes_and_their_order() {
        let input = r#"[ {"name": "a", "input_schema": {"z": 1.0}}, {"type": "web_search"},
            {"functionDeclarations": [{"name":"b"}, {"name": "c" }], "x": 1}, 7 ]"#;
        assert_eq!(names(input), ["a", "b", "c"]);
        let only = |keep: &dyn Fn(&str) -> bool| {
            let edit = ToolListEdit {
                mode: Mode::Bridge,
                counts_tokens: false,
                tool_edit: &|name| if keep(name) { ToolEdit::Keep } else { ToolEdit::Remove },
                group: &|_| None,
                own: &[],
                appended: &[],
            };
            format!("[{}]", edited_entries(input, &edit, &|_| String::new()).join(","))
        };
        assert_eq!(
            only(&|name| name != "b"),
            r#"[{"name": "a", "input_schema": {"z": 1.0}},{"type": "web_search"},{"functionDeclarations":[{"name": "c" }],"x":1},7]"#
        );
        assert_eq!(only(&|_| false), r#"[{"type": "web_search"},{"x":1},7]"#);
    }
}
