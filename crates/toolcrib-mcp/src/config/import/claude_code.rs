//! Imports from Claude Code: `.mcp.json`, and `~/.claude.json` with the servers of the user and of each project.

use std::path::Path;

use serde_json::Value;
use toolcrib_core::DeferPolicy;

use super::super::{Server, check};
use super::entry::{ImportBuilder, ServerEntry};
use super::{ImportSource, mcp_servers};

pub(super) fn read(value: &Value, source: &ImportSource<'_>, builder: &mut ImportBuilder) {
    builder.add_servers(
        "mcpServers",
        value.get("mcpServers"),
        &mcp_servers::variables_only,
        server,
    );
    // A server of this project replaces the user's server of the same name.
    let Some(project) = project(value, source.folder) else { return };
    builder.add_servers(
        "projects.mcpServers",
        project.get("mcpServers"),
        &mcp_servers::variables_only,
        server,
    );
    let disabled = project.get("disabledMcpServers").and_then(Value::as_array);
    for name in disabled.into_iter().flatten().filter_map(Value::as_str) {
        builder.disable(name, "`disabledMcpServers` of this project names it".to_owned());
    }
}

/// Returns the settings that Claude Code stores for `folder`, the working folder, if there are any.
fn project<'a>(value: &'a Value, folder: &Path) -> Option<&'a Value> {
    let projects = value.get("projects")?.as_object()?;
    projects.iter().find(|(path, _)| Path::new(path) == folder).map(|(_, project)| project)
}

fn server(entry: &mut ServerEntry<'_>) -> Option<Server> {
    let mut server = mcp_servers::server(entry, "url")?;
    if entry.flag("alwaysLoad") == Some(true) {
        server.defer = Some(DeferPolicy::Never);
    }
    if let Some(seconds) = entry.seconds("timeout", 0.001, &check::CALL_TIMEOUT) {
        server.call_timeout = seconds;
    }
    if entry.has("headersHelper") {
        entry.warn("headersHelper", "is not run: set `headers` instead, from a variable or a file");
        entry.set_client_only("needs its `headersHelper`, which only Claude Code runs");
    }
    Some(server)
}
