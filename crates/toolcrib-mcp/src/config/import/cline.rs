//! Cline: `mcpServers` with times in seconds; an address without a type is the older transport.

use serde_json::Value;

use super::super::check;
use super::entry::ImportBuilder;
use super::mcp_servers;

pub(super) fn read(value: &Value, builder: &mut ImportBuilder) {
    builder.each("mcpServers", value.get("mcpServers"), &mcp_servers::variables_only, |entry| {
        let mut server = mcp_servers::server(entry, "url")?;
        if entry.has("url") && !entry.has("type") {
            entry.warn("url", "is HTTP+SSE to Cline, and Streamable HTTP to us");
        }
        if let Some(seconds) = entry.seconds("timeout", 1.0, &check::CALL) {
            server.call_timeout = seconds;
        }
        entry.approvals(&["alwaysAllow", "autoApprove"]);
        Some(server)
    });
}
