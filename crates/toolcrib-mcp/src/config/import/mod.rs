//! Imports servers from the config file of another MCP client.
//!
//! The client is detected from the file's contents, and the file is then read as that client reads it. Unknown keys are
//! ignored. A setting that cannot be used causes a warning, and does not affect the other servers. Formats that differ,
//! such as `{env:NAME}` or milliseconds, are converted to ours. References are not expanded yet. No warning and no
//! error contains a value, because a value may be a secret.

mod claude_code;
mod claude_desktop;
mod cline;
mod codex;
mod cursor;
mod detect;
mod entry;
mod gemini;
mod goose;
mod hermes;
mod mcp_servers;
mod opencode;
mod project_folder;
mod server_choices;
mod vscode;
mod windsurf;
mod zed;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use toolcrib_server::config::MAX_CONFIG_BYTES;

use super::{ConfigError, Server};
pub use project_folder::{project_folder, set_start_folder};
pub use server_choices::{ServerChoices, SettingsOwner};

/// A client whose config file can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientKind {
    /// Claude Code: `~/.claude.json`, `.mcp.json`.
    ClaudeCode,
    /// Claude Desktop: `claude_desktop_config.json`.
    ClaudeDesktop,
    /// Cursor: `.cursor/mcp.json`.
    Cursor,
    /// VS Code: `mcp.json`, or `mcp.servers` in `settings.json`.
    #[serde(rename = "vscode")]
    VsCode,
    /// Codex: `config.toml`.
    Codex,
    /// opencode: `opencode.json`.
    Opencode,
    /// Gemini CLI: `settings.json`.
    Gemini,
    /// Windsurf: `mcp_config.json`.
    Windsurf,
    /// Cline: `cline_mcp_settings.json`.
    Cline,
    /// Zed: `settings.json`.
    Zed,
    /// Goose: `config.yaml`.
    Goose,
    /// Hermes: `config.yaml`.
    Hermes,
    /// Any other client with the key `mcpServers`.
    Other,
}

impl ClientKind {
    /// All clients except [`Self::Other`].
    pub const ALL: [Self; 12] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Codex,
        Self::Opencode,
        Self::Gemini,
        Self::Windsurf,
        Self::Cline,
        Self::Zed,
        Self::Goose,
        Self::Hermes,
    ];

    /// Returns the client's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Gemini => "gemini",
            Self::Windsurf => "windsurf",
            Self::Cline => "cline",
            Self::Zed => "zed",
            Self::Goose => "goose",
            Self::Hermes => "hermes",
            Self::Other => "other",
        }
    }

    /// Returns the client with this name on the command line, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.name() == name)
    }
}

impl fmt::Display for ClientKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The servers of another client's file.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedConfig {
    /// The client that the file belongs to.
    pub client: ClientKind,
    /// The file's servers.
    pub servers: BTreeMap<String, Server>,
    /// The names of the disabled servers, each with the reason.
    pub disabled: BTreeMap<String, String>,
    /// The names of all entries, including those that were left out.
    pub names: BTreeSet<String>,
    /// The names of the entries that start Toolcrib itself, which are left out.
    pub own_entries: BTreeSet<String>,
    /// The servers that need something that only the client has, such as a secret in its keyring: their names, each
    /// with a description of what is missing.
    pub client_only: BTreeMap<String, String>,
    /// Messages about settings that were changed or ignored.
    pub warnings: Vec<String>,
}

/// The file to import, and the working folder.
#[derive(Debug, Clone, Copy)]
pub struct ImportSource<'a> {
    /// The file. Its name helps to detect the client, and paths in it may be relative to its folder.
    pub file: &'a Path,
    /// The working folder. It selects the project whose servers are read from Claude Code's file.
    pub folder: &'a Path,
}

/// Reads another client's file. Returns `None` if the format is unknown. If the file belongs to a project, its servers
/// start in the project's folder.
pub fn read(text: &str, source: &ImportSource<'_>) -> Result<Option<ImportedConfig>, ConfigError> {
    let ending = source.file.extension().unwrap_or_default();
    if ending.eq_ignore_ascii_case("toml") {
        // Errors are ignored here, because the file may be `toolcrib.toml`, whose own parser reports them.
        let codex = parse_toml(text).ok().filter(detect::is_codex);
        let read = |value: Value| {
            project_folder::start_in_project_folder(
                read_value(ClientKind::Codex, &value, source),
                source,
            )
        };
        return Ok(codex.map(read));
    }
    let value = parse_json(text)?;
    let client = detect::client(&value, source.file);
    Ok(client.map(|client| {
        project_folder::start_in_project_folder(read_value(client, &value, source), source)
    }))
}

/// Reads the file of a known client. Hermes and Goose use YAML, of which only the JSON subset is supported here. Callers with a
/// YAML parser use [`read_value`].
pub fn read_as(
    client: ClientKind,
    text: &str,
    source: &ImportSource<'_>,
) -> Result<ImportedConfig, ConfigError> {
    let value = if client == ClientKind::Codex { parse_toml(text)? } else { parse_json(text)? };
    Ok(read_value(client, &value, source))
}

/// Reads the parsed file of a known client.
pub fn read_value(client: ClientKind, value: &Value, source: &ImportSource<'_>) -> ImportedConfig {
    let mut builder = entry::ImportBuilder::default();
    match client {
        ClientKind::ClaudeCode => claude_code::read(value, source, &mut builder),
        ClientKind::ClaudeDesktop => claude_desktop::read(value, &mut builder),
        ClientKind::Cursor => cursor::read(value, &mut builder),
        ClientKind::VsCode => vscode::read(value, &mut builder),
        ClientKind::Codex => codex::read(value, &mut builder),
        ClientKind::Opencode => opencode::read(value, source, &mut builder),
        ClientKind::Gemini => gemini::read(value, &mut builder),
        ClientKind::Windsurf => windsurf::read(value, &mut builder),
        ClientKind::Cline => cline::read(value, &mut builder),
        ClientKind::Zed => zed::read(value, &mut builder),
        ClientKind::Goose => goose::read(value, &mut builder),
        ClientKind::Hermes => hermes::read(value, &mut builder),
        ClientKind::Other => mcp_servers::read(value, &mut builder),
    }
    let entry::ImportBuilder { servers, disabled, names, own_entries, client_only, warnings } =
        builder;
    ImportedConfig { client, servers, disabled, names, own_entries, client_only, warnings }
}

fn check_size(text: &str) -> Result<(), ConfigError> {
    if text.len() <= MAX_CONFIG_BYTES {
        return Ok(());
    }
    Err(ConfigError::new("the file is larger than 4 MiB", "keep only the part about servers"))
}

/// Parses JSON with comments and trailing commas. The parser's maximum depth is 512.
pub fn parse_json(text: &str) -> Result<Value, ConfigError> {
    check_size(text)?;
    let text = text.trim_start_matches('\u{feff}');
    jsonc_parser::parse_to_serde_value(text, &jsonc_parser::ParseOptions::default()).map_err(
        |error| {
            let problem = format!("not JSON: {}", error.kind());
            ConfigError::new(
                problem,
                "comments and trailing commas are allowed; the rest must be JSON",
            )
            .at_byte(text, error.range().start)
        },
    )
}

/// Parses TOML. The parser's maximum depth is 80.
fn parse_toml(text: &str) -> Result<Value, ConfigError> {
    check_size(text)?;
    let text = text.trim_start_matches('\u{feff}');
    toml::from_str(text)
        .map_err(|error| ConfigError::from_toml(text, &error, "the file must be TOML"))
}
