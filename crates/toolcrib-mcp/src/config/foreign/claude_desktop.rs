//! Claude Desktop: programs under `mcpServers`, and nothing is replaced in them.

use serde_json::Value;

use super::entry::Found;
use super::shared;

pub(super) fn read(value: &Value, found: &mut Found) {
    found.each("mcpServers", value.get("mcpServers"), &shared::literal, |entry| {
        shared::server(entry, "url")
    });
}
