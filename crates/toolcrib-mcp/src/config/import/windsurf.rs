//! Imports from Windsurf: servers under `mcpServers`, with `serverUrl` and a list of disabled tools.

use serde_json::Value;

use super::entry::ImportBuilder;
use super::mcp_servers;

pub(super) fn read(value: &Value, builder: &mut ImportBuilder) {
    builder.add_servers(
        "mcpServers",
        value.get("mcpServers"),
        &mcp_servers::variables_only,
        |entry| {
            let url_key = if entry.has("serverUrl") { "serverUrl" } else { "url" };
            let mut server = mcp_servers::server(entry, url_key)?;
            server.deny = entry.raw_strings("disabledTools").unwrap_or_default();
            Some(server)
        },
    );
}
