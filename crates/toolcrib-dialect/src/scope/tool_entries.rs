//! Removes tools outside the caller's scope from a list of tools.
//!
//! | entry | matched by |
//! |---|---|
//! | a function or custom tool | its name |
//! | a member of a namespace, or of a hosted MCP server | its name and `GROUP__NAME` |
//! | a tool that the provider runs, such as `web_search` | its type, with and without a date, and its name if it has one |
//! | a hosted MCP server | the tools that it is limited to; without such a list it is removed |
//!
//! A group with no tools left is removed. If an entry cannot be matched, the entire body is rejected, because the
//! upstream might be able to read the entry.

use toolcrib_text::json::{self, Fields};

use super::known_keys::fold_key;
use super::{ScopeViolation, ToolFilter};
use crate::api::Api;

/// Keys that only entries for hosted MCP servers have.
const SERVER_KEYS: [&str; 5] =
    ["server_url", "server_label", "mcp_server_name", "connector_id", "allowed_tools"];

/// Keys of a function declaration. In an entry of Gemini's `tools`, all other keys are hosted tools.
const DECLARATION_KEYS: [&str; 10] = [
    "name",
    "type",
    "description",
    "behavior",
    "parameters",
    "parametersJsonSchema",
    "parameters_json_schema",
    "response",
    "responseJsonSchema",
    "response_json_schema",
];

/// Removes tools outside a caller's scope from requests of one API.
#[derive(Clone, Copy)]
pub(super) struct Narrowing<'a> {
    pub(super) api: Api,
    pub(super) visible: ToolFilter<'a>,
}

/// An entry after tools outside the scope were removed from it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NarrowedEntry {
    Unchanged,
    Changed(String),
    Removed,
}

impl NarrowedEntry {
    /// Replaces the list under `key` with `left`. If `left` is `None`, the entry is unchanged. If `left` is empty, the
    /// entry is removed.
    fn with_list(fields: &Fields<'_>, key: &str, left: Option<Vec<String>>) -> Self {
        match left {
            None => Self::Unchanged,
            Some(left) if left.is_empty() => Self::Removed,
            Some(left) => Self::Changed(fields.with(&[(key, Some(list(&left)))])),
        }
    }
}

/// Writes items as a JSON list.
pub(super) fn list(items: &[String]) -> String {
    format!("[{}]", items.join(","))
}

/// Applies `narrow` to each item, and returns the items that are left. Returns `None` if no item changes.
pub(super) fn filter(
    items: &[&str],
    mut narrow: impl FnMut(&str) -> Result<NarrowedEntry, ScopeViolation>,
) -> Result<Option<Vec<String>>, ScopeViolation> {
    let mut left = Vec::with_capacity(items.len());
    let mut changes = false;
    for item in items {
        match narrow(item)? {
            NarrowedEntry::Unchanged => left.push((*item).to_owned()),
            NarrowedEntry::Changed(text) => {
                changes = true;
                left.push(text);
            }
            NarrowedEntry::Removed => changes = true,
        }
    }
    Ok(changes.then_some(left))
}

/// Returns the items of a JSON list. `key` is the field that contains the list, for the error.
pub(super) fn items<'a>(key: &'static str, raw: &'a str) -> Result<Vec<&'a str>, ScopeViolation> {
    let items = json::items(raw).ok_or(ScopeViolation::NotAList(key))?;
    Ok(items.into_iter().map(serde_json::value::RawValue::get).collect())
}

/// Returns the string under `key`, or `None` if it is missing or `null`. Any other value is an error.
pub(super) fn text(
    fields: &Fields<'_>,
    key: &str,
    of: &'static str,
) -> Result<Option<String>, ScopeViolation> {
    match fields.get(key) {
        None | Some("null") => Ok(None),
        Some(_) => fields.string(key).map(Some).ok_or(ScopeViolation::UnnamedTool(of)),
    }
}

