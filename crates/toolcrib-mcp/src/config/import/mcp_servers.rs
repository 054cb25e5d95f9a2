//! Reads servers under `mcpServers`, the key that many clients use. This also covers clients for which there is no
//! separate import.

use serde_json::Value;

use super::super::{HttpVariant, Server};
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
        TransportKind::Http(variant) => entry.http(url_key, variant)?,
        TransportKind::Unspecified if entry.has(url_key) && !entry.has("command") => {
            entry.http(url_key, HttpVariant::Auto)?
        }
        TransportKind::Stdio | TransportKind::Unspecified => entry.stdio()?,
    };
    let server = Server::new(transport);
    if entry.has("envFile") {
        entry.warn("envFile", "is not read: set its variables in `env`");
        entry.set_client_only("needs the variables in its `envFile`, which Toolcrib does not read");
    }
    Some(server)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TransportKind {
    Stdio,
    Http(HttpVariant),
    Unspecified,
}

impl TransportKind {
    /// Returns the variant for a server with a URL. A client that names no variant may try both, and so does
    /// [`HttpVariant::Auto`].
    pub(super) fn http_variant(self) -> HttpVariant {
        match self {
            Self::Http(variant) => variant,
            Self::Stdio | Self::Unspecified => HttpVariant::Auto,
        }
    }
}

/// Returns the transport that `type` or `transport` selects. If the transport is unknown, adds a warning and returns
/// `None`. `http` also selects [`HttpVariant::Auto`], because VS Code and Cursor fall back to HTTP+SSE with it.
pub(super) fn transport_kind(entry: &mut ServerEntry<'_>) -> Option<TransportKind> {
    let key = if entry.has("type") { "type" } else { "transport" };
    let Some(word) = entry.raw_string(key) else { return Some(TransportKind::Unspecified) };
    match word.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
        "stdio" | "local" => Some(TransportKind::Stdio),
        "http" | "streamablehttp" | "remote" => Some(TransportKind::Http(HttpVariant::Auto)),
        "sse" => Some(TransportKind::Http(HttpVariant::Sse)),
        _ => {
            entry.warn(key, "names an unknown transport; the server is left out");
            None
        }
    }
}
