//! Removes tools outside the caller's scope from the tool choice of a request.
//!
//! If the client allows several tools, those in the scope are kept. If the client forces a tool outside the scope, the
//! body is rejected: without the choice, the model could do something that the client has ruled out.

use serde_json::Value;
use toolcrib_text::json::Fields;

use super::ScopeViolation;
use super::tool_entries::{NarrowedEntry, Narrowing, filter, items, list, text};

/// String values of a choice that do not name a tool.
const WORD_CHOICES: [&str; 4] = ["auto", "none", "required", "any"];

/// All known keys of a tool choice. Other keys are rejected, because they might name a tool.
const CHOICE_KEYS: [&str; 10] = [
    "type",
    "mode",
    "name",
    "namespace",
    "server_label",
    "function",
    "custom",
    "tools",
    "allowed_tools",
    "disable_parallel_tool_use",
];

/// The keys of Gemini's `toolConfig`.
const TOOL_CONFIG_KEYS: [&str; 6] = [
    "functionCallingConfig",
    "function_calling_config",
    "retrievalConfig",
    "retrieval_config",
    "includeServerSideToolInvocations",
    "include_server_side_tool_invocations",
];
/// The keys of `functionCallingConfig` in Gemini's `toolConfig`.
const CALLING_CONFIG_KEYS: [&str; 5] = [
    "mode",
    "allowedFunctionNames",
    "allowed_function_names",
    "streamFunctionCallArguments",
    "stream_function_call_arguments",
];

/// Returns an error if an object has keys other than `known`.
fn require_known_keys(
    of: &'static str,
    fields: &Fields<'_>,
    known: &[&str],
) -> Result<(), ScopeViolation> {
    let is_known = fields.iter().all(|(key, _)| known.contains(&key));
    if is_known { Ok(()) } else { Err(ScopeViolation::UnknownForm(of)) }
}

