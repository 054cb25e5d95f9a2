//! The format of each client's own file: where its servers are, and what the entry for Toolcrib looks like.

use std::path::Path;

use serde_json::{Value, json};
use toolcrib_client_files::{Format, KeyPath, get};
use toolcrib_mcp::config::ClientKind;

/// How clients reach Toolcrib.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    /// The command that clients start, and its arguments.
    pub(super) command: String,
    pub(super) args: Vec<String>,
    /// The URL of `toolcrib serve`, which clients use instead of the command if they can.
    pub(super) url: Option<String>,
}

pub(super) fn format(client: ClientKind) -> Format {
    match client {
        ClientKind::Codex => Format::Toml,
        ClientKind::Goose | ClientKind::Hermes => Format::Yaml,
        _ => Format::Json,
    }
}

fn path(keys: &[&str]) -> KeyPath {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

/// Returns the path of the object that contains the servers. It follows the rules of the import.
pub(super) fn container(client: ClientKind, file: &Path, value: &Value) -> KeyPath {
    match client {
        ClientKind::VsCode => {
            let is_settings = file.file_name().is_some_and(|name| name == "settings.json");
            let nested = path(&["mcp", "servers"]);
            if value.get("servers").is_some() || !is_settings {
                path(&["servers"])
            } else if get(value, &nested).is_none() && value.get("mcp.servers").is_some() {
                path(&["mcp.servers"])
            } else {
                nested
            }
        }
        ClientKind::Opencode => {
            // In the second version of the format, the servers are one level deeper.
            let nested = path(&["mcp", "servers"]);
            let is_nested = get(value, &nested).and_then(Value::as_object).is_some_and(|servers| {
                servers.values().all(Value::is_object) && !servers.contains_key("type")
            });
            if is_nested { nested } else { path(&["mcp"]) }
        }
        ClientKind::Codex | ClientKind::Hermes => path(&["mcp_servers"]),
        ClientKind::Zed => path(&["context_servers"]),
        ClientKind::Goose => path(&["extensions"]),
        _ => path(&["mcpServers"]),
    }
}

/// Returns the entry for Toolcrib.
pub(super) fn entry(client: ClientKind, endpoint: &Endpoint) -> Value {
    let Endpoint { command, args, url } = endpoint;
    let http = url.as_ref().filter(|_| can_have_url(client));
    http.map_or_else(|| stdio_entry(client, command, args), |url| http_entry(client, url))
}

/// Whether a client's file can contain servers over HTTP. Claude Desktop adds these in its settings dialog instead.
pub(super) fn can_have_url(client: ClientKind) -> bool {
    client != ClientKind::ClaudeDesktop
}

fn stdio_entry(client: ClientKind, command: &str, args: &[String]) -> Value {
    match client {
        // If Claude Code's own tool search is on, it hides the tools of every server whose entry does not have this
        // key. Then the model would not see the listing, which is in the description of `tool_search`.
        ClientKind::ClaudeCode => {
            json!({"type": "stdio", "command": command, "args": args, "alwaysLoad": true})
        }
        ClientKind::VsCode => json!({"type": "stdio", "command": command, "args": args}),
        ClientKind::Opencode => {
            let words: Vec<&str> =
                [command].into_iter().chain(args.iter().map(String::as_str)).collect();
            json!({"type": "local", "command": words, "enabled": true})
        }
        // Earlier versions of Zed require `source`.
        ClientKind::Zed => {
            json!({"source": "custom", "command": command, "args": args, "env": {}})
        }
        ClientKind::Goose => json!({
            "enabled": true, "type": "stdio", "name": "toolcrib", "description": "Toolcrib",
            "cmd": command, "args": args, "envs": {}, "env_keys": [], "timeout": GOOSE_TIMEOUT,
        }),
        _ => json!({"command": command, "args": args}),
    }
}

/// Goose's own default, in seconds.
const GOOSE_TIMEOUT: u32 = 300;

fn http_entry(client: ClientKind, url: &str) -> Value {
    match client {
        ClientKind::ClaudeCode => json!({"type": "http", "url": url, "alwaysLoad": true}),
        ClientKind::VsCode => json!({"type": "http", "url": url}),
        ClientKind::Opencode => json!({"type": "remote", "url": url, "enabled": true}),
        ClientKind::Gemini => json!({"httpUrl": url}),
        ClientKind::Windsurf => json!({"serverUrl": url}),
        ClientKind::Cline => json!({"type": "streamableHttp", "url": url}),
        ClientKind::Goose => json!({
            "enabled": true, "type": "streamable_http", "name": "toolcrib", "description": "Toolcrib",
            "uri": url, "envs": {}, "env_keys": [], "headers": {}, "timeout": GOOSE_TIMEOUT,
        }),
        _ => json!({"url": url}),
    }
}
