//! What a request says about which tools may be called.
//!
//! A choice among several tools keeps those that the caller may know of. A tool that is forced and does
//! not exist for the caller refuses the body: leaving the choice out would let the model do something that
//! the client has ruled out.

use toolcrib_core::json::Fields;

use super::Refused;
use super::entries::{Kept, Narrow, filter, items, list};

/// Choices that name no tool.
const WORDS: [&str; 4] = ["auto", "none", "required", "any"];

impl Narrow<'_> {
    /// The value of `tool_choice` or `function_call`; `None` if it stays as it is.
    pub(super) fn choice(self, key: &'static str, raw: &str) -> Result<Option<String>, Refused> {
        if raw == "null" {
            return Ok(None);
        }
        if let Ok(word) = serde_json::from_str::<String>(raw) {
            // Some servers take a tool's name here.
            let is_known = WORDS.contains(&word.as_str()) || self.sees(&[&word]);
            return if is_known { Ok(None) } else { Err(Refused::Choice(key)) };
        }
        let choice = Fields::read(raw).ok_or(Refused::Unnamed(key))?;
        // Chat Completions has the list one level deeper than Responses.
        if let Some(inner) = choice.get("allowed_tools").and_then(Fields::read) {
            let left = self.allowed(key, inner.get("tools").unwrap_or("[]"))?;
            let inner = left.map(|left| inner.with(&[("tools", Some(left))]));
            return Ok(inner.map(|inner| choice.with(&[("allowed_tools", Some(inner))])));
        }
        if let Some(raw) = choice.get("tools") {
            let left = self.allowed(key, raw)?;
            return Ok(left.map(|left| choice.with(&[("tools", Some(left))])));
        }
        match choice.string("type").as_deref() {
            Some("auto" | "none" | "any" | "required") => Ok(None),
            // Messages names a tool like this; it is not the type of one.
            Some("tool") => match choice.string("name") {
                Some(name) if self.sees(&[&name]) => Ok(None),
                _ => Err(Refused::Choice(key)),
            },
            _ if self.chosen(key, raw)? == Kept::AsIs => Ok(None),
            _ => Err(Refused::Choice(key)),
        }
    }

    fn allowed(self, key: &'static str, raw: &str) -> Result<Option<String>, Refused> {
        match filter(&items(key, raw)?, |tool| self.chosen(key, tool))? {
            Some(left) if left.is_empty() => Err(Refused::Choice(key)),
            left => Ok(left.map(|left| list(&left))),
        }
    }

    /// One tool that is chosen.
    fn chosen(self, key: &'static str, raw: &str) -> Result<Kept, Refused> {
        let tool = Fields::read(raw).ok_or(Refused::Unnamed(key))?;
        // Of a server whose tools were narrowed where it is declared.
        if tool.string("type").as_deref() == Some("mcp") {
            let label = tool.string("server_label").unwrap_or_default();
            let is_visible = tool.string("name").is_none_or(|name| self.sees_member(&label, &name));
            return Ok(if is_visible { Kept::AsIs } else { Kept::Nothing });
        }
        let group = tool.string("namespace");
        self.entry(key, raw, group.as_deref())
    }

    /// Gemini's `toolConfig`; `None` if it stays as it is.
    pub(super) fn tool_config(self, raw: &str) -> Result<Option<String>, Refused> {
        let key = "allowedFunctionNames";
        let Some(config) = Fields::read(raw) else { return Ok(None) };
        let calling = ["functionCallingConfig", "function_calling_config"]
            .into_iter()
            .find_map(|key| Some((key, Fields::read(config.get(key)?)?)));
        let Some((calling_key, calling)) = calling else { return Ok(None) };
        let names = [key, "allowed_function_names"]
            .into_iter()
            .find_map(|key| Some((key, calling.get(key)?)))
            .filter(|(_, raw)| *raw != "null");
        let Some((names_key, raw)) = names else { return Ok(None) };
        let left = filter(&items(key, raw)?, |raw| {
            let name: String = serde_json::from_str(raw).map_err(|_| Refused::Unnamed(key))?;
            Ok(if self.sees(&[&name]) { Kept::AsIs } else { Kept::Nothing })
        })?;
        match left {
            None => Ok(None),
            // Without a name it would allow all functions.
            Some(left) if left.is_empty() => Err(Refused::Choice(key)),
            Some(left) => {
                let calling = calling.with(&[(names_key, Some(list(&left)))]);
                Ok(Some(config.with(&[(calling_key, Some(calling))])))
            }
        }
    }
}