impl Narrowing<'_> {
    /// Removes tools outside the scope from the value of `tool_choice` or `function_call`. Returns `None` if nothing
    /// changes.
    pub(super) fn choice(
        self,
        key: &'static str,
        raw: &str,
        servers: &[String],
    ) -> Result<Option<String>, ScopeViolation> {
        let new = self.narrowed_choice(key, raw, servers)?;
        let left = serde_json::from_str(new.as_deref().unwrap_or(raw));
        self.check_names(key, &left.map_err(|_| ScopeViolation::UnknownForm(key))?)?;
        Ok(new)
    }

    /// Returns an error if a choice contains any name outside the scope, even a name that has no meaning for this type
    /// of choice.
    fn check_names(self, key: &'static str, choice: &Value) -> Result<(), ScopeViolation> {
        match choice {
            Value::Array(items) => items.iter().try_for_each(|item| self.check_names(key, item)),
            Value::Object(fields) => {
                let group = ["server_label", "namespace"].iter().find_map(|key| fields.get(*key));
                for (field, value) in fields {
                    match (field.as_str(), value, group) {
                        (field, ..) if !CHOICE_KEYS.contains(&field) => {
                            return Err(ScopeViolation::UnknownForm(key));
                        }
                        ("name", Value::String(name), group) => {
                            let is_visible = match group.and_then(Value::as_str) {
                                Some(group) => self.sees_member(group, name),
                                None => self.sees(&[name]),
                            };
                            if !is_visible {
                                return Err(ScopeViolation::HiddenToolChosen(key));
                            }
                        }
                        ("name", Value::Null, _) => {}
                        ("name", ..) => return Err(ScopeViolation::UnnamedTool(key)),
                        _ => self.check_names(key, value)?,
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn narrowed_choice(
        self,
        key: &'static str,
        raw: &str,
        servers: &[String],
    ) -> Result<Option<String>, ScopeViolation> {
        if raw == "null" {
            return Ok(None);
        }
        if let Ok(word) = serde_json::from_str::<String>(raw) {
            // Some servers accept a tool's name as a string here, so it must be in the scope.
            let is_known = WORD_CHOICES.contains(&word.as_str()) || self.sees(&[&word]);
            return if is_known { Ok(None) } else { Err(ScopeViolation::HiddenToolChosen(key)) };
        }
        let choice = Fields::read(raw).ok_or(ScopeViolation::UnnamedTool(key))?;
        if choice.get("allowed_tools").is_some() && choice.get("tools").is_some() {
            return Err(ScopeViolation::UnknownForm(key));
        }
        // In Chat Completions, the list of tools is in `allowed_tools`, one level deeper than in Responses.
        if let Some(inner) = choice.get("allowed_tools").and_then(Fields::read) {
            let left = self.allowed(key, inner.get("tools").unwrap_or("[]"), servers)?;
            let inner = left.map(|left| inner.with(&[("tools", Some(left))]));
            return Ok(inner.map(|inner| choice.with(&[("allowed_tools", Some(inner))])));
        }
        if let Some(raw) = choice.get("tools") {
            let left = self.allowed(key, raw, servers)?;
            return Ok(left.map(|left| choice.with(&[("tools", Some(left))])));
        }
        match choice.string("type").as_deref() {
            Some("auto" | "none" | "any" | "required") => Ok(None),
            // In the Messages API, a choice of this type names a tool.
            Some("tool") => match choice.string("name") {
                Some(name) if self.sees(&[&name]) => Ok(None),
                _ => Err(ScopeViolation::HiddenToolChosen(key)),
            },
            _ if self.chosen_tool(key, raw, servers)? == NarrowedEntry::Unchanged => Ok(None),
            _ => Err(ScopeViolation::HiddenToolChosen(key)),
        }
    }

    fn allowed(
        self,
        key: &'static str,
        raw: &str,
        servers: &[String],
    ) -> Result<Option<String>, ScopeViolation> {
        match filter(&items(key, raw)?, |tool| self.chosen_tool(key, tool, servers))? {
            Some(left) if left.is_empty() => Err(ScopeViolation::HiddenToolChosen(key)),
            left => Ok(left.map(|left| list(&left))),
        }
    }

    /// Checks one tool of a choice. The tool is removed from the choice if it is outside the scope.
    fn chosen_tool(
        self,
        key: &'static str,
        raw: &str,
        servers: &[String],
    ) -> Result<NarrowedEntry, ScopeViolation> {
        let tool = Fields::read(raw).ok_or(ScopeViolation::UnnamedTool(key))?;
        // Tools outside the scope were already removed from the declaration of the server, so a choice of the entire
        // server is allowed.
        if tool.string("type").as_deref() == Some("mcp") {
            let label = tool.string("server_label").unwrap_or_default();
            let is_visible = match text(&tool, "name", key)? {
                Some(name) => self.sees_member(&label, &name),
                None => servers.contains(&label),
            };
            return Ok(if is_visible { NarrowedEntry::Unchanged } else { NarrowedEntry::Removed });
        }
        let group = tool.string("namespace");
        self.entry(key, raw, group.as_deref())
    }

    /// Removes names outside the scope from Gemini's `toolConfig`. Returns `None` if nothing changes.
    pub(super) fn tool_config(self, raw: &str) -> Result<Option<String>, ScopeViolation> {
        let key = "allowedFunctionNames";
        let of = "toolConfig";
        let config = Fields::read(raw).ok_or(ScopeViolation::UnknownForm(of))?;
        require_known_keys(of, &config, &TOOL_CONFIG_KEYS)?;
        let calling = ["functionCallingConfig", "function_calling_config"]
            .into_iter()
            .find_map(|key| Some((key, config.get(key).filter(|raw| *raw != "null")?)));
        let Some((calling_key, calling)) = calling else { return Ok(None) };
        let calling = Fields::read(calling).ok_or(ScopeViolation::UnknownForm(of))?;
        require_known_keys(of, &calling, &CALLING_CONFIG_KEYS)?;
        let names = [key, "allowed_function_names"]
            .into_iter()
            .find_map(|key| Some((key, calling.get(key)?)))
            .filter(|(_, raw)| *raw != "null");
        let Some((names_key, raw)) = names else { return Ok(None) };
        let left = filter(&items(key, raw)?, |raw| {
            let name: String =
                serde_json::from_str(raw).map_err(|_| ScopeViolation::UnnamedTool(key))?;
            Ok(if self.sees(&[&name]) { NarrowedEntry::Unchanged } else { NarrowedEntry::Removed })
        })?;
        match left {
            None => Ok(None),
            // An empty list would allow all functions, so the body is rejected.
            Some(left) if left.is_empty() => Err(ScopeViolation::HiddenToolChosen(key)),
            Some(left) => {
                let calling = calling.with(&[(names_key, Some(list(&left)))]);
                Ok(Some(config.with(&[(calling_key, Some(calling))])))
            }
        }
    }
}
