//! Files of other clients that disable servers, but are separate from the file that defines the servers.
//!
//! A file that cannot be read is an error, because ignoring it would enable the servers that it disables.

use std::path::Path;

use serde_json::Value;
use toolcrib_mcp::config::import::{ServerChoices, SettingsOwner, parse_json};
use toolcrib_mcp::config::{ClientKind, ImportedConfig};

use super::location::read_regular;
use crate::output::Failure;
use crate::user_folders::UserFolders;

/// Disables those servers of a client's `file` that the user has disabled in another of the client's files. `folder` is
/// the working folder, which is needed because Claude Code stores these choices by project.
pub(crate) fn apply(
    foreign: &mut ImportedConfig,
    file: &Path,
    folder: &Path,
) -> Result<(), Failure> {
    let home = UserFolders::from_environment().home;
    let mut choices = ServerChoices::default();
    match foreign.client {
        ClientKind::ClaudeCode => {
            // For a project's servers, the choices stored for that project apply, even if it is not the working folder.
            let is_mcp_json = file.file_name().is_some_and(|name| name == ".mcp.json");
            let project = file.parent().filter(|_| is_mcp_json);
            let folder = project.unwrap_or(folder);
            if let Some(home) = &home {
                if let Some(value) = value(&home.join(".claude.json"))? {
                    choices.add_claude_user_file(&value, folder);
                }
                if let Some(value) = value(&home.join(".claude/settings.json"))? {
                    choices.add_claude_settings(&value, SettingsOwner::User);
                }
            }
            // The settings files of a repository are read only for the repository's own servers. They must not disable
            // the user's servers, and if one cannot be parsed, this must not prevent reading the user's file.
            for name in [".claude/settings.json", ".claude/settings.local.json"] {
                if let Some(project) = project
                    && let Some(value) = value(&project.join(name))?
                {
                    choices.add_claude_settings(&value, SettingsOwner::Project);
                }
            }
        }
        ClientKind::Gemini => {
            if let Some(home) = &home {
                if let Some(value) = value(&home.join(".gemini/mcp-server-enablement.json"))? {
                    choices.add_gemini_enablement(&value);
                }
                if let Some(value) = value(&home.join(".gemini/settings.json"))? {
                    choices.add_gemini_settings(&value);
                }
            }
        }
        _ => return Ok(()),
    }
    choices.apply(foreign, file);
    Ok(())
}

/// Reads a JSON file. Returns `None` if it does not exist.
fn value(path: &Path) -> Result<Option<Value>, Failure> {
    if !path.exists() {
        return Ok(None);
    }
    let text = read_regular(path)?;
    parse_json(&text).map(Some).map_err(|error| {
        let place = format!("`{}`, which lists disabled servers", path.display());
        Failure::input(place, &error, error.hint.clone())
    })
}
