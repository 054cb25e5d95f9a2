//! Detects which client a config file belongs to. The keys in the file decide. If several clients use the same keys,
//! the file's name decides.

use std::path::Path;

use serde_json::Value;

use super::ClientKind;

/// Whether a TOML file belongs to Codex.
pub(super) fn is_codex(value: &Value) -> bool {
    value.get("mcp_servers").is_some()
}

/// Returns the client that a JSON file belongs to, or `None` if the format is unknown.
pub(super) fn client(value: &Value, file: &Path) -> Option<ClientKind> {
    let is_object = |key: &str| value.get(key).is_some_and(Value::is_object);
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if is_object("mcpServers") {
        return Some(mcp_servers_client(value, file, name));
    }
    if is_object("context_servers") {
        return Some(ClientKind::Zed);
    }
    if is_object("projects") && name.contains("claude") {
        return Some(ClientKind::ClaudeCode);
    }
    if is_object("servers") || is_object("mcp.servers") {
        return Some(ClientKind::VsCode);
    }
    let mcp = value.get("mcp").filter(|mcp| mcp.is_object())?;
    let is_opencode = name.starts_with("opencode")
        || value.get("$schema").and_then(Value::as_str).is_some_and(|at| at.contains("opencode"));
    match mcp.get("servers").and_then(Value::as_object) {
        // The second version of opencode's format uses the same key as VS Code, but different values for `type`.
        Some(servers) if is_opencode || servers.values().any(is_opencode_server) => {
            Some(ClientKind::Opencode)
        }
        Some(_) => Some(ClientKind::VsCode),
        None => Some(ClientKind::Opencode),
    }
}

fn is_opencode_server(server: &Value) -> bool {
    matches!(server.get("type").and_then(Value::as_str), Some("local" | "remote"))
}

/// Determines which client a file belongs to, among the clients that use the key `mcpServers`.
fn mcp_servers_client(value: &Value, file: &Path, name: &str) -> ClientKind {
    let below = |folder: &str| file.components().any(|part| part.as_os_str() == folder);
    let servers = value.get("mcpServers").and_then(Value::as_object);
    let any = |keys: &[&str]| {
        servers.is_some_and(|servers| {
            servers.values().any(|server| keys.iter().any(|key| server.get(key).is_some()))
        })
    };
    if name == "claude_desktop_config.json" {
        ClientKind::ClaudeDesktop
    } else if name == ".claude.json" || name == ".mcp.json" || value.get("projects").is_some() {
        ClientKind::ClaudeCode
    } else if below(".cursor") {
        ClientKind::Cursor
    } else if below(".gemini") || any(&["httpUrl", "includeTools", "excludeTools"]) {
        ClientKind::Gemini
    } else if below("windsurf") || any(&["serverUrl"]) {
        ClientKind::Windsurf
    } else if name == "cline_mcp_settings.json" || any(&["alwaysAllow"]) {
        ClientKind::Cline
    } else if any(&["alwaysLoad", "headersHelper"]) {
        ClientKind::ClaudeCode
    } else {
        ClientKind::Other
    }
}
