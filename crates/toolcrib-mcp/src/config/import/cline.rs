//! Imports from Cline: servers under `mcpServers`, with timeouts in seconds. A `url` without `type` means the older
//! HTTP+SSE transport.

use serde_json::Value;

use super::super::check;
use super::entry::ImportBuilder;
use super::mcp_servers;

pub(super) fn read(value: &Value, builder: &mut ImportBuilder) {
    builder.add_servers(
        "mcpServers",
        value.get("mcpServers"),
        &mcp_servers::variables_only,
        |entry| {
            let mut server = mcp_servers::server(entry, "url")?;
            if entry.has("url") && !entry.has("type") {
                entry.warn("url", "means HTTP+SSE in Cline; Toolcrib uses Streamable HTTP");
            }
            if let Some(seconds) = entry.seconds("timeout", 1.0, &check::CALL_TIMEOUT) {
                server.call_timeout = seconds;
            }
            entry.warn_approvals(&["alwaysAllow", "autoApprove"]);
            Some(server)
        },
    );
}
