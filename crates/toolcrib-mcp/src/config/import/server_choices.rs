//! Servers that the user has disabled in a client, in a file other than the one that defines them.
//!
//! Claude Code stores these choices by project in `~/.claude.json` and in its `settings.json`. Gemini CLI stores them
//! in a separate file. Without them, the import would enable servers that the user has disabled. A settings file in the
//! repository can only disable servers. Its approvals are ignored, because the user did not make them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::{ClientKind, ImportedConfig};

/// Who controls a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsOwner {
    /// The user controls the file, which is outside of any project.
    User,
    /// The project controls the file, which is in the working folder and may come from a repository.
    Project,
}

/// The servers that are enabled and disabled in the settings of one client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerChoices {
    /// Servers that are disabled regardless of where they are defined, each with the key that disables it.
    disabled: BTreeMap<String, &'static str>,
    /// For Claude Code, the servers in a project's `.mcp.json` that the user or the project rejected.
    rejected: BTreeSet<String>,
    /// For Claude Code, the servers in a project's `.mcp.json` that the user approved, or `None` if there is no such
    /// list.
    approved: Option<BTreeSet<String>>,
    approves_all: bool,
    /// For Gemini CLI, the names of the disabled servers, in lower case.
    disabled_lowercase: BTreeSet<String>,
}

impl ServerChoices {
    /// Adds the choices in Claude Code's `~/.claude.json`, but only those for `folder` and its parent folders.
    pub fn add_claude_user_file(&mut self, value: &Value, folder: &Path) {
        let projects = value.get("projects").and_then(Value::as_object).into_iter().flatten();
        for (_, project) in projects.filter(|(path, _)| folder.starts_with(Path::new(path))) {
            self.add_claude_settings(project, SettingsOwner::User);
        }
    }

    /// Adds the choices in a `settings.json` or `settings.local.json` of Claude Code.
    pub fn add_claude_settings(&mut self, value: &Value, scope: SettingsOwner) {
        let key = "disabledMcpServers";
        self.disabled.extend(names(value, key).into_iter().flatten().map(|name| (name, key)));
        self.rejected.extend(names(value, "disabledMcpjsonServers").into_iter().flatten());
        if scope == SettingsOwner::User {
            if let Some(approved) = names(value, "enabledMcpjsonServers") {
                self.approved.get_or_insert_default().extend(approved);
            }
            let all = value.get("enableAllProjectMcpServers");
            self.approves_all |= all.and_then(Value::as_bool) == Some(true);
        }
    }

    /// Adds the choices in the user's `settings.json` of Gemini CLI, which also apply to the servers of projects.
    pub fn add_gemini_settings(&mut self, value: &Value) {
        let off = value.get("mcp").and_then(|mcp| names(mcp, "excluded")).unwrap_or_default();
        self.disabled.extend(off.into_iter().map(|name| (name, "mcp.excluded")));
    }

    /// Adds the choices in Gemini CLI's `mcp-server-enablement.json`.
    pub fn add_gemini_enablement(&mut self, value: &Value) {
        for (name, choice) in value.as_object().into_iter().flatten() {
            if choice.get("enabled").and_then(Value::as_bool) == Some(false) {
                self.disabled_lowercase.insert(name.trim().to_lowercase());
            }
        }
    }

    /// Disables the imported servers that these settings disable. `file` is the file that defines the servers.
    pub fn apply(&self, imported: &mut ImportedConfig, file: &Path) {
        let is_mcp_json = imported.client == ClientKind::ClaudeCode
            && file.file_name().is_some_and(|name| name == ".mcp.json");
        let ImportedConfig { servers, disabled, .. } = imported;
        for (name, server) in servers {
            if let Some(reason) = self.disabled_reason(name, is_mcp_json) {
                server.enabled = false;
                disabled.entry(name.clone()).or_insert(reason);
            }
        }
    }

    fn disabled_reason(&self, name: &str, is_mcp_json: bool) -> Option<String> {
        if let Some(key) = self.disabled.get(name) {
            return Some(format!("`{key}` names it"));
        }
        if self.disabled_lowercase.contains(&name.trim().to_lowercase()) {
            return Some("`mcp-server-enablement.json` disables it".to_owned());
        }
        if !is_mcp_json {
            return None;
        }
        if self.rejected.contains(name) {
            return Some("`disabledMcpjsonServers` names it".to_owned());
        }
        // Claude Code writes an empty list before the user has chosen, so an empty list disables nothing.
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
        ["a", "b", "c"].iter().map(|name| choices.disabled_reason(name, is_mcp_json)).collect()
    }

    #[test]
    fn a_rejection_takes_precedence_and_a_repository_cannot_approve() {
        let mut choices = ServerChoices::default();
        choices.add_claude_settings(&json!({"disabledMcpjsonServers": ["a"]}), SettingsOwner::User);
        let rejected = Some("`disabledMcpjsonServers` names it".to_owned());
        assert_eq!(reasons(&choices, true), [rejected.clone(), None, None]);
        assert_eq!(reasons(&choices, false), [None, None, None]);
        choices.add_claude_settings(
            &json!({"enabledMcpjsonServers": ["a", "b"]}),
            SettingsOwner::User,
        );
        let unapproved = Some("`enabledMcpjsonServers` does not name it".to_owned());
        let expected = [rejected.clone(), None, unapproved];
        assert_eq!(reasons(&choices, true), expected);
        let project_settings =
            json!({"enabledMcpjsonServers": ["c"], "enableAllProjectMcpServers": true});
        choices.add_claude_settings(&project_settings, SettingsOwner::Project);
        assert_eq!(reasons(&choices, true), expected);
        choices.add_claude_settings(&project_settings, SettingsOwner::User);
        assert_eq!(reasons(&choices, true), [rejected, None, None]);
    }

    #[test]
    fn choices_for_a_folder_apply_only_below_it() {
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
