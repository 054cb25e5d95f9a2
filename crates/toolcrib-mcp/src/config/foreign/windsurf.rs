//! Windsurf: `mcpServers` with `serverUrl`, and tools that are switched off one by one.

use serde_json::Value;

use super::entry::Found;
use super::shared;

pub(super) fn read(value: &Value, found: &mut Found) {
    found.each("mcpServers", value.get("mcpServers"), &shared::variables_only, |entry| {
        let address = if entry.has("serverUrl") { "serverUrl" } else { "url" };
        let mut server = shared::server(entry, address)?;
        server.deny = entry.words("disabledTools").unwrap_or_default();
        Some(server)
    });
}
