//! What the clients that write `mcpServers` have in common, and those of them we do not know.

use serde_json::Value;

use super::super::Server;
use super::entry::{Entry, Found};

/// Texts stay as they are: `${NAME}` means with us what it means there.
pub(super) fn as_it_is(text: &str) -> String {
    text.to_owned()
}

/// References are not known there, so a `${` means itself.
pub(super) fn literal(text: &str) -> String {
    text.replace("${", "$${")
}

pub(super) fn read(value: &Value, found: &mut Found) {
    found.each("mcpServers", value.get("mcpServers"), &as_it_is, |entry| {
        entry.approvals(&["alwaysAllow", "autoApprove", "trust"]);
        server(entry, "url")
    });
}

/// A server with `command`, or with an address under `address`.
pub(super) fn server(entry: &mut Entry<'_>, address: &str) -> Option<Server> {
    let transport = match kind(entry)? {
        Kind::Address => entry.http(address)?,
        Kind::Unsaid if entry.has(address) && !entry.has("command") => entry.http(address)?,
        Kind::Program | Kind::Unsaid => entry.stdio()?,
    };
    let server = Server::new(transport);
    if entry.has("envFile") {
        entry.warn("envFile", "is not read: name its variables under `env`");
    }
    Some(server)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Program,
    Address,
    Unsaid,
}

/// What `type` says; `None` for what we do not speak, and that is said.
pub(super) fn kind(entry: &mut Entry<'_>) -> Option<Kind> {
    let key = if entry.has("type") { "type" } else { "transport" };
    let Some(word) = entry.word(key) else { return Some(Kind::Unsaid) };
    match word.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
        "stdio" | "local" => Some(Kind::Program),
        "http" | "streamablehttp" | "remote" => Some(Kind::Address),
        "sse" => {
            let problem = "asks for the older HTTP+SSE transport, which we do not speak; the \
                           server is left out";
            entry.warn(key, problem);
            None
        }
        _ => {
            entry.warn(key, "names a transport we do not know; the server is left out");
            None
        }
    }
}
