//! Cline: `mcpServers` with times in seconds; an address without a type is the older transport.

use serde_json::Value;

use super::super::check;
use super::entry::Found;
use super::shared;

pub(super) fn read(value: &Value, found: &mut Found) {
    found.each("mcpServers", value.get("mcpServers"), &shared::variables_only, |entry| {
        let mut server = shared::server(entry, "url")?;
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
