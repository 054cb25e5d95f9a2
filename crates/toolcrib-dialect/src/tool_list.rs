//! The `tools` of a request, edited in place.
//!
//! What the client ordered stays in its order; what is the provider's own, and what we could not read,
//! stays as it came. Only a tool that is deferred goes, or changes its text.

use toolcrib_core::disclosure::OwnTool;
use toolcrib_text::json::{self, Fields};

use crate::limits::MAX_TOOLS;
use crate::mode::Mode;

/// What becomes of one tool of the client's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToolEdit<'a> {
    /// As it came.
    Keep,
    /// Not sent.
    Remove,
    /// Sent, and marked as deferred for the provider.
    MarkDeferred,
    /// Sent as this text.
    Replace(&'a str),
}

/// What is to become of the tools of a request.
pub(crate) struct ToolListEdit<'a> {
    /// How tools are deferred.
    pub(crate) mode: Mode,
    /// Whether the request only counts tokens.
    pub(crate) counts: bool,
    /// What becomes of a tool of this name.
    pub(crate) keep: &'a dyn Fn(&str) -> ToolEdit<'a>,
    /// The server or group of a tool of this name.
    pub(crate) group: &'a dyn Fn(&str) -> Option<&'a str>,
    /// Our own.
    pub(crate) own: &'a [OwnTool],
    /// Definitions that were found, to stand last.
    pub(crate) found: &'a [&'a str],
}

/// Writes the `tools` of one API.
pub(crate) type WriteTools = fn(&str, &ToolListEdit<'_>) -> String;

/// The name of an entry; `None` for one without, such as `{"googleSearch": {}}`.
pub(crate) fn name(fields: &Fields<'_>) -> Option<String> {
    let inner = ["function", "custom"].iter().find_map(|key| fields.get(key));
    inner
        .and_then(Fields::read)
        .as_ref()
        .and_then(|inner| inner.string("name"))
        .or_else(|| fields.string("name"))
}

/// The members of an entry that is a group, and the key they stand under.
pub(crate) fn members<'a>(fields: &Fields<'a>) -> Option<(&'static str, Vec<&'a str>)> {
    let keys: &[&'static str] = match fields.string("type").as_deref() {
        Some("namespace") => &["tools"],
        None => &["functionDeclarations", "function_declarations"],
        Some(_) => &[],
    };
    let (key, list) = keys.iter().find_map(|key| Some((*key, fields.get(key)?)))?;
    Some((key, json::items(list)?.into_iter().map(serde_json::value::RawValue::get).collect()))
}

/// The names that a client declares, whatever kind of tool they are.
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

/// The number of tools in a list, those in groups included; 0 for a list that cannot have more than [`MAX_TOOLS`].
pub(crate) fn count(input: &str) -> usize {
    // Each tool is an object. Most lists have far fewer braces, and need not be read for this.
    if memchr::memchr_iter(b'{', input.as_bytes()).count() <= MAX_TOOLS {
        return 0;
    }
    let in_group = |raw: &str| members(&Fields::read(raw)?).map(|(_, members)| members.len());
    let items = json::items(input).unwrap_or_default();
    items.iter().map(|item| in_group(item.get()).unwrap_or(1)).sum()
}

/// The tools of a bridge: ours, Hermes' and those of others that took over the names.
const BRIDGE: [&str; 4] = ["tool_search", "tool_search_regex", "tool_describe", "tool_call"];

/// Whether a client's tools include a tool search that the client answers itself. `tool_call` without
/// `tool_describe` is not enough: a tool of that name may do anything.
pub(crate) fn bring_a_search(input: &str) -> bool {
    // Most requests have none of the words, and their tools need not be read.
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

/// The tools of a bridge that a client has from one of its servers, such as a gateway with tool search. They
/// stand for other tools, and deferred they would have to be searched for first.
pub(crate) fn bridges<'a>(names: impl Iterator<Item = &'a String> + Clone) -> Vec<&'a str> {
    let is_of = |name: &str, part: &str| {
        let server = name.strip_suffix(part).unwrap_or_default();
        server.ends_with(['_', '-', '.', ':', '/'])
    };
    let mut all = names.clone();
    if !all.any(|name| is_of(name, "tool_search")) {
        return Vec::new();
    }
    let bridge = |name: &&String| BRIDGE.iter().any(|part| is_of(name, part));
    let mut bridges: Vec<&str> = names.filter(bridge).map(String::as_str).collect();
    bridges.sort_unstable();
    bridges
}

/// The entries of a client's `tools` after each was asked about; `defer` writes one that is marked. A
/// group whose members are all gone is gone, unless it holds something else.
pub(crate) fn kept(
    input: &str,
    edit: &ToolListEdit<'_>,
    defer: &dyn Fn(&Fields<'_>) -> String,
) -> Vec<String> {
    let one = |text: &str| -> Option<String> {
        let fields = Fields::read(text);
        let called = fields.as_ref().and_then(name);
        let (Some(fields), Some(called)) = (fields, called) else { return Some(text.to_owned()) };
        match (edit.keep)(&called) {
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
        // Gemini has its own tools beside the declarations, in one entry.
        let beside = key != "tools" && fields.iter().any(|(other, _)| other != key);
        (list.is_some() || beside).then(|| fields.with(&[(key, list)]))
    };
    json::items(input).unwrap_or_default().iter().filter_map(|item| entry(item.get())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_keeps_its_bytes_and_its_place() {
        let input = r#"[ {"name": "a", "input_schema": {"z": 1.0}}, {"type": "web_search"},
            {"functionDeclarations": [{"name":"b"}, {"name": "c" }], "x": 1}, 7 ]"#;
        assert_eq!(names(input), ["a", "b", "c"]);
        let only = |keep: &dyn Fn(&str) -> bool| {
            let edit = ToolListEdit {
                mode: Mode::Bridge,
                counts: false,
                keep: &|name| if keep(name) { ToolEdit::Keep } else { ToolEdit::Remove },
                group: &|_| None,
                own: &[],
                found: &[],
            };
            format!("[{}]", kept(input, &edit, &|_| String::new()).join(","))
        };
        assert_eq!(
            only(&|name| name != "b"),
            r#"[{"name": "a", "input_schema": {"z": 1.0}},{"type": "web_search"},{"functionDeclarations":[{"name": "c" }],"x":1},7]"#
        );
        assert_eq!(only(&|_| false), r#"[{"type": "web_search"},{"x":1},7]"#);
    }
}
