//! Reads the files of all clients: first the user's own, then, with `--project`, those in the working folder.
//!
//! A file in the working folder was written by the author of that folder, who may not be the user. So it is opened only
//! with `--project`, and its servers never take the name of one of the user's servers. Skipped files and servers are
//! reported with the reason.

use std::path::{Path, PathBuf};

use serde::Serialize;
use toolcrib_client_files::yaml;
use toolcrib_mcp::config::import::{
    ImportSource, SettingsOwner, project_folder, read_as, read_value, set_start_folder,
};
use toolcrib_mcp::config::{ClientKind, ImportedConfig, Server, Transport};
use toolcrib_server::ConfigError;

use super::client_files::ClientFolders;
use super::merge::ServerMerge;
use super::sent_references;
use crate::config::disabled_servers;
use crate::config::location::read_regular;
use crate::output::Failure;

/// The clients' files that were found, and what was read from them.
#[derive(Default)]
pub(super) struct DiscoveredFiles {
    pub(super) found: Vec<FoundFile>,
    pub(super) broken: Vec<UnreadableFile>,
    pub(super) left_out: Vec<SkippedFile>,
}

#[derive(Serialize)]
pub(super) struct FoundFile {
    pub(super) client: ClientKind,
    pub(super) file: PathBuf,
    /// Whether the file is in the working folder.
    pub(super) project: bool,
    pub(super) servers: Vec<String>,
    /// The servers that the file disables. They are imported as disabled.
    pub(super) disabled: Vec<ServerReason>,
    /// Servers of the file that were not imported.
    pub(super) skipped: Vec<ServerReason>,
    /// Warnings, for example about keys that were ignored.
    pub(super) odd: Vec<String>,
}

/// A server, and why it is disabled or was not imported.
#[derive(Debug, Serialize)]
pub(crate) struct ServerReason {
    pub(crate) server: String,
    pub(crate) reason: String,
}

#[derive(Serialize)]
pub(super) struct UnreadableFile {
    client: ClientKind,
    pub(super) file: PathBuf,
    pub(super) error: String,
    pub(super) hint: String,
}

/// A file in the working folder that was not read.
#[derive(Serialize)]
pub(super) struct SkippedFile {
    client: ClientKind,
    pub(super) file: PathBuf,
    pub(super) reason: &'static str,
}

/// Reads the files of the client `from`, or of all clients if `from` is `None`, and adds their servers to `merge`.
/// Files in the working folder are read only if `project` is true.
pub(super) fn discover(
    from: Option<ClientKind>,
    project: bool,
    merge: &mut ServerMerge,
) -> Result<DiscoveredFiles, Failure> {
    let folder = std::env::current_dir().map_err(|error| {
        Failure::input("current folder", &error, "change to a folder that exists")
    })?;
    let folders = ClientFolders::from_variables(|name| std::env::var_os(name), folder);
    let mut files = DiscoveredFiles::default();
    for client in ClientKind::ALL {
        let is_wanted = from.is_none_or(|from| from == client);
        for file in folders.user_files(client).into_iter().filter(|file| file.is_file()) {
            match read(client, &file, &folders.folder) {
                // The names are reserved even if this client is not imported, because a project's server must not take
                // the name of a server of any of the user's clients.
                Ok(foreign) if !is_wanted => merge.reserve(foreign.names),
                Ok(foreign) => files.add(foreign, file, SettingsOwner::User, merge),
                Err((error, hint)) if is_wanted => {
                    files.broken.push(UnreadableFile { client, file, error, hint });
                }
                Err(_) => {}
            }
        }
    }
    for client in
        ClientKind::ALL.into_iter().filter(|client| from.is_none_or(|from| from == *client))
    {
        for file in folders.project_files(client).into_iter().filter(|file| file.exists()) {
            if !project {
                let reason = "files in the working folder are read only with `--project`";
                files.left_out.push(SkippedFile { client, file, reason });
                continue;
            }
            match read(client, &file, &folders.folder) {
                Ok(foreign) => files.add(foreign, file, SettingsOwner::Project, merge),
                Err((error, hint)) => {
                    files.broken.push(UnreadableFile { client, file, error, hint });
                }
            }
        }
    }
    Ok(files)
}

