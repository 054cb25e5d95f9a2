//! Windsurf: `mcpServers` with `serverUrl`, and tools that are switched off one by one.

use serde_json::Value;

use super::entry::ImportBuilder;
use super::mcp_servers;

pub(super) fn read(value: &Value, builder: &mut ImportBuilder) {
    builder.each("mcpServers", value.get("mcpServers"), &mcp_servers::variables_only, |entry| {
        let address = if entry.has("serverUrl") { "serverUrl" } else { "url" };
        let mut server = mcp_servers::server(entry, address)?;
        server.deny = entry.words("disabledTools").unwrap_or_default();
        Some(server)
    });
}
