//! Servers that a user has switched off in a client, in another file than the one that defines them.
//!
//! Claude Code keeps such choices by project in `~/.claude.json` and in its `settings.json`, Gemini CLI in a file of its
//! own. Reading the servers alone would switch on again what its owner switched off. A file of the repository can only
//! switch off: its approvals are the repository's, not the user's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::{ClientKind, ImportedConfig};

/// Whose file a choice is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsOwner {
    /// The user's own.
    User,
    /// In the working folder, where a repository may have brought it.
    Project,
}

/// What is switched off in the files of one client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerChoices {
    /// Off wherever they are defined, each with the key that says so.
    disabled: BTreeMap<String, &'static str>,
    /// Claude Code: servers of a project's `.mcp.json` that were refused.
    refused: BTreeSet<String>,
    /// Claude Code: those that were approved, if there is a list.
    approved: Option<BTreeSet<String>>,
    approves_all: bool,
    /// Gemini CLI: off, in small letters.
    disabled_lowercase: BTreeSet<String>,
}

impl ServerChoices {
    /// Claude Code's `~/.claude.json`: what it says about `folder` and the folders above it.
    pub fn add_claude_user_file(&mut self, value: &Value, folder: &Path) {
        let projects = value.get("projects").and_then(Value::as_object).into_iter().flatten();
        for (_, project) in projects.filter(|(path, _)| folder.starts_with(Path::new(path))) {
            self.add_claude_settings(project, SettingsOwner::User);
        }
    }

    /// A `settings.json` or `settings.local.json` of Claude Code.
    pub fn add_claude_settings(&mut self, value: &Value, scope: SettingsOwner) {
        let off = "disabledMcpServers";
        self.disabled.extend(names(value, off).into_iter().flatten().map(|name| (name, off)));
        self.refused.extend(names(value, "disabledMcpjsonServers").into_iter().flatten());
        if scope == SettingsOwner::User {
            if let Some(approved) = names(value, "enabledMcpjsonServers") {
                self.approved.get_or_insert_default().extend(approved);
            }
            let all = value.get("enableAllProjectMcpServers");
            self.approves_all |= all.and_then(Value::as_bool) == Some(true);
        }
    }

    /// The user's `settings.json` of Gemini CLI, which holds for the servers of projects, too.
    pub fn add_gemini_settings(&mut self, value: &Value) {
        let off = value.get("mcp").and_then(|mcp| names(mcp, "excluded")).unwrap_or_default();
        self.disabled.extend(off.into_iter().map(|name| (name, "mcp.excluded")));
    }

    /// Gemini CLI's `mcp-server-enablement.json`.
    pub fn add_gemini_enablement(&mut self, value: &Value) {
        for (name, choice) in value.as_object().into_iter().flatten() {
            if choice.get("enabled").and_then(Value::as_bool) == Some(false) {
                self.disabled_lowercase.insert(name.trim().to_lowercase());
            }
        }
    }

    /// Switches off the servers of a file of this client.
    pub fn apply(&self, imported: &mut ImportedConfig, file: &Path) {
        let is_mcp_json = imported.client == ClientKind::ClaudeCode
            && file.file_name().is_some_and(|name| name == ".mcp.json");
        let ImportedConfig { servers, disabled, .. } = imported;
        for (name, server) in servers {
            if let Some(reason) = self.reason(name, is_mcp_json) {
                server.enabled = false;
                disabled.entry(name.clone()).or_insert(reason);
            }
        }
    }

    fn reason(&self, name: &str, is_mcp_json: bool) -> Option<String> {
        if let Some(key) = self.disabled.get(name) {
            return Some(format!("`{key}` names it"));
        }
        if self.disabled_lowercase.contains(&name.trim().to_lowercase()) {
            return Some("`mcp-server-enablement.json` says so".to_owned());
        }
        if !is_mcp_json {
            return None;
        }
        if self.refused.contains(name) {
            return Some("`disabledMcpjsonServers` names it".to_owned());
        }
        // An empty list is what Claude Code writes before anybody has chosen.
        let approved = self.approved.as_ref().filter(|names| !names.is_empty())?;
        let is_approved = self.approves_all || approved.contains(name);
        (!is_approved).then(|| "`enabledMcpjsonServers` does not name it".to_owned())
    }
}

fn names(value: &Value, key: &str) -> Option<Vec<String>> {
    let list = value.get(key)?.as_array()?;
    Some(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reasons(choices: &ServerChoices, is_mcp_json: bool) -> Vec<Option<String>> {
        ["a", "b", "c"].iter().map(|name| choices.reason(name, is_mcp_json)).collect()
    }

    #[test]
    fn refused_goes_before_approved_and_a_repository_approves_nothing() {
        let mut choices = ServerChoices::default();
        choices.add_claude_settings(&json!({"disabledMcpjsonServers": ["a"]}), SettingsOwner::User);
        let refused = Some("`disabledMcpjsonServers` names it".to_owned());
        assert_eq!(reasons(&choices, true), [refused.clone(), None, None]);
        assert_eq!(reasons(&choices, false), [None, None, None]);
        choices.add_claude_settings(
            &json!({"enabledMcpjsonServers": ["a", "b"]}),
            SettingsOwner::User,
        );
        let unapproved = Some("`enabledMcpjsonServers` does not name it".to_owned());
        let expected = [refused.clone(), None, unapproved];
        assert_eq!(reasons(&choices, true), expected);
        let theirs = json!({"enabledMcpjsonServers": ["c"], "enableAllProjectMcpServers": true});
        choices.add_claude_settings(&theirs, SettingsOwner::Project);
        assert_eq!(reasons(&choices, true), expected);
        choices.add_claude_settings(&theirs, SettingsOwner::User);
        assert_eq!(reasons(&choices, true), [refused, None, None]);
    }

    #[test]
    fn choices_of_a_folder_hold_below_it_and_nowhere_else() {
        let value = json!({"projects": {
            "/projects": {"disabledMcpServers": ["a"]},
            "/projects/inner": {"disabledMcpServers": ["b"]},
            "/other": {"disabledMcpServers": ["c"]},
        }});
        let mut choices = ServerChoices::default();
        choices.add_claude_user_file(&value, Path::new("/projects/inner/deep"));
        let named = Some("`disabledMcpServers` names it".to_owned());
        assert_eq!(reasons(&choices, false), [named.clone(), named, None]);
    }
}
