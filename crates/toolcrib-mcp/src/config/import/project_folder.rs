//! Finds the project folder that a config file belongs to. The servers in the file start in that folder, so that
//! relative paths in their arguments work.

use std::ffi::OsStr;
use std::path::Path;

use toolcrib_server::expand::{Reference, from_system};

use super::super::{Server, Transport};
use super::{ImportSource, ImportedConfig};

/// Returns the project's folder, if the file is one that clients look for in projects. Some clients use the same file
/// names for the user's settings, so the result may be the home folder.
pub fn project_folder(file: &Path) -> Option<&Path> {
    let folder = file.parent()?;
    let folder_name = folder.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let project = match (folder_name, file.file_name()?.to_str()?) {
        (".cursor" | ".vscode" | ".gemini" | ".codex" | ".zed", _) => folder.parent()?,
        (_, ".mcp.json") => folder,
        // A file in `.config/opencode` contains the user's settings and belongs to no project.
        (_, "opencode.json" | "opencode.jsonc") if !folder.ends_with(".config/opencode") => folder,
        _ => return None,
    };
    project.is_absolute().then_some(project)
}

/// Sets a server's working folder, unless it already has one.
pub fn set_start_folder(server: &mut Server, folder: &Path) {
    if let Transport::Stdio { cwd, .. } = &mut server.transport
        && cwd.is_none()
    {
        // References in `cwd` are expanded later, so `${` in the folder's name is escaped.
        *cwd = Some(folder.to_string_lossy().replace("${", "$${").into());
    }
}

/// Makes the servers of a project's file start in the project's folder. Servers from the user's own settings are left
/// unchanged.
pub(super) fn start_in_project_folder(
    mut imported: ImportedConfig,
    source: &ImportSource<'_>,
) -> ImportedConfig {
    let Some(folder) = project_folder(source.file) else { return imported };
    if from_system(Reference::Home).is_some_and(|home| Path::new(&home) == folder) {
        return imported;
    }
    for server in imported.servers.values_mut() {
        set_start_folder(server, folder);
    }
    imported
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_folder_follows_from_the_file() {
        for (file, expected) in [
            ("/a/.mcp.json", Some("/a")),
            ("/a/.dotfiles/.mcp.json", Some("/a/.dotfiles")),
            ("/a/.cursor/mcp.json", Some("/a")),
            ("/a/.vscode/settings.json", Some("/a")),
            ("/a/.gemini/settings.json", Some("/a")),
            ("/a/.codex/config.toml", Some("/a")),
            ("/a/opencode.jsonc", Some("/a")),
            ("/a/.config/opencode/opencode.json", None),
            ("/a/.claude.json", None),
            ("/a/any.json", None),
            (".mcp.json", None),
            ("/", None),
        ] {
            assert_eq!(project_folder(Path::new(file)), expected.map(Path::new), "{file}");
        }
    }
}
