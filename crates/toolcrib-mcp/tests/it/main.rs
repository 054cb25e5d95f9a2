//! Integration tests of the gateway crate, in one binary.

#![allow(clippy::unwrap_used, missing_docs)]

mod docs;
mod expand;
mod fake_oauth_server;
mod import;
mod oauth;
mod properties;
mod secrets;
mod server_toml;
mod toolcrib_toml;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolcrib_core::{Preset, SettingsReader};
use toolcrib_mcp::config::import::{ImportSource, ImportedConfig, read};
use toolcrib_mcp::config::{HttpVariant, OAuth, Server, Transport};
use toolcrib_mcp::{GatewayConfig, Secret};
use toolcrib_server::{ConfigError, ConfigFile, HttpSettings};

/// The sections of a complete config file that the engine ignores.
const IGNORED_SECTIONS: [&str; 5] = ["servers", "profiles", "gateway", "http", "proxy"];

/// Parses a complete config file, as the binary does.
fn read_file(text: &str) -> Result<(GatewayConfig, HttpSettings), ConfigError> {
    read_file_over(None, text)
}

/// Like [`read_file`], but with the engine's settings based on this preset.
fn read_file_over(
    preset: Option<Preset>,
    text: &str,
) -> Result<(GatewayConfig, HttpSettings), ConfigError> {
    let file = ConfigFile::parse(text)?;
    let http = HttpSettings::read(&file)?;
    let settings = SettingsReader::new().over(preset).ignoring(&IGNORED_SECTIONS).read(text);
    let settings = settings.map_err(|error| ConfigError::new(error.to_string(), error.hint()))?;
    Ok((GatewayConfig::read(&file, settings)?, http))
}

/// Returns the path and the text of a sample. `name` is a path relative to `tests/samples`.
fn sample(name: &str) -> (PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    (path, text)
}

/// The path of every sample, relative to `tests/samples`.
const SAMPLES: [&str; 13] = [
    "home/.claude.json",
    "project/.mcp.json",
    "home/.config/Claude/claude_desktop_config.json",
    "home/.cursor/mcp.json",
    "project/.vscode/mcp.json",
    "home/.config/Code/User/settings.json",
    "home/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
    "home/.codex/config.toml",
    "home/.config/opencode/opencode.jsonc",
    "project/opencode.json",
    "home/.gemini/settings.json",
    "home/.codeium/windsurf/mcp_config.json",
    "home/.config/zed/settings.json",
];

/// Imports a sample and detects its client. The working folder is `PROJECT`, as in Claude Code's sample.
fn imported_sample(name: &str) -> ImportedConfig {
    let (file, text) = sample(name);
    read(&text, &ImportSource { file: &file, folder: Path::new("PROJECT") }).unwrap().unwrap()
}

fn secrets(pairs: &[(&str, &str)]) -> BTreeMap<String, Secret> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), Secret::from(*value))).collect()
}

fn stdio_server(command: &str, args: &[&str], env: &[(&str, &str)]) -> Server {
    Server::new(Transport::Stdio {
        command: command.into(),
        args: args.iter().map(|arg| Secret::from(*arg)).collect(),
        env: secrets(env),
        cwd: None,
    })
}

fn in_folder(mut server: Server, folder: &str) -> Server {
    if let Transport::Stdio { cwd, .. } = &mut server.transport {
        *cwd = Some(folder.into());
    }
    server
}

fn http_server(url: &str, headers: &[(&str, &str)], oauth: OAuth) -> Server {
    let variant = HttpVariant::Auto;
    Server::new(Transport::Http { url: url.into(), variant, headers: secrets(headers), oauth })
}

/// Returns a server that uses HTTP+SSE.
fn sse_server(url: &str) -> Server {
    let (headers, oauth) = (secrets(&[]), OAuth::default());
    Server::new(Transport::Http { url: url.into(), variant: HttpVariant::Sse, headers, oauth })
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
