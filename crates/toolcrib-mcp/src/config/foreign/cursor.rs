//! Cursor: `mcpServers`, with `${env:NAME}`, `${userHome}` and `${workspaceFolder}`.

use serde_json::Value;

use super::entry::Found;
use super::shared;

pub(super) fn read(value: &Value, found: &mut Found) {
    found.each("mcpServers", value.get("mcpServers"), &shared::without_files, |entry| {
        shared::server(entry, "url")
    });
}
