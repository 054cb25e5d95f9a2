//! A client's file with its servers: which of them can be moved to our config, and what the user should know.

use std::path::Path;

use serde_json::Value;
use toolcrib_client_files::{FileProblem, KeyPath, get};
use toolcrib_mcp::config::{ClientKind, ImportedConfig};

use super::client_file::ClientFile;
use super::report::{FileReport, MovedServer};
use super::{client_format, client_rules};
use crate::commands::import::client_files::ClientFolders;
use crate::commands::import::discover::{ServerReason, import_text};
use crate::commands::import::merge::ServerMerge;
use crate::output::Failure;

/// A file of a client, parsed.
pub(super) struct ParsedFile {
    pub(super) file: ClientFile,
    pub(super) value: Value,
    pub(super) imported: ImportedConfig,
    pub(super) container: KeyPath,
}

/// Converts a problem with a file.
pub(super) fn file_failure(path: &Path, problem: &FileProblem) -> Failure {
    Failure::input(format!("`{}`", path.display()), problem, problem.hint.clone())
}

impl ParsedFile {
    pub(super) fn read(client: ClientKind, path: &Path) -> Result<Self, Failure> {
        let file = ClientFile::read(path)?;
        let text = file.text.as_deref().unwrap_or_default();
        let value = client_format::format(client)
            .parse(text)
            .map_err(|problem| file_failure(&file.path, &problem))?;
        // Without a working folder, only the user's own servers are read from Claude Code's file.
        let imported = if text.trim().is_empty() {
            import_text(client, path, "{}", Path::new(""))
        } else {
            import_text(client, path, text, Path::new(""))
        };
        let imported = imported.map_err(|(problem, hint)| {
            Failure::input(format!("`{}`", path.display()), &problem, hint)
        })?;
        let container = client_format::container(client, path, &value);
        Ok(Self { file, value, imported, container })
    }

    pub(super) fn has_servers(&self) -> bool {
        !self.imported.names.is_empty()
    }

    /// VS Code has a separate file for servers, so its settings are changed only if they contain servers.
    pub(super) fn is_settings_of_vs_code(&self, client: ClientKind) -> bool {
        client == ClientKind::VsCode
            && self.file.path.file_name().is_some_and(|name| name == "settings.json")
    }

    /// Adds the servers that can be imported to `merge`, and returns their names in the file, in the file's order.
    pub(super) fn moved_servers(
        &self,
        client: ClientKind,
        recorded: Option<&str>,
        folders: &ClientFolders,
        merge: &mut ServerMerge,
        report: &mut FileReport,
    ) -> Vec<String> {
        let ImportedConfig { servers, disabled, client_only, own_entries, warnings, .. } =
            &self.imported;
        let keys = get(&self.value, &self.container).and_then(Value::as_object);
        let mut removed = Vec::new();
        for name in keys.into_iter().flat_map(|map| map.keys()) {
            let prefix = format!("`{name}`");
            let about = || {
                let warning = warnings.iter().find(|warning| warning.starts_with(&prefix));
                warning.map(|warning| {
                    warning[prefix.len()..].trim_start_matches([':', ' ']).to_owned()
                })
            };
            let reason = match (servers.get(name), client_only.get(name)) {
                // The program may have another name, so that the entry is not recognized by its command.
                _ if own_entries.contains(name) || recorded == Some(name) => continue,
                (Some(_), Some(reason)) => Some(reason.clone()),
                (None, _) => about(),
                (Some(server), None) => {
                    let rules = client_rules::rules(client, folders, self, name);
                    let mut server = server.clone();
                    for pattern in rules.iter().filter_map(|rule| rule.deny.as_ref()) {
                        if !server.deny.contains(pattern) {
                            server.deny.push(pattern.clone());
                        }
                    }
                    let given = merge.add(client, name, server);
                    let entry = recorded.unwrap_or("toolcrib");
                    report.notes.extend(rules.iter().map(|rule| rule.note(name, &given, entry)));
                    if let Some(reason) = disabled.get(name) {
                        report
                            .disabled
                            .push(ServerReason { server: given.clone(), reason: reason.clone() });
                    }
                    report
                        .notes
                        .extend(warnings.iter().filter(|text| text.starts_with(&prefix)).cloned());
                    report.servers.push(MovedServer { name: name.clone(), imported_as: given });
                    removed.push(name.clone());
                    continue;
                }
            };
            if let Some(reason) = reason {
                report.stays.push(ServerReason { server: name.clone(), reason });
            }
        }
        removed
    }

    pub(super) fn add_notes(&self, client: ClientKind, entry: &str, report: &mut FileReport) {
        if client == ClientKind::ClaudeCode {
            let projects = self.value.get("projects").and_then(Value::as_object);
            let has_servers = |project: &&Value| {
                project
                    .get("mcpServers")
                    .and_then(Value::as_object)
                    .is_some_and(|map| !map.is_empty())
            };
            let count = projects.map_or(0, |map| map.values().filter(has_servers).count());
            if count > 0 {
                let projects =
                    if count == 1 { "1 project".to_owned() } else { format!("{count} projects") };
                report
                    .notes
                    .push(format!("the servers of {projects} in this file are not changed"));
            }
        }
        let allowed =
            self.value.get("mcp").and_then(|mcp| mcp.get("allowed")).and_then(Value::as_array);
        if let (ClientKind::Gemini, Some(allowed)) = (client, allowed)
            && !allowed.iter().any(|name| name == entry)
        {
            report.notes.push(format!(
                "`mcp.allowed` does not name `{entry}`, so Gemini CLI will not start it; add the name to the list"
            ));
        }
    }
}
