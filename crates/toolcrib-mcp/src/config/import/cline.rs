//! Imports from Cline: servers under `mcpServers`, with timeouts in seconds. A `url` without `type` means the older
//! HTTP+SSE transport.

use serde_json::Value;

use super::super::{HttpVariant, Transport, check};
use super::entry::ImportBuilder;
use super::mcp_servers;

pub(super) fn read(value: &Value, builder: &mut ImportBuilder) {
    builder.add_servers(
        "mcpServers",
        value.get("mcpServers"),
        &mcp_servers::variables_only,
        |entry| {
            let mut server = mcp_servers::server(entry, "url")?;
            if let Transport::Http { variant, .. } = &mut server.transport
                && !entry.has("type")
            {
                *variant = HttpVariant::Sse;
            }
            if let Some(seconds) = entry.seconds("timeout", 1.0, &check::CALL_TIMEOUT) {
                server.call_timeout = seconds;
            }
            entry.warn_approvals(&["alwaysAllow", "autoApprove"]);
            Some(server)
        },
    );
}
