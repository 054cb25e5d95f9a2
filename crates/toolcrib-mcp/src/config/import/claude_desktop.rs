//! Claude Desktop: programs under `mcpServers`, and nothing is replaced in them.

use serde_json::Value;

use super::entry::ImportBuilder;
use super::mcp_servers;

pub(super) fn read(value: &Value, builder: &mut ImportBuilder) {
    builder.each("mcpServers", value.get("mcpServers"), &mcp_servers::literal, |entry| {
        mcp_servers::server(entry, "url")
    });
}
