//! Where clients keep their files: on every system, below the home folder and the current one.
//!
//! The places of all systems are looked at on each of them. A folder that is not there costs nothing,
//! and a home that is shared between systems is then found whole.

use std::ffi::OsString;
use std::path::PathBuf;

use toolcrib_mcp::config::Client;

/// The folders that places are relative to.
pub(super) struct Roots {
    home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`, else `~/.config`.
    config: Option<PathBuf>,
    /// `%APPDATA%`.
    app_data: Option<PathBuf>,
    /// `HERMES_HOME`, else `~/.hermes`.
    hermes: Option<PathBuf>,
    pub(super) folder: PathBuf,
}

impl Roots {
    pub(super) fn of(variable: impl Fn(&str) -> Option<OsString>, folder: PathBuf) -> Self {
        let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = path("HOME").or_else(|| path("USERPROFILE"));
        let config =
            path("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|home| home.join(".config")));
        let hermes = path("HERMES_HOME").or_else(|| home.as_ref().map(|home| home.join(".hermes")));
        Self { home, config, app_data: path("APPDATA"), hermes, folder }
    }

    /// Where programs with windows keep what is the user's.
    fn programs(&self) -> impl Iterator<Item = PathBuf> {
        let mac = self.home.as_ref().map(|home| home.join("Library/Application Support"));
        [self.config.clone(), mac, self.app_data.clone()].into_iter().flatten()
    }

    /// The files a client may have: those of the project first, since they are meant for it.
    pub(super) fn of_client(&self, client: Client) -> Vec<PathBuf> {
        let (here, home, config) = (Some(&self.folder), self.home.as_ref(), self.config.as_ref());
        let below = |root: Option<&PathBuf>, names: &[&str]| -> Vec<PathBuf> {
            names.iter().filter_map(|name| Some(root?.join(name))).collect()
        };
        let programs = |names: &[&str]| -> Vec<PathBuf> {
            self.programs().flat_map(|root| names.iter().map(move |name| root.join(name))).collect()
        };
        let files = match client {
            Client::ClaudeCode => [below(here, &[".mcp.json"]), below(home, &[".claude.json"])],
            Client::ClaudeDesktop => [programs(&["Claude/claude_desktop_config.json"]), vec![]],
            Client::Cursor => {
                [below(here, &[".cursor/mcp.json"]), below(home, &[".cursor/mcp.json"])]
            }
            Client::VsCode => [
                below(here, &[".vscode/mcp.json", ".vscode/settings.json"]),
                programs(&["Code/User/mcp.json", "Code/User/settings.json"]),
            ],
            Client::Codex => {
                [below(here, &[".codex/config.toml"]), below(home, &[".codex/config.toml"])]
            }
            Client::Opencode => {
                let names = ["opencode/opencode.json", "opencode/opencode.jsonc"];
                [below(here, &["opencode.json", "opencode.jsonc"]), below(config, &names)]
            }
            Client::Gemini => {
                [below(here, &[".gemini/settings.json"]), below(home, &[".gemini/settings.json"])]
            }
            Client::Windsurf => [below(home, &[".codeium/windsurf/mcp_config.json"]), vec![]],
            Client::Cline => {
                let file = "Code/User/globalStorage/saoudrizwan.claude-dev/settings/\
                            cline_mcp_settings.json";
                [programs(&[file]), vec![]]
            }
            Client::Hermes => [below(self.hermes.as_ref(), &["config.yaml"]), vec![]],
            Client::Other => [vec![], vec![]],
        };
        let mut files = files.concat();
        // In the home folder itself, the project's file is the user's.
        files.dedup();
        files
    }
}
