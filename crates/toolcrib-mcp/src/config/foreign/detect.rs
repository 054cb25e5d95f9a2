//! Whose file it is, by its shape; by its name where shapes are alike.

use std::path::Path;

use serde_json::Value;

use super::Client;

/// Whether a TOML file is Codex'.
pub(super) fn is_codex(value: &Value) -> bool {
    value.get("mcp_servers").is_some()
}

/// The client that a JSON file belongs to, if it is one we know.
pub(super) fn client(value: &Value, file: &Path) -> Option<Client> {
    let is_object = |key: &str| value.get(key).is_some_and(Value::is_object);
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if is_object("mcpServers") {
        return Some(of_many(value, file, name));
    }
    if is_object("projects") && name.contains("claude") {
        return Some(Client::ClaudeCode);
    }
    if is_object("servers") || is_object("mcp.servers") {
        return Some(Client::VsCode);
    }
    let mcp = value.get("mcp").filter(|mcp| mcp.is_object())?;
    let is_opencode = name.starts_with("opencode")
        || value.get("$schema").and_then(Value::as_str).is_some_and(|at| at.contains("opencode"));
    match mcp.get("servers").and_then(Value::as_object) {
        // opencode's second edition puts its servers where VS Code does, and calls them otherwise.
        Some(servers) if is_opencode || servers.values().any(is_opencodes) => {
            Some(Client::Opencode)
        }
        Some(_) => Some(Client::VsCode),
        None => Some(Client::Opencode),
    }
}

fn is_opencodes(server: &Value) -> bool {
    matches!(server.get("type").and_then(Value::as_str), Some("local" | "remote"))
}

/// Which of those that write `mcpServers`.
fn of_many(value: &Value, file: &Path, name: &str) -> Client {
    let below = |folder: &str| file.components().any(|part| part.as_os_str() == folder);
    let servers = value.get("mcpServers").and_then(Value::as_object);
    let any = |keys: &[&str]| {
        servers.is_some_and(|servers| {
            servers.values().any(|server| keys.iter().any(|key| server.get(key).is_some()))
        })
    };
    if name == "claude_desktop_config.json" {
        Client::ClaudeDesktop
    } else if name == ".claude.json" || name == ".mcp.json" || value.get("projects").is_some() {
        Client::ClaudeCode
    } else if below(".cursor") {
        Client::Cursor
    } else if below(".gemini") || any(&["httpUrl", "includeTools", "excludeTools"]) {
        Client::Gemini
    } else if below("windsurf") || any(&["serverUrl"]) {
        Client::Windsurf
    } else if name == "cline_mcp_settings.json" || any(&["alwaysAllow"]) {
        Client::Cline
    } else if any(&["alwaysLoad", "headersHelper"]) {
        Client::ClaudeCode
    } else {
        Client::Other
    }
}
