//! What the clients that write `mcpServers` have in common, and those of them we do not know.

use serde_json::Value;

use super::super::Server;
use super::entry::{ImportBuilder, ServerEntry};

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

pub(super) fn read(value: &Value, builder: &mut ImportBuilder) {
    builder.each("mcpServers", value.get("mcpServers"), &without_files, |entry| {
        entry.approvals(&["alwaysAllow", "autoApprove", "trust"]);
        server(entry, "url")
    });
}

/// A server with `command`, or with an address under `address`.
pub(super) fn server(entry: &mut ServerEntry<'_>, address: &str) -> Option<Server> {
    let transport = match transport_kind(entry)? {
        TransportKind::Http => entry.http(address)?,
        TransportKind::Unspecified if entry.has(address) && !entry.has("command") => {
            entry.http(address)?
        }
        TransportKind::Stdio | TransportKind::Unspecified => entry.stdio()?,
    };
    let server = Server::new(transport);
    if entry.has("envFile") {
        entry.warn("envFile", "is not read: name its variables under `env`");
    }
    Some(server)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TransportKind {
    Stdio,
    Http,
    Unspecified,
}

/// What `type` says; `None` for what we do not speak, and that is said.
pub(super) fn transport_kind(entry: &mut ServerEntry<'_>) -> Option<TransportKind> {
    let key = if entry.has("type") { "type" } else { "transport" };
    let Some(word) = entry.word(key) else { return Some(TransportKind::Unspecified) };
    match word.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
        "stdio" | "local" => Some(TransportKind::Stdio),
        "http" | "streamablehttp" | "remote" => Some(TransportKind::Http),
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