impl Narrowing<'_> {
    pub(super) fn sees(self, names: &[&str]) -> bool {
        (self.visible)(names)
    }

    /// Whether a member of a group is in the scope, according to its own name and to `GROUP__NAME`.
    pub(super) fn sees_member(self, group: &str, name: &str) -> bool {
        let gap = if group.ends_with("__") { "" } else { "__" };
        self.sees(&[name, &format!("{group}{gap}{name}")])
    }

    /// Removes tools outside the scope from the list of tools under `key`. Returns `None` if nothing changes.
    pub(super) fn tools(
        self,
        key: &'static str,
        raw: &str,
        group: Option<&str>,
    ) -> Result<Option<Vec<String>>, ScopeViolation> {
        if raw == "null" {
            return Ok(None);
        }
        filter(&items(key, raw)?, |item| self.entry(key, item, group))
    }

    /// Removes tools outside the scope from an entry of a list of tools, or checks a single definition.
    pub(super) fn entry(
        self,
        of: &'static str,
        raw: &str,
        group: Option<&str>,
    ) -> Result<NarrowedEntry, ScopeViolation> {
        let fields = Fields::read(raw).ok_or(ScopeViolation::UnnamedTool(of))?;
        let kind = text(&fields, "type", of)?;
        match (self.api, kind.as_deref()) {
            (_, kind) if is_server(&fields, kind) => return self.server_entry(of, &fields, kind),
            (Api::Gemini, _) if of == "tools" => return self.declarations(&fields),
            (Api::Responses, _) if fields.get("tools").is_some() => {
                let name = text(&fields, "name", of)?.ok_or(ScopeViolation::UnnamedTool(of))?;
                let members = self.tools("tools", fields.get("tools").unwrap_or("[]"), Some(&name));
                return Ok(NarrowedEntry::with_list(&fields, "tools", members?));
            }
            _ => {}
        }
        let is_visible = self.sees_entry(of, &fields, kind.as_deref(), group)?;
        Ok(if is_visible { NarrowedEntry::Unchanged } else { NarrowedEntry::Removed })
    }

    fn sees_entry(
        self,
        of: &'static str,
        fields: &Fields<'_>,
        kind: Option<&str>,
        group: Option<&str>,
    ) -> Result<bool, ScopeViolation> {
        let names = names(of, fields)?;
        let mut is_visible = names.iter().all(|name| match group {
            Some(group) => self.sees_member(group, name),
            None => self.sees(&[name]),
        });
        // A client can give a hosted tool any name, but its type determines what the provider runs. So the type must be
        // in the scope too.
        let is_plain = matches!(kind, None | Some("function" | "custom"));
        let by_type = names.is_empty() || !is_plain;
        match kind {
            Some(kind) if by_type => {
                let undated = kind.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
                is_visible &= self.sees(&[kind, undated]);
            }
            None if names.is_empty() => return Err(ScopeViolation::UnnamedTool(of)),
            _ => {}
        }
        Ok(is_visible)
    }

    /// Removes tools outside the scope from an MCP server that the provider calls. The server is removed if its entry
    /// has neither OpenAI's nor Anthropic's form.
    fn server_entry(
        self,
        of: &'static str,
        fields: &Fields<'_>,
        kind: Option<&str>,
    ) -> Result<NarrowedEntry, ScopeViolation> {
        let is_visible = names(of, fields)?.iter().all(|name| self.sees(&[name]));
        match (self.api, kind) {
            _ if !is_visible || fields.get("tools").is_some() => Ok(NarrowedEntry::Removed),
            (Api::Responses, Some("mcp")) => self.hosted_server(fields),
            (Api::Messages, Some("mcp_toolset")) if fields.get("allowed_tools").is_none() => {
                self.toolset(fields)
            }
            _ => Ok(NarrowedEntry::Removed),
        }
    }

    /// Removes tools outside the scope from an MCP server that OpenAI calls. The server is kept only if it has a list
    /// of allowed tools.
    fn hosted_server(self, fields: &Fields<'_>) -> Result<NarrowedEntry, ScopeViolation> {
        let label = text(fields, "server_label", "tools")?.unwrap_or_default();
        let kept = self.limited(&label, fields)?;
        let Some(approval) = self.approval(&label, fields)? else { return Ok(kept) };
        let edits = [("require_approval", Some(approval))];
        Ok(match kept {
            NarrowedEntry::Unchanged => NarrowedEntry::Changed(fields.with(&edits)),
            NarrowedEntry::Changed(new) => NarrowedEntry::Changed(
                Fields::read(&new).ok_or(ScopeViolation::UnknownForm("tools"))?.with(&edits),
            ),
            NarrowedEntry::Removed => NarrowedEntry::Removed,
        })
    }

    /// Removes tools outside the scope from a server's `require_approval`. Returns `None` if nothing changes.
    fn approval(self, label: &str, fields: &Fields<'_>) -> Result<Option<String>, ScopeViolation> {
        let of = "require_approval";
        let raw = fields.get(of).unwrap_or("null");
        if raw == "null" || raw.starts_with('"') {
            return Ok(None);
        }
        let approval = Fields::read(raw).ok_or(ScopeViolation::UnknownForm(of))?;
        let mut edits: Vec<(&str, Option<String>)> = Vec::new();
        for (key, raw) in approval.iter().filter(|(_, raw)| *raw != "null") {
            let rule = Fields::read(raw).ok_or(ScopeViolation::UnknownForm(of))?;
            let Some(names) = rule.get("tool_names").filter(|raw| *raw != "null") else { continue };
            match NarrowedEntry::with_list(&rule, "tool_names", self.members(label, names)?) {
                NarrowedEntry::Unchanged => {}
                NarrowedEntry::Changed(new) => edits.push((key, Some(new))),
                NarrowedEntry::Removed => edits.push((key, None)),
            }
        }
        Ok((!edits.is_empty()).then(|| approval.with(&edits)))
    }

    /// Removes tools outside the scope from the `allowed_tools` of a server. The server is removed if it has no such
    /// list.
    fn limited(self, label: &str, fields: &Fields<'_>) -> Result<NarrowedEntry, ScopeViolation> {
        let Some(raw) = fields.get("allowed_tools").filter(|raw| *raw != "null") else {
            return Ok(NarrowedEntry::Removed);
        };
        let Some(filter) = Fields::read(raw) else {
            let left = self.members(label, raw)?;
            return Ok(NarrowedEntry::with_list(fields, "allowed_tools", left));
        };
        let Some(raw) = filter.get("tool_names").filter(|raw| *raw != "null") else {
            return Ok(NarrowedEntry::Removed);
        };
        Ok(match NarrowedEntry::with_list(&filter, "tool_names", self.members(label, raw)?) {
            NarrowedEntry::Changed(new) => {
                NarrowedEntry::Changed(fields.with(&[("allowed_tools", Some(new))]))
            }
            kept => kept,
        })
    }

    /// Removes names outside the scope from a list with the names of a group's tools. Returns `None` if nothing
    /// changes. An empty list is returned as if it had changed, so that the group is removed, because some servers
    /// treat an empty list as no limit.
    pub(super) fn members(
        self,
        group: &str,
        raw: &str,
    ) -> Result<Option<Vec<String>>, ScopeViolation> {
        let key = "allowed_tools";
        let names = items(key, raw)?;
        if names.is_empty() {
            return Ok(Some(Vec::new()));
        }
        filter(&names, |raw| {
            let name: String =
                serde_json::from_str(raw).map_err(|_| ScopeViolation::UnnamedTool(key))?;
            Ok(if self.sees_member(group, &name) {
                NarrowedEntry::Unchanged
            } else {
                NarrowedEntry::Removed
            })
        })
    }

    /// Removes tools outside the scope from the toolset of an MCP server that Anthropic calls. The toolset is kept only
    /// if its tools are enabled one by one.
    fn toolset(self, fields: &Fields<'_>) -> Result<NarrowedEntry, ScopeViolation> {
        let server = text(fields, "mcp_server_name", "tools")?.unwrap_or_default();
        let usual = fields.get("default_config").and_then(Fields::read);
        let is_off = usual.is_some_and(|usual| usual.get("enabled") == Some("false"));
        let configs = fields.get("configs").and_then(Fields::read);
        let (true, Some(configs)) = (is_off, configs) else { return Ok(NarrowedEntry::Removed) };
        let is_hidden = |name: &&str| !self.sees_member(&server, name);
        let all: Vec<&str> = configs.iter().map(|(name, _)| name).collect();
        let hidden: Vec<(&str, Option<String>)> =
            all.iter().copied().filter(is_hidden).map(|name| (name, None)).collect();
        Ok(match hidden.len() {
            0 if !all.is_empty() => NarrowedEntry::Unchanged,
            gone if gone == all.len() => NarrowedEntry::Removed,
            _ => NarrowedEntry::Changed(fields.with(&[("configs", Some(configs.with(&hidden)))])),
        })
    }

    /// Removes tools outside the scope from an entry of Gemini's `tools`. Functions are matched by their names, hosted
    /// tools by their keys.
    fn declarations(self, fields: &Fields<'_>) -> Result<NarrowedEntry, ScopeViolation> {
        let is_named =
            ["name", "type", "function", "custom"].iter().any(|key| fields.get(key).is_some());
        if is_named {
            let kind = text(fields, "type", "tools")?;
            if !self.sees_entry("tools", fields, kind.as_deref(), None)? {
                return Ok(NarrowedEntry::Removed);
            }
        }
        let mut edits: Vec<(&str, Option<String>)> = Vec::new();
        let mut left = 0;
        for (key, raw) in fields.iter() {
            let is_list = matches!(key, "functionDeclarations" | "function_declarations");
            let members =
                if is_list { self.tools("functionDeclarations", raw, None)? } else { None };
            // In this API, a hosted server has no list of tools, so it is always removed.
            let is_server = matches!(key, "mcpServers" | "mcp_servers");
            let is_kept = match &members {
                Some(members) => !members.is_empty(),
                None if is_named && DECLARATION_KEYS.contains(&key) => true,
                None => is_list || (!is_server && self.sees(&[key, &snake_case(key)])),
            };
            left += usize::from(is_kept && raw != "null");
            let members = members.map(|members| list(&members));
            if !is_kept || members.is_some() {
                edits.push((key, members.filter(|_| is_kept)));
            }
        }
        Ok(match (edits.is_empty(), left) {
            (true, _) => NarrowedEntry::Unchanged,
            (false, 0) => NarrowedEntry::Removed,
            (false, _) => NarrowedEntry::Changed(fields.with(&edits)),
        })
    }
}

/// Whether an entry is a hosted MCP server, according to its type or its keys.
fn is_server(fields: &Fields<'_>, kind: Option<&str>) -> bool {
    kind.is_some_and(|kind| fold_key(kind).starts_with("mcp"))
        || SERVER_KEYS.iter().any(|key| fields.get(key).is_some())
}

/// Returns all names of an entry: its own name, and the name in the definition inside it.
fn names(of: &'static str, fields: &Fields<'_>) -> Result<Vec<String>, ScopeViolation> {
    let mut names = Vec::new();
    names.extend(text(fields, "name", of)?);
    for inner in ["function", "custom"] {
        if let Some(raw) = fields.get(inner).filter(|raw| *raw != "null") {
            let inner = Fields::read(raw).ok_or(ScopeViolation::UnnamedTool(of))?;
            names.extend(text(&inner, "name", of)?);
        }
    }
    Ok(names)
}

/// Converts `googleSearch` to `google_search`.
fn snake_case(key: &str) -> String {
    let mut out = String::with_capacity(key.len() + 4);
    for c in key.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
