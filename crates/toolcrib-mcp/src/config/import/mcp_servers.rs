//! Reads servers under `mcpServers`, the key that many clients use. This also covers clients for which there is no
//! separate import.

use serde_json::Value;

use super::super::Server;
use super::entry::{ImportBuilder, ServerEntry};

/// Escapes `${file:PATH}`, which only our config supports. Otherwise the config file of a project could make the
/// gateway send any of the user's files to the project's server. `${NAME}` and references to folders stay unchanged,
/// because they mean the same in the client's config and in ours.
pub(super) fn without_files(text: &str) -> String {
    text.replace("${file:", "$${file:")
}

/// Escapes every reference except variables, for clients that support only variables.
pub(super) fn variables_only(text: &str) -> String {
    let text = without_files(text).replace("${userHome}", "$${userHome}");
    text.replace("${workspaceFolder}", "$${workspaceFolder}")
}

/// Escapes every reference, for clients that do not support references.
pub(super) fn literal(text: &str) -> String {
    text.replace("${", "$${")
}

pub(super) fn read(value: &Value, builder: &mut ImportBuilder) {
    builder.add_servers("mcpServers", value.get("mcpServers"), &without_files, |entry| {
        entry.warn_approvals(&["alwaysAllow", "autoApprove", "trust"]);
        server(entry, "url")
    });
}

/// Reads a server with `command`, or with a URL under `url_key`.
pub(super) fn server(entry: &mut ServerEntry<'_>, url_key: &str) -> Option<Server> {
    let transport = match transport_kind(entry)? {
        TransportKind::Http => entry.http(url_key)?,
        TransportKind::Unspecified if entry.has(url_key) && !entry.has("command") => {
            entry.http(url_key)?
        }
        TransportKind::Stdio | TransportKind::Unspecified => entry.stdio()?,
    };
    let server = Server::new(transport);
    if entry.has("envFile") {
        entry.warn("envFile", "is not read: set its variables in `env`");
    }
    Some(server)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TransportKind {
    Stdio,
    Http,
    Unspecified,
}

/// Returns the transport that `type` or `transport` selects. If the transport is not supported, adds a warning and
/// returns `None`.
pub(super) fn transport_kind(entry: &mut ServerEntry<'_>) -> Option<TransportKind> {
    let key = if entry.has("type") { "type" } else { "transport" };
    let Some(word) = entry.raw_string(key) else { return Some(TransportKind::Unspecified) };
    match word.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
        "stdio" | "local" => Some(TransportKind::Stdio),
        "http" | "streamablehttp" | "remote" => Some(TransportKind::Http),
        "sse" => {
            let problem = "selects the older HTTP+SSE transport, which is not supported; the \
                           server is left out";
            entry.warn(key, problem);
            None
        }
        _ => {
            entry.warn(key, "names an unknown transport; the server is left out");
            None
        }
    }
}
