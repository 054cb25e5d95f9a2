//! Imports from Hermes: `mcp_servers` in `config.yaml`, with timeouts in seconds and booleans that may be quoted.

use serde_json::Value;

use super::super::{Server, check};
use super::entry::{ImportBuilder, ServerEntry, parse_flag};
use super::mcp_servers;

pub(super) fn read(value: &Value, builder: &mut ImportBuilder) {
    builder.add_servers("mcp_servers", value.get("mcp_servers"), &convert_references, server);
}

/// Converts `${env:NAME}` to `${NAME}`, which means the same in Hermes, and then escapes the references that Hermes
/// does not support. In the other order, `${env:file:PATH}` would become `${file:PATH}`, and we would read that file.
fn convert_references(text: &str) -> String {
    mcp_servers::variables_only(&text.replace("${env:", "${"))
}

fn server(entry: &mut ServerEntry<'_>) -> Option<Server> {
    // In Hermes, a URL takes precedence over a command. A URL without `transport` means Streamable HTTP, which `auto`
    // tries first.
    let transport = match (entry.has("url"), mcp_servers::transport_kind(entry)?) {
        (true, kind) => entry.http("url", kind.http_variant())?,
        (false, _) => entry.stdio()?,
    };
    let mut server = Server::new(transport);
    server.parallel = flag(entry, "supports_parallel_tool_calls").unwrap_or(true);
    if let Some(seconds) = entry.seconds("timeout", 1.0, &check::CALL_TIMEOUT) {
        server.call_timeout = seconds;
    }
    if let Some(seconds) = entry.seconds("connect_timeout", 1.0, &check::START_TIMEOUT) {
        server.start_timeout = seconds;
    }
    // In Hermes, `exclude` applies only if `include` is missing or empty.
    match (names(entry, "include"), names(entry, "exclude")) {
        (Some(include), _) if !include.is_empty() => server.allow = include,
        (Some(_), Some(exclude)) => server.deny = exclude,
        _ => {
            entry.warn("tools", "has an entry that is not a tool name; the server is left out");
            return None;
        }
    }
    for key in ["client_cert", "client_key", "ssl_verify"] {
        if entry.has(key) {
            entry.warn(key, "is ignored: the certificate authorities of the system are used");
            entry.set_client_only(format!("needs its `{key}`, which Toolcrib does not use"));
        }
    }
    Some(server)
}

/// Returns the tool names under a key, or `None` if one of the entries is not a name. The caller then leaves the server
/// out, because a filter that cannot be read must not allow more tools here than in Hermes.
fn names(entry: &ServerEntry<'_>, key: &str) -> Option<Vec<String>> {
    match entry.value("tools").and_then(|tools| tools.get(key)) {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::String(name)) => Some(vec![name.clone()]),
        Some(Value::Array(names)) => {
            names.iter().map(|name| name.as_str().map(str::to_owned)).collect()
        }
        Some(_) => None,
    }
}

/// Reads a boolean, which may be quoted.
fn flag(entry: &mut ServerEntry<'_>, key: &str) -> Option<bool> {
    parse_flag(entry.value(key)?).or_else(|| entry.flag(key))
}
