//! Reads the files of all clients: the user's own first, then, if it was asked for, those of the working folder.
//!
//! A file of the working folder was written by the author of that folder, who need not be the user. So it is not even
//! opened without `--project`, its servers never take a name that the user has given, and what was left out is told with
//! the reason.

use std::path::{Path, PathBuf};

use serde::Serialize;
use toolcrib_mcp::config::foreign::{Place, Scope, project_folder, read_as, read_value, start_in};
use toolcrib_mcp::config::{Client, Foreign, Server, Transport};
use toolcrib_server::ConfigError;

use super::merge::Merge;
use super::places::Roots;
use super::sent;
use crate::config::location::read_regular;
use crate::config::{choices, yaml};
use crate::output::Failure;

/// What was found.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) found: Vec<FoundFile>,
    pub(super) broken: Vec<BrokenFile>,
    pub(super) left_out: Vec<LeftOutFile>,
}

#[derive(Serialize)]
pub(super) struct FoundFile {
    pub(super) client: Client,
    pub(super) file: PathBuf,
    /// Whether it is a file of the working folder.
    pub(super) project: bool,
    pub(super) servers: Vec<String>,
    /// Those of them that are switched off there, and here.
    pub(super) disabled: Vec<Reason>,
    /// Servers of the file that were not taken.
    pub(super) skipped: Vec<Reason>,
    /// What was not taken as it stands.
    pub(super) odd: Vec<String>,
}

/// A server, and why it is off or was left out.
#[derive(Serialize)]
pub(super) struct Reason {
    pub(super) server: String,
    pub(super) reason: String,
}

#[derive(Serialize)]
pub(super) struct BrokenFile {
    client: Client,
    pub(super) file: PathBuf,
    pub(super) error: String,
    pub(super) hint: String,
}

/// A file of the working folder that was not read.
#[derive(Serialize)]
pub(super) struct LeftOutFile {
    client: Client,
    pub(super) file: PathBuf,
    pub(super) reason: &'static str,
}

/// Reads the files of one client, or of all.
pub(super) fn look(
    from: Option<Client>,
    project: bool,
    merge: &mut Merge,
) -> Result<Findings, Failure> {
    let folder = std::env::current_dir().map_err(|error| {
        Failure::input("current folder", &error, "change to a folder that exists")
    })?;
    let roots = Roots::of(|name| std::env::var_os(name), folder);
    let mut findings = Findings::default();
    for client in Client::ALL {
        let is_wanted = from.is_none_or(|from| from == client);
        for file in roots.user_files(client).into_iter().filter(|file| file.is_file()) {
            match read(client, &file, &roots.folder) {
                // The names of other clients' servers are the user's all the same.
                Ok(foreign) if !is_wanted => merge.reserve(foreign.names),
                Ok(foreign) => findings.add(foreign, file, Scope::User, merge),
                Err((error, hint)) if is_wanted => {
                    findings.broken.push(BrokenFile { client, file, error, hint });
                }
                Err(_) => {}
            }
        }
    }
    for client in Client::ALL.into_iter().filter(|client| from.is_none_or(|from| from == *client)) {
        for file in roots.project_files(client).into_iter().filter(|file| file.exists()) {
            if !project {
                let reason = "a file of the working folder is read only with `--project`";
                findings.left_out.push(LeftOutFile { client, file, reason });
                continue;
            }
            match read(client, &file, &roots.folder) {
                Ok(foreign) => findings.add(foreign, file, Scope::Project, merge),
                Err((error, hint)) => {
                    findings.broken.push(BrokenFile { client, file, error, hint });
                }
            }
        }
    }
    Ok(findings)
}

fn read(client: Client, file: &Path, folder: &Path) -> Result<Foreign, (String, String)> {
    let told = |failure: Failure| (failure.to_string(), failure.hint());
    let text = read_regular(file).map_err(told)?;
    let place = Place { file, folder };
    let mut foreign = if client == Client::Hermes {
        let value = yaml::parse(&text).map_err(|error| (error.to_string(), error.hint().into()))?;
        read_value(client, &value, &place)
    } else {
        read_as(client, &text, &place)
            .map_err(|error: ConfigError| (error.to_string(), error.hint))?
    };
    choices::apply(&mut foreign, file, folder).map_err(told)?;
    Ok(foreign)
}

impl Findings {
    /// Takes the servers of a file in.
    fn add(&mut self, foreign: Foreign, file: PathBuf, scope: Scope, merge: &mut Merge) {
        let Foreign { client, servers, disabled, names, mut warnings } = foreign;
        // Settings of an editor without servers are nothing to tell of.
        if servers.is_empty() && warnings.is_empty() {
            return;
        }
        let mut found = FoundFile {
            client,
            project: scope == Scope::Project,
            servers: Vec::new(),
            disabled: Vec::new(),
            skipped: Vec::new(),
            odd: Vec::new(),
            file,
        };
        for (name, server) in servers {
            let given = match scope {
                Scope::User => merge.add(client, &name, server),
                Scope::Project => {
                    let sent = sent::remarks(&name, &server);
                    let anchored = anchored(server.clone(), project_folder(&found.file));
                    if let Err(reason) = merge.add_project(&name, &server, anchored) {
                        found.skipped.push(Reason { server: name, reason: reason.to_owned() });
                        continue;
                    }
                    warnings.extend(sent);
                    name.clone()
                }
            };
            if given != name {
                let other = format!("`{name}` is another server elsewhere: it becomes `{given}`");
                warnings.push(other);
            }
            if let Some(reason) = disabled.get(&name) {
                found.disabled.push(Reason { server: given.clone(), reason: reason.clone() });
            }
            found.servers.push(given);
        }
        if scope == Scope::User {
            merge.reserve(names);
        }
        found.odd = warnings;
        self.found.push(found);
    }
}

/// A project's server with its paths at the project's folder, and started there, as its client would do it.
fn anchored(mut server: Server, folder: Option<&Path>) -> Server {
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
    start_in(&mut server, folder);
    server
}
