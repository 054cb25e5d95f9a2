//! Imports from Cursor: servers under `mcpServers`, with the references `${env:NAME}`, `${userHome}` and
//! `${workspaceFolder}`.

use serde_json::Value;

use super::entry::ImportBuilder;
use super::mcp_servers;

pub(super) fn read(value: &Value, builder: &mut ImportBuilder) {
    builder.add_servers(
        "mcpServers",
        value.get("mcpServers"),
        &mcp_servers::without_files,
        |entry| mcp_servers::server(entry, "url"),
    );
}
