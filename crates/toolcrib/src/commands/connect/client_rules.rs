//! Rules with which a client denies, allows or asks before the tools of a server. They name the server, so they no longer
//! apply when its tools are called through Toolcrib.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolcrib_mcp::config::ClientKind;

use super::client_format;
use super::parsed_file::ParsedFile;
use crate::commands::import::client_files::ClientFolders;

/// A rule, and the tools that it denies.
pub(super) struct ClientRule {
    pub(super) file: PathBuf,
    /// The rule as the user finds it in the file.
    rule: String,
    /// A pattern for `deny` of the server in our config, if the rule denies tools and can be translated exactly.
    pub(super) deny: Option<String>,
}

impl ClientRule {
    /// Returns the note on a rule about this server. `given` is the name of the server in our config.
    pub(super) fn note(&self, server: &str, given: &str, entry: &str) -> String {
        let Self { file, rule, deny } = self;
        let lost = format!(
            "`{rule}` in `{}` no longer applies to the tools of `{server}`, which are now called through `{entry}`",
            file.display()
        );
        match deny {
            Some(pattern) => {
                format!("{lost}; `deny` of `{given}` in toolcrib.toml has `{pattern}` instead")
            }
            None => format!("{lost}; to deny a tool, set `deny` of the server in toolcrib.toml"),
        }
    }
}

/// Returns the rules about a server.
pub(super) fn rules(
    client: ClientKind,
    folders: &ClientFolders,
    parsed: &ParsedFile,
    server: &str,
) -> Vec<ClientRule> {
    match client {
        ClientKind::ClaudeCode => {
            let settings = folders.proxy_file(client).into_iter();
            let local = settings.clone().map(|file| file.with_file_name("settings.local.json"));
            let files = settings.chain(local);
            files.flat_map(|file| claude_rules(&read(client, &file), &file, server)).collect()
        }
        ClientKind::Opencode => {
            let files = folders.user_files(client).into_iter();
            files.flat_map(|file| opencode_rules(&read(client, &file), &file, server)).collect()
        }
        ClientKind::Codex => codex_rules(&parsed.value, &parsed.file.path, server),
        _ => Vec::new(),
    }
}

/// Reads a file of a client. A missing or broken file has no rules that the client uses.
fn read(client: ClientKind, file: &Path) -> Value {
    let text = fs::read_to_string(file).unwrap_or_default();
    client_format::format(client).parse(&text).unwrap_or_default()
}

/// Whether a text is the name of a tool, without wildcards.
fn is_tool(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Returns the pattern for the part of a rule after the name of the server.
fn pattern(rest: &str) -> Option<String> {
    match rest {
        "" | "*" => Some("*".to_owned()),
        tool => is_tool(tool).then(|| tool.to_owned()),
    }
}

/// Claude Code: `permissions.deny` and others, with `mcp__SERVER` and `mcp__SERVER__TOOL`.
fn claude_rules(settings: &Value, file: &Path, server: &str) -> Vec<ClientRule> {
    let in_rules = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let prefix = format!("mcp__{}", server.chars().map(in_rules).collect::<String>());
    let mut rules = Vec::new();
    for kind in ["deny", "ask", "allow"] {
        let list = settings.get("permissions").and_then(|all| all.get(kind));
        let list = list.and_then(Value::as_array).into_iter().flatten();
        for rule in list.filter_map(Value::as_str) {
            let Some(rest) = rule.strip_prefix(&*prefix) else { continue };
            let tool = if rest.is_empty() { Some("") } else { rest.strip_prefix("__") };
            let Some(tool) = tool else { continue };
            rules.push(ClientRule {
                file: file.to_owned(),
                rule: format!("permissions.{kind}: {rule}"),
                deny: if kind == "deny" { pattern(tool) } else { None },
            });
        }
    }
    rules
}

/// opencode: `tools` and `permission`, with `SERVER_TOOL` and `SERVER_*`.
fn opencode_rules(settings: &Value, file: &Path, server: &str) -> Vec<ClientRule> {
    let in_rules = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let prefix: String = server.chars().map(in_rules).chain(['_']).collect();
    let mut rules = Vec::new();
    for kind in ["tools", "permission"] {
        let map = settings.get(kind).and_then(Value::as_object);
        for (rule, value) in map.into_iter().flatten() {
            let Some(tool) = rule.strip_prefix(&*prefix) else { continue };
            let is_denied = *value == Value::Bool(false) || value == "deny";
            rules.push(ClientRule {
                file: file.to_owned(),
                rule: format!("{kind}.{rule}"),
                deny: if is_denied && !tool.is_empty() { pattern(tool) } else { None },
            });
        }
    }
    rules
}

/// Codex: the approvals in the entry of the server.
fn codex_rules(value: &Value, file: &Path, server: &str) -> Vec<ClientRule> {
    let Some(entry) = value.get("mcp_servers").and_then(|all| all.get(server)) else {
        return Vec::new();
    };
    let default = entry.get("default_tools_approval_mode");
    let default = default.map(|_| format!("mcp_servers.{server}.default_tools_approval_mode"));
    let tools = entry.get("tools").and_then(Value::as_object).into_iter().flatten();
    let tools = tools.map(|(tool, _)| format!("mcp_servers.{server}.tools.{tool}"));
    let rule = |rule| ClientRule { file: file.to_owned(), rule, deny: None };
    default.into_iter().chain(tools).map(rule).collect()
}
