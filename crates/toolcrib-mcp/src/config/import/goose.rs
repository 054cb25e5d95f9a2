//! Imports from Goose: `extensions` in `config.yaml`, with timeouts in seconds. Extensions that are part of Goose are
//! left out.

use serde_json::Value;
use toolcrib_server::expand::is_variable_name;

use super::super::{HttpVariant, Server, Transport, check};
use super::entry::{ImportBuilder, ServerEntry};
use super::mcp_servers;

pub(super) fn read(value: &Value, builder: &mut ImportBuilder) {
    builder.add_servers(
        "extensions",
        value.get("extensions"),
        &mcp_servers::variables_only,
        server,
    );
}

fn server(entry: &mut ServerEntry<'_>) -> Option<Server> {
    let kind = entry.raw_string("type").unwrap_or_default();
    let mut transport = match kind.as_str() {
        "stdio" => entry.stdio_from("cmd", "envs")?,
        "streamable_http" => entry.http("uri", HttpVariant::Auto)?,
        "sse" => entry.http("uri", HttpVariant::Sse)?,
        // These run inside Goose, and most files contain several of them, so there is no warning.
        "builtin" | "platform" | "frontend" | "inline_python" => return None,
        _ => {
            entry.warn("type", "names an unknown kind of extension; it is left out");
            return None;
        }
    };
    add_stored_variables(entry, &mut transport);
    let mut server = Server::new(transport);
    if let Some(seconds) = entry.seconds("timeout", 1.0, &check::CALL_TIMEOUT) {
        server.call_timeout = seconds;
    }
    // In Goose, an empty list allows all tools.
    server.allow = entry.raw_strings("available_tools").unwrap_or_default();
    Some(server)
}

/// Adds the variables under `env_keys`. Goose reads them from its keyring or from the environment. Toolcrib can read
/// only the environment.
fn add_stored_variables(entry: &mut ServerEntry<'_>, transport: &mut Transport) {
    let names = entry.raw_strings("env_keys").unwrap_or_default();
    let Transport::Stdio { env, .. } = transport else {
        // Headers may refer to them.
        if !names.is_empty() {
            entry.warn("env_keys", "is not read from Goose's keyring");
            entry.set_client_only(format!("needs {} from Goose's keyring", names.join(", ")));
        }
        return;
    };
    let mut missing = Vec::new();
    for name in names.into_iter().filter(|name| is_variable_name(name)) {
        if !env.contains_key(&name) {
            env.insert(name.clone(), format!("${{{name}}}").into());
            missing.push(name);
        }
    }
    if !missing.is_empty() {
        entry.warn("env_keys", "is read from the environment, not from Goose's keyring");
        entry.set_client_only(format!("needs {} from Goose's keyring", missing.join(", ")));
    }
}
