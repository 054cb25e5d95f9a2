//! Imports from Claude Desktop: servers under `mcpServers`. Claude Desktop does not expand references such as
//! `${NAME}`.

use serde_json::Value;

use super::entry::ImportBuilder;
use super::mcp_servers;

pub(super) fn read(value: &Value, builder: &mut ImportBuilder) {
    builder.add_servers("mcpServers", value.get("mcpServers"), &mcp_servers::literal, |entry| {
        mcp_servers::server(entry, "url")
    });
}