fn read(
    client: ClientKind,
    file: &Path,
    folder: &Path,
) -> Result<ImportedConfig, (String, String)> {
    let text = read_regular(file).map_err(|failure| (failure.to_string(), failure.hint()))?;
    import_text(client, file, &text, folder)
}

/// Reads the text of a client's file, and disables the servers that the user has disabled in another file. An error
/// consists of a problem and a hint.
pub(crate) fn import_text(
    client: ClientKind,
    file: &Path,
    text: &str,
    folder: &Path,
) -> Result<ImportedConfig, (String, String)> {
    let parts = |failure: Failure| (failure.to_string(), failure.hint());
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let place = ImportSource { file, folder };
    let mut foreign = if matches!(client, ClientKind::Hermes | ClientKind::Goose) {
        let value = yaml::parse(text).map_err(|error| (error.to_string(), error.hint().into()))?;
        read_value(client, &value, &place)
    } else {
        read_as(client, text, &place)
            .map_err(|error: ConfigError| (error.to_string(), error.hint))?
    };
    disabled_servers::apply(&mut foreign, file, folder).map_err(parts)?;
    Ok(foreign)
}

impl DiscoveredFiles {
    /// Adds the servers of a file to `merge`, and the file to the list of found files.
    fn add(
        &mut self,
        foreign: ImportedConfig,
        file: PathBuf,
        scope: SettingsOwner,
        merge: &mut ServerMerge,
    ) {
        let ImportedConfig { client, servers, disabled, names, mut warnings, .. } = foreign;
        // A file without servers is not reported, unless there are warnings about it. It may be, for example, the
        // settings of an editor.
        if servers.is_empty() && warnings.is_empty() {
            return;
        }
        let mut found = FoundFile {
            client,
            project: scope == SettingsOwner::Project,
            servers: Vec::new(),
            disabled: Vec::new(),
            skipped: Vec::new(),
            odd: Vec::new(),
            file,
        };
        for (name, server) in servers {
            let given = match scope {
                SettingsOwner::User => merge.add(client, &name, server),
                SettingsOwner::Project => {
                    let sent = sent_references::notices(&name, &server);
                    let with_project_paths =
                        with_project_paths(server.clone(), project_folder(&found.file));
                    if let Err(reason) = merge.add_project(&name, &server, with_project_paths) {
                        found
                            .skipped
                            .push(ServerReason { server: name, reason: reason.to_owned() });
                        continue;
                    }
                    warnings.extend(sent);
                    name.clone()
                }
            };
            if given != name {
                warnings.push(format!(
                    "`{name}` is imported as `{given}`, because another client has a different server with that name"
                ));
            }
            if let Some(reason) = disabled.get(&name) {
                found.disabled.push(ServerReason { server: given.clone(), reason: reason.clone() });
            }
            found.servers.push(given);
        }
        if scope == SettingsOwner::User {
            merge.reserve(names);
        }
        found.odd = warnings;
        self.found.push(found);
    }
}

/// Resolves the relative paths of a project's server against the project's folder, and sets that folder as the one in
/// which the server starts. The client that the file belongs to does the same.
fn with_project_paths(mut server: Server, folder: Option<&Path>) -> Server {
    let Some(folder) = folder else { return server };
    let is_relative = |path: &str| !path.starts_with(['/', '~']) && !path.starts_with("${");
    if let Transport::Stdio { command, cwd, .. } = &mut server.transport {
        if command.contains('/') && is_relative(command) && cwd.is_none() {
            *command = folder.join(&*command).to_string_lossy().into_owned();
        }
        if let Some(cwd) = cwd.as_mut().filter(|cwd| is_relative(&cwd.to_string_lossy())) {
            *cwd = folder.join(&*cwd);
        }
    }
    set_start_folder(&mut server, folder);
    server
}
