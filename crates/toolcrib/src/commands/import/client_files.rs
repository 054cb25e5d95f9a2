//! Where clients keep their files: in the user's folders and in the working folder.
//!
//! On every operating system, the folders of all operating systems are checked. A missing folder costs nothing, and all
//! files are found even in a home folder that several systems share.

use std::ffi::OsString;
use std::path::PathBuf;

use toolcrib_mcp::config::ClientKind;

use crate::user_folders::{UserFolders, absolute};

/// The folders that contain the files of clients.
pub(crate) struct ClientFolders {
    home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`, else `~/.config`.
    config: Option<PathBuf>,
    /// `%APPDATA%`.
    app_data: Option<PathBuf>,
    /// `HERMES_HOME`, else `~/.hermes`.
    hermes: Option<PathBuf>,
    pub(crate) folder: PathBuf,
}

impl ClientFolders {
    pub(crate) fn from_variables(
        variable: impl Fn(&str) -> Option<OsString>,
        folder: PathBuf,
    ) -> Self {
        let UserFolders { home, config, .. } = UserFolders::from_variables(&variable);
        let path = |name: &str| absolute(variable(name));
        let home = home.or_else(|| path("USERPROFILE"));
        let config = config.or_else(|| home.as_ref().map(|home| home.join(".config")));
        let hermes = path("HERMES_HOME").or_else(|| home.as_ref().map(|home| home.join(".hermes")));
        Self { home, config, app_data: path("APPDATA"), hermes, folder }
    }

    /// Returns the folders in which GUI applications keep the user's settings.
    fn app_folders(&self) -> impl Iterator<Item = PathBuf> {
        let mac = self.home.as_ref().map(|home| home.join("Library/Application Support"));
        [self.config.clone(), mac, self.app_data.clone()].into_iter().flatten()
    }

    /// Returns the paths of a client's files in the user's folders.
    pub(crate) fn user_files(&self, client: ClientKind) -> Vec<PathBuf> {
        let (home, config) = (self.home.as_ref(), self.config.as_ref());
        let below = |root: Option<&PathBuf>, names: &[&str]| -> Vec<PathBuf> {
            names.iter().filter_map(|name| Some(root?.join(name))).collect()
        };
        let in_app_folders = |names: &[&str]| -> Vec<PathBuf> {
            self.app_folders()
                .flat_map(|root| names.iter().map(move |name| root.join(name)))
                .collect()
        };
        match client {
            ClientKind::ClaudeCode => below(home, &[".claude.json"]),
            ClientKind::ClaudeDesktop => in_app_folders(&["Claude/claude_desktop_config.json"]),
            ClientKind::Cursor => below(home, &[".cursor/mcp.json"]),
            ClientKind::VsCode => {
                in_app_folders(&["Code/User/mcp.json", "Code/User/settings.json"])
            }
            ClientKind::Codex => below(home, &[".codex/config.toml"]),
            ClientKind::Opencode => {
                below(config, &["opencode/opencode.json", "opencode/opencode.jsonc"])
            }
            ClientKind::Gemini => below(home, &[".gemini/settings.json"]),
            ClientKind::Windsurf => below(home, &[".codeium/windsurf/mcp_config.json"]),
            ClientKind::Cline => {
                in_app_folders(&["Code/User/globalStorage/saoudrizwan.claude-dev/settings/\
                                         cline_mcp_settings.json"])
            }
            ClientKind::Zed => {
                let mac = below(home, &[".config/zed/settings.json"]);
                let mut files = below(config, &["zed/settings.json"]);
                files.extend(
                    mac.into_iter().filter(|file| !files.contains(file)).collect::<Vec<_>>(),
                );
                files
            }
            ClientKind::Goose => {
                let mut files = below(config, &["goose/config.yaml"]);
                files.extend(below(self.app_data.as_ref(), &["Block/goose/config/config.yaml"]));
                files
            }
            ClientKind::Hermes => below(self.hermes.as_ref(), &["config.yaml"]),
            ClientKind::Other => vec![],
        }
    }

    /// Returns the path of the user's file with the base URL of a client, or `None` if the client has no such file.
    pub(crate) fn proxy_file(&self, client: ClientKind) -> Option<PathBuf> {
        match client {
            ClientKind::ClaudeCode => Some(self.home.as_ref()?.join(".claude/settings.json")),
            ClientKind::Gemini => Some(self.home.as_ref()?.join(".gemini/.env")),
            ClientKind::Codex | ClientKind::Opencode => {
                let files = self.user_files(client);
                let existing = files.iter().find(|file| file.is_file());
                existing.or(files.first()).cloned()
            }
            _ => None,
        }
    }

    /// Returns the paths of a client's files in the working folder. If the working folder is the home folder, the
    /// user's own files are excluded.
    pub(crate) fn project_files(&self, client: ClientKind) -> Vec<PathBuf> {
        let names: &[&str] = match client {
            ClientKind::ClaudeCode => &[".mcp.json"],
            ClientKind::Cursor => &[".cursor/mcp.json"],
            ClientKind::VsCode => &[".vscode/mcp.json", ".vscode/settings.json"],
            ClientKind::Codex => &[".codex/config.toml"],
            ClientKind::Opencode => &["opencode.json", "opencode.jsonc"],
            ClientKind::Gemini => &[".gemini/settings.json"],
            ClientKind::Zed => &[".zed/settings.json"],
            ClientKind::ClaudeDesktop
            | ClientKind::Windsurf
            | ClientKind::Cline
            | ClientKind::Goose
            | ClientKind::Hermes
            | ClientKind::Other => &[],
        };
        let users = self.user_files(client);
        let is_users = |file: &PathBuf| {
            let real = file.canonicalize();
            users.iter().any(|users| match (&real, users.canonicalize()) {
                (Ok(file), Ok(users)) => *file == users,
                _ => file == users,
            })
        };
        names.iter().map(|name| self.folder.join(name)).filter(|file| !is_users(file)).collect()
    }
}
