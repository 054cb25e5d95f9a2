//! What the clients that write `mcpServers` have in common, and those of them we do not know.

use serde_json::Value;

use super::super::Server;
use super::entry::{Entry, Found};

/// `${NAME}` and the references to folders mean with us what they mean there. `${file:PATH}` is ours alone: a project's
/// file could send any file of the user's to its server with it, so it means itself.
pub(super) fn without_files(text: &str) -> String {
    text.replace("${file:", "$${file:")
}

/// The same for clients that know variables and no other references.
pub(super) fn variables_only(text: &str) -> String {
    let text = without_files(text).replace("${userHome}", "$${userHome}");
    text.replace("${workspaceFolder}", "$${workspaceFolder}")
}

/// References are not known there, so a `${` means itself.
pub(super) fn literal(text: &str) -> String {
    text.replace("${", "$${")
}

pub(super) fn read(value: &Value, found: &mut Found) {
    found.each("mcpServers", value.get("mcpServers"), &without_files, |entry| {
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
